package exec

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// sort sorts the rows of its input.
func (x *execution) sort(ctx context.Context, op *plan.Sort) stream {
	return x.sorted(ctx, op.Keys, op.Keep, x.open(ctx, op.In))
}

// sorted yields the rows of in by keys; rows with equal keys stay in their order. keep > 0: only so many rows are wanted.
func (x *execution) sorted(ctx context.Context, keys []plan.Key, keep int64, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		s := x.newSorter(keys, keep)
		defer s.close()
		for b, err := range in {
			if err == nil {
				err = s.add(b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		s.rows(ctx)(yield)
	}
}

// sorter sorts rows: in memory, of which it takes what there is, then in runs on disk that are merged.
type sorter struct {
	account
	x     *execution
	by    *keying
	keep  int64
	kept  *rows
	bytes []byte // keys of the rows, one after another
	ends  []int  // of the key of each row in bytes
	runs  []*run
	parts []sortedPart

	block   int     // bytes of the largest run of rows that was written at once
	merging account // of what runs hold while they are merged

	bound []byte  // with keep: rows whose key is not less come too late; nil = not known yet
	edge  float64 // with bound: the first key of that row, if it is a number; else NaN
	pick  []int32
	part  column.Batch
}

func (x *execution) newSorter(keys []plan.Key, keep int64) *sorter {
	return &sorter{account: account{memory: x.Memory}, merging: account{memory: x.Memory}, x: x, by: x.newKeying(keys), keep: keep, kept: x.newRows()}
}

func (s *sorter) close() {
	s.kept.release()
	s.release()
	for _, r := range s.runs {
		r.close()
	}
	s.runs, s.parts = nil, nil
	s.merging.release()
}

// add takes rows.
func (s *sorter) add(b *column.Batch) error {
	if err := s.by.load(b); err != nil {
		return err
	}
	step := max(column.Size*fewKeys/max(len(s.by.keys), fewKeys), 1) // rows whose keys are made before their memory is taken
	for from := 0; from < b.Len; from += step {
		if err := s.addSome(b, span{from, min(from+step, b.Len)}); err != nil {
			return err
		}
	}
	return nil
}

// fewKeys is how many keys a row may have for a whole batch of them to be taken at once.
const fewKeys = 16

// addSome takes some rows of the batch whose keys are loaded.
func (s *sorter) addSome(b *column.Batch, r span) error {
	if s.keep == 0 {
		return s.addRun(b, r)
	}
	if s.bound == nil {
		if err := s.addRun(b, r); err != nil {
			return err
		}
	}
	late := s.late()
	for i := r.from; i < r.to && s.bound != nil; i++ {
		if late != nil && late(i) {
			continue
		}
		if bytes.Compare(s.by.of(i), s.bound) < 0 {
			if err := s.addRun(b, span{i, i + 1}); err != nil {
				return err
			}
		}
	}
	if int64(s.kept.n) > 2*s.keep+column.Size/2 {
		return s.cut()
	}
	return nil
}

// late returns a quick test for rows that come too late, of which it finds most; nil when there is none: the first key, a number, decides alone.
func (s *sorter) late() func(i int) bool {
	v := s.by.vectors[0]
	if s.bound == nil || v.Floats == nil || v.Const || v.Nulls != nil || s.edge != s.edge {
		return nil
	}
	values, edge := v.Floats, s.edge
	if s.by.keys[0].Desc {
		return func(i int) bool { return values[i] < edge }
	}
	return func(i int) bool { return values[i] > edge }
}

// perRow is what a row costs beside its values and its key: its end and its place in the order.
const perRow = 32

func (s *sorter) addRun(b *column.Batch, r span) error {
	start := len(s.bytes)
	for i := r.from; i < r.to; i++ {
		s.bytes = append(s.bytes, s.by.of(i)...)
		s.ends = append(s.ends, len(s.bytes))
	}
	size := int64(len(s.bytes)-start) + int64(r.to-r.from)*perRow
	err := s.grow(size)
	if err == nil {
		err = s.kept.addRun(b, r)
	}
	if err == nil {
		return nil
	}
	added := slices.Clone(s.bytes[start:])
	ends := slices.Clone(s.ends[s.kept.n:])
	s.bytes, s.ends = s.bytes[:start], s.ends[:s.kept.n]
	if s.x.SpillDir == "" || s.kept.n == 0 {
		return err
	}
	if err := s.toDisk(); err != nil {
		return err
	}
	s.bytes = append(s.bytes, added...)
	for _, end := range ends {
		s.ends = append(s.ends, end-start)
	}
	if err := s.grow(size); err != nil {
		return err
	}
	return s.kept.addRun(b, r)
}

// ranked is a row in the order: the first bytes of its key decide most comparisons.
type ranked struct {
	head uint64
	row  int32
}

// order returns the rows that are kept, sorted.
func (s *sorter) order() ([]ranked, error) {
	out := make([]ranked, s.kept.n)
	var head [8]byte
	for i := range out {
		if i%patience == 0 {
			if err := s.x.halted(); err != nil {
				return nil, err
			}
		}
		clear(head[:])
		copy(head[:], s.keyAt(int32(i)))
		out[i] = ranked{binary.BigEndian.Uint64(head[:]), int32(i)}
	}
	err := sortAll(s.x, out, func(a, b ranked) int {
		switch {
		case a.head < b.head:
			return -1
		case a.head > b.head:
			return 1
		}
		if c := bytes.Compare(s.keyAt(a.row), s.keyAt(b.row)); c != 0 {
			return c
		}
		return int(a.row) - int(b.row)
	})
	return out, err
}

// sortAll sorts a list, whose equal elements may come in any order, unless the query ends meanwhile: then all are, so that sorting ends too.
func sortAll[T any](x *execution, list []T, compare func(a, b T) int) (err error) {
	steps := 0
	slices.SortFunc(list, func(a, b T) int {
		if steps++; steps%patience == 0 && err == nil {
			err = x.halted()
		}
		if err != nil {
			return 0
		}
		return compare(a, b)
	})
	return err
}

func (s *sorter) keyAt(row int32) []byte {
	from := 0
	if row > 0 {
		from = s.ends[row-1]
	}
	return s.bytes[from:s.ends[row]]
}

// cut forgets the rows that come too late to be wanted.
func (s *sorter) cut() error {
	order, err := s.order()
	if err != nil {
		return err
	}
	order = order[:s.keep]
	s.bound = slices.Clone(s.keyAt(order[len(order)-1].row))
	rows := make([]int32, len(order))
	for i, o := range order {
		rows[i] = o.row
	}
	slices.Sort(rows) // equal keys stay in their order
	var keys []byte
	var ends []int
	for _, row := range rows {
		keys = append(keys, s.keyAt(row)...)
		ends = append(ends, len(keys))
	}
	left := s.kept.batch().Gather(rows)
	if err := s.findEdge(order[len(order)-1].row); err != nil {
		return err
	}
	for _, v := range left.Columns {
		spread(v)
	}
	s.forget()
	s.bytes, s.ends = keys, ends
	if err := s.grow(int64(len(keys)) + int64(len(ends))*perRow); err != nil {
		return err
	}
	return s.kept.add(left)
}

// findEdge notes the first key of a row that is kept.
func (s *sorter) findEdge(row int32) error {
	var one column.Batch
	gather(&one, s.kept.batch(), []int32{row})
	v, err := s.by.keys[0].Expr.Eval(s.x.env, &one)
	if s.edge = nan; err == nil && v.Floats != nil {
		s.edge = v.Float(0)
	}
	return err
}

// spread makes a vector that is Const one that is not.
func spread(v *column.Vector) {
	if v.Const {
		all := &column.Vector{Type: v.Type}
		appendRun(all, v, span{0, v.Len})
		*v = *all
	}
}

func (s *sorter) forget() {
	s.release()
	s.kept.reset()
	s.bytes, s.ends = s.bytes[:0], s.ends[:0]
}

// toDisk writes the rows that are kept as a sorted run.
func (s *sorter) toDisk() error {
	if len(s.parts) > 0 {
		return s.partsToDisk()
	}
	w, err := s.newRun()
	if err != nil {
		return err
	}
	order, err := s.order()
	if err != nil {
		return err
	}
	for group := range slices.Chunk(order, s.runRows(s.kept.n, s.taken+s.kept.taken)) {
		s.pick = s.pick[:0]
		keys := make([][]byte, 0, len(group))
		for _, o := range group {
			s.pick = append(s.pick, o.row)
			keys = append(keys, s.keyAt(o.row))
		}
		gather(&s.part, s.kept.batch(), s.pick)
		if err := w.write(keys, &s.part); err != nil {
			return err
		}
	}
	s.forget()
	return w.rewind()
}

// runRows returns how many of n rows that take so many bytes are in memory at once when runs are merged.
func (s *sorter) runRows(n int, bytes int64) int {
	return int(min(max(s.share(runBytes)*int64(n)/max(bytes, 1), 1), runRows))
}

// runWriter writes a run of a sorter.
type runWriter struct {
	*run
	sorter *sorter
}

func (s *sorter) newRun() (*runWriter, error) {
	r, err := s.x.spill.create(s.x.SpillDir, s.x.Spill)
	if err != nil {
		return nil, err
	}
	r.buffer = int(s.share(int64(r.buffer)))
	s.runs = append(s.runs, r)
	return &runWriter{r, s}, nil
}

// share returns so many bytes, or less where the memory of the query is small: what one of the runs that are merged may take of something.
func (s *sorter) share(bytes int64) int64 {
	if limit := s.x.Memory.Limit(); limit > 0 {
		return min(bytes, max(limit/mergeParts, 1<<10))
	}
	return bytes
}

// mergeParts is how many shares the memory of a query has for what runs take.
const mergeParts = 64

// write appends rows with their keys.
func (w *runWriter) write(keys [][]byte, b *column.Batch) error {
	err := w.run.write(keys, b)
	w.sorter.block = max(w.sorter.block, len(w.buf))
	return err
}

// add appends rows, which come in the order of the sorter.
func (w *runWriter) add(b *column.Batch) error {
	by := w.sorter.by
	if err := by.load(b); err != nil {
		return err
	}
	keys := make([][]byte, b.Len)
	for i := range keys {
		keys[i] = bytes.Clone(by.of(i))
	}
	return w.write(keys, b)
}

// rows yields the rows that were added, sorted.
func (s *sorter) rows(ctx context.Context) stream {
	return func(yield func(*column.Batch, error) bool) {
		// What is above needs room for a batch before it can go on in files.
		short := s.x.SpillDir != "" && !s.x.Memory.left(roomAbove)
		if s.kept.n+len(s.parts) > 0 && (short || len(s.runs) > 0) {
			if err := s.toDisk(); err != nil {
				yield(nil, err)
				return
			}
		}
		switch {
		case len(s.runs) > 0:
			s.fromRuns(ctx, yield)
		case len(s.parts) > 0:
			s.fromParts(yield)
		default:
			s.fromMemory(yield)
		}
	}
}

func (s *sorter) fromMemory(yield func(*column.Batch, error) bool) {
	order, err := s.order()
	if err != nil {
		yield(nil, err)
		return
	}
	if s.keep > 0 && int64(len(order)) > s.keep {
		order = order[:s.keep]
	}
	for group := range slices.Chunk(order, column.Size) {
		s.pick = s.pick[:0]
		for _, o := range group {
			s.pick = append(s.pick, o.row)
		}
		gather(&s.part, s.kept.batch(), s.pick)
		if !yield(&s.part, nil) {
			return
		}
	}
}

// fromRuns merges the runs.
func (s *sorter) fromRuns(ctx context.Context, yield func(*column.Batch, error) bool) {
	if err := s.reduce(ctx); err != nil {
		yield(nil, err)
		return
	}
	merged(ctx, s.runs, &rowsWanted{s.keep, column.Size})(yield)
}

// reduce merges runs into longer ones until what is left fits the memory together, and takes the memory of that. Runs that follow each other become one in
// their place, so that rows with equal keys stay in their order.
func (s *sorter) reduce(ctx context.Context) error {
	s.merging.release()
	for {
		each := 2*int64(s.block) + s.share(runBuffer) // its buffer, what was read through it, and columns made of that
		most := len(s.runs)
		if limit := s.x.Memory.Limit(); limit > 0 {
			most = int(max((limit-s.x.Memory.Used())/2/each, 2))
		}
		if most >= len(s.runs) {
			return s.merging.grow(int64(len(s.runs)) * each)
		}
		if err := s.merging.grow(int64(most) * each); err != nil {
			return err
		}
		several := s.runs[:most:most]
		rest := s.runs[most:]
		s.runs = nil
		w, err := s.newRun()
		if err == nil {
			err = s.join(ctx, w, several)
		}
		s.runs = append(s.runs, append(slices.DeleteFunc(several, func(r *run) bool { return r.file == nil }), rest...)...)
		s.merging.release()
		if err != nil {
			return err
		}
	}
}

// join writes the rows of runs, merged, to another one.
func (s *sorter) join(ctx context.Context, w *runWriter, runs []*run) error {
	for b, err := range merged(ctx, runs, &rowsWanted{s.keep, runRows / 4}) {
		if err == nil {
			err = w.add(b)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range runs {
		r.close()
	}
	return w.rewind()
}

// rowsWanted is how many rows are wanted at all, 0 for all of them, and at once.
type rowsWanted struct {
	all    int64
	atOnce int
}

// merged yields the rows of runs in the order of their keys, those of the first run first where they are equal.
func merged(ctx context.Context, runs []*run, want *rowsWanted) stream {
	return func(yield func(*column.Batch, error) bool) {
		for _, r := range runs {
			if err := r.next(); err != nil {
				yield(nil, err)
				return
			}
		}
		tree := newHeap(len(runs), func(a, b int) bool {
			c := bytes.Compare(runs[a].key(), runs[b].key())
			return c < 0 || c == 0 && a < b
		})
		out, left := newLooseRows(), want.all
		flush := func() bool {
			more := out.n == 0 || yield(out.batch(), nil)
			out = newLooseRows()
			return more
		}
		for tree.len() > 0 {
			r := runs[tree.top()]
			if err := out.addRow(&r.batch, r.at); err != nil {
				yield(nil, err)
				return
			}
			if left--; left == 0 {
				break
			}
			if out.n == want.atOnce {
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
				if !flush() {
					return
				}
			}
			if r.at++; r.at == r.batch.Len {
				if err := r.next(); err != nil {
					yield(nil, err)
					return
				}
			}
			if r.at == r.batch.Len {
				tree.drop()
			} else {
				tree.fix()
			}
		}
		flush()
	}
}
