package exec

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// Groups that do not fit the memory are made in parts. The input is read again, from its beginning, and its rows are dealt out to files (partition.go). As a
// file has all rows of a group, in their order, its groups are complete and come out as if there were no others. They go to a sort, which brings them into the
// order that they would have had.

// partedGroup makes the groups of a plan in parts.
type partedGroup struct {
	x     *execution
	input *plan.Group // of the rows as they come
	dealt *plan.Group // of the rows in the files; nil = no row was seen
	first core.Time   // of the whole input, where the periods depend on it; else MaxInt64
	out   *sorter
	store []int // columns of the input that the files have
	width int   // how many columns the input has, behind which computed keys are put in the files
}

// usage is what groupings hold.
type usage struct {
	bytes   int64  // of all
	largest int64  // of the values that one group keeps
	name    string // of a part of the groups that does not depend on others; "" = there is none
	several bool   // there are parts with other names
}

func (u *usage) add(o usage) {
	u.bytes += o.bytes
	u.largest = max(u.largest, o.largest)
	u.several = u.several || o.several || u.name != "" && o.name != "" && u.name != o.name
	u.name = cmp.Or(u.name, o.name)
}

// usage returns what g and its workers hold, or held.
func (g *grouping) usage() usage {
	u := usage{bytes: g.taken + g.kept.taken + g.states.taken, largest: g.states.largest()}
	parts := g.names
	if g.periods != nil {
		u.bytes += g.periods.taken
		if g.chained() {
			parts, u.several = g.baseNames, len(g.periods.firsts) > 1
		}
	}
	if len(parts) > 0 {
		u.name, u.several = "group "+parts[0], u.several || len(parts) > 1
	}
	u.add(g.workers)
	return u
}

// usage returns what the grouping of a series holds.
func (w *groupWorker) usage() usage {
	u := w.grouping.usage()
	if w.ascending && len(w.names) > 0 {
		u.name = "series " + strconv.Itoa(int(w.rank)) // its groups have no names
	}
	return u
}

// chained reports whether periods with the same other keys depend on each other.
func (g *grouping) chained() bool {
	return g.periods != nil && (g.fills() || g.plan.Period.Align == ast.AlignFirst || slices.ContainsFunc(g.states.states, looksBack))
}

// looksBack reports whether a function looks at the values of the period before.
func looksBack(s state) bool {
	if d, ok := s.(*distinctState); ok {
		s = d.state
	}
	_, ok := s.(*stepState)
	return ok
}

// largest returns how many bytes the values of one group take, of the group that keeps most.
func (g *aggregates) largest() (most int64) {
	for _, s := range g.states {
		switch s := s.(type) {
		case *rankState:
			for _, list := range s.values {
				most = max(most, int64(cap(list))*8)
			}
		case *stepState:
			most = max(most, s.largest())
		case *weightedState:
			most = max(most, s.largest())
		case *distinctState:
			most = max(most, s.largest())
		}
	}
	return most
}

func (s *timedState) largest() (most int64) {
	for _, list := range s.samples {
		most = max(most, int64(cap(list))*24)
	}
	return most
}

func (d *distinctState) largest() (most int64) {
	of := map[uint32]int64{}
	for key := range d.seen {
		id := uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24
		of[id] += int64(len(key)) + 48
		most = max(most, of[id])
	}
	return most
}

// divisible reports whether parts of the groups can be expected to fit where all of them do not: it is they that hold the memory, and no single one of them
// most of it.
func (g *grouping) divisible() bool {
	if g.x.SpillDir == "" || len(g.plan.Keys) == 0 {
		return false
	}
	u := g.usage()
	return u.several && u.bytes >= g.x.Memory.Limit()/8 && u.largest <= u.bytes/8*7
}

// newPartedGroup makes the groups of g, which has met the limit of the memory.
func (x *execution) newPartedGroup(g *grouping) *partedGroup {
	s := &partedGroup{x: x, input: g.plan, first: math.MaxInt64}
	if g.periods != nil {
		s.first = g.periods.first
	}
	s.out = x.newSorter(g.sortKeys(), 0)
	return s
}

// run yields the groups.
func (s *partedGroup) run(ctx context.Context, yield func(*column.Batch, error) bool) error {
	defer s.out.close()
	err := s.divide(ctx, round{plan: s.input, in: s.x.open(ctx, s.input.In)})
	if err == nil {
		err = s.out.giveWay(2)
	}
	if err != nil {
		return err
	}
	s.out.rows(ctx)(yield)
	return nil
}

// round is rows that are dealt out.
type round struct {
	plan  *plan.Group // of the rows
	in    stream
	size  int64 // of the file that they come from; 0 = they are the input
	level int   // how often they were dealt out
}

// divide deals rows out and makes the groups of each file.
func (s *partedGroup) divide(ctx context.Context, r round) error {
	files, err := s.x.newPartitions(r.size)
	defer files.close()
	if err == nil {
		err = s.deal(ctx, r, files)
	}
	if err != nil {
		return err
	}
	return files.each(ctx, func(f *run) error {
		if err := s.out.giveWay(4); err != nil {
			return err
		}
		out, divisible, err := s.groups(ctx, f)
		if divisible && r.level+1 < partLevels {
			return s.divide(ctx, round{s.dealt, f.batches(ctx), f.size, r.level + 1})
		}
		if err != nil {
			return err
		}
		for b := range inSlices(out, sorterRows) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.out.add(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// sorterRows is how many rows a sorter is given at once: little enough for a small memory.
const sorterRows = 256

// groups returns the groups of a file. On an error it says whether parts of the file may do.
func (s *partedGroup) groups(ctx context.Context, r *run) (out *column.Batch, divisible bool, err error) {
	g, err := s.x.newGrouping(s.dealt)
	if err != nil {
		return nil, false, err
	}
	defer g.close()
	if g.periods != nil {
		g.periods.first = s.first
	}
	if err = g.take(r.batches(ctx)); err == nil {
		out, err = g.rows(ctx)
	}
	return out, isShortage(err) && g.divisible(), err
}

// dealer finds the file of each row.
type dealer struct {
	*grouping // its keys and periods; it has no groups
	files     *partitions
	whole     bool // the start of the period counts

	to  []int32 // the files of the rows at hand
	row column.Batch
}

// deal deals rows out.
func (s *partedGroup) deal(ctx context.Context, r round, files *partitions) error {
	g, err := s.x.newGrouping(r.plan)
	if err != nil {
		return err
	}
	defer g.close()
	d := &dealer{grouping: g, files: files, whole: g.periods != nil && !g.chained()}
	if g.periods != nil {
		g.periods.first = s.first
	}
	for b, err := range r.in {
		if err = cmp.Or(err, ctx.Err()); err == nil && b.Len > 0 {
			err = d.deal(s, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deal deals rows out.
func (d *dealer) deal(s *partedGroup, b *column.Batch) error {
	if s.dealt == nil {
		s.dealt = s.planStored(len(b.Columns))
	}
	if err := d.x.eval(d.plan.Keys, b, d.keys); err != nil {
		return err
	}
	d.to = grown(d.to[:0], b.Len)
	if err := d.places(b, d.to); err != nil {
		return err
	}
	if d.plan == s.input {
		s.stored(&d.row, b, d.keys)
		b = &d.row
	}
	return d.files.deal(b, d.to)
}

// places sets to to the files of the rows, whose keys are evaluated.
func (d *dealer) places(b *column.Batch, to []int32) error {
	if d.whole {
		return d.periodPlaces(b, to)
	}
	except, keyOf := -1, d.keyOf
	if d.periods != nil {
		except, keyOf = d.plan.PeriodKey, d.baseKey
	}
	if d.steady(except) {
		n := d.files.of(keyOf(0))
		for i := range to {
			to[i] = n
		}
		return nil
	}
	for i := range to {
		to[i] = d.files.of(keyOf(i))
	}
	return nil
}

// periodPlaces does it where rows with the same other keys go to different files, by the start of their period.
func (d *dealer) periodPlaces(b *column.Batch, to []int32) error {
	times := d.keys[d.plan.PeriodKey]
	w := periodWalk{grouping: d.grouping, intervals: d.intervals(b), zones: d.zones(b), steady: d.steady(d.plan.PeriodKey)}
	for i := 0; i < b.Len; {
		if times.IsNull(i) {
			to[i] = d.files.of(d.baseKey(i))
			i++
			continue
		}
		ok, err := w.locate(core.Time(times.Ints[times.Index(i)]), i)
		if err != nil {
			return err
		}
		n := int32(-1)
		if w.id = -1; ok {
			d.base = binary.LittleEndian.AppendUint64(d.base, uint64(w.place.start))
			n, w.id = d.files.of(d.base), 0
		}
		for next := w.until(times, i); i < next; i++ {
			to[i] = n
		}
	}
	return nil
}

// stored sets dst to the columns of b that the files have, and the keys that are computed.
func (s *partedGroup) stored(dst, b *column.Batch, keys []*column.Vector) {
	dst.Len, dst.Columns = b.Len, dst.Columns[:0]
	nothing := column.Constant(column.NullValue, b.Len)
	for range s.width {
		dst.Columns = append(dst.Columns, nothing)
	}
	for _, c := range s.store {
		if c < s.width {
			dst.Columns[c] = b.Columns[c]
		}
	}
	for i, key := range s.dealt.Keys {
		if key.(place).column >= s.width {
			dst.Columns = append(dst.Columns, keys[i])
		}
	}
}

// planStored returns the plan over the rows of the files, for an input of so many columns. Keys are computed once, as they may not be the same each time.
func (s *partedGroup) planStored(width int) *plan.Group {
	p := *s.input
	p.In, p.Keys, s.width = nil, nil, width
	next := width
	for _, key := range s.input.Keys {
		at, ok := s.x.inputOf(key)
		if !ok {
			at = next
			next++
		}
		p.Keys = append(p.Keys, place{at, key.Type()})
		s.store = append(s.store, at)
	}
	for _, node := range p.Carried {
		s.store = append(s.store, expr.Columns(node)...)
	}
	for _, a := range p.Aggregates {
		for _, arg := range a.Args {
			s.store = append(s.store, expr.Columns(arg)...)
		}
		if a.Time != nil {
			s.store = append(s.store, expr.Columns(a.Time)...)
		}
	}
	if p.Period != nil {
		s.store = append(s.store, p.Period.ZoneKey, p.Period.Interval)
	}
	slices.Sort(s.store)
	s.store = slices.DeleteFunc(slices.Compact(s.store), func(c int) bool { return c < 0 || c >= s.width })
	return &p
}
