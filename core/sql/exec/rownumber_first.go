package exec

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// firstRows numbers rows of which only the first few of each partition are wanted.
func (x *execution) firstRows(ctx context.Context, op *plan.RowNumber, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		most, _ := mostOf(op)
		if most < 1 {
			return
		}
		h := x.newHeld(op, int(most))
		defer h.release()
		next, stop := iter.Pull2(in)
		defer stop()
		for {
			b, err, ok := next()
			if !ok {
				break
			}
			if err == nil {
				err = cmp.Or(ctx.Err(), h.add(b))
			}
			if core.CodeOf(err) == core.TooLarge && x.SpillDir != "" && !h.lost {
				// There are many partitions: what is held and what follows is sorted, in files on disk.
				x.numbered(op, x.sorted(ctx, partitionKeys(op), 0, h.handOver(b, next)))(yield)
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		x.numbered(op, h.inOrder())(yield)
	}
}

// held is the first rows of each partition so far.
type held struct {
	account
	most       int
	partition  *keying
	order      *keying
	partitions map[string]*heldPartition
	touched    []*heldPartition // by the batch at hand
	rows       *rows            // in the order in which they arrived; those that were replaced stay until there are too many of them
	live       int              // rows of the partitions
	lost       bool             // a failure has lost rows
	fresh      []*heldRow
	pick       []int32
}

type heldPartition struct {
	key     string
	rows    []*heldRow // sorted; of equal ones the earlier first
	touched bool
}

// heldRow is a row of held.rows or, if at is negative, row -1-at of the batch at hand.
type heldRow struct {
	key []byte // of Order
	at  int32
}

// What a partition and a row take beside the bytes of their keys.
const (
	partitionBytes = 120
	heldRowBytes   = 64
)

func (x *execution) newHeld(op *plan.RowNumber, most int) *held {
	return &held{account: account{memory: x.Memory}, most: most, partition: x.newKeying(keysOf(op.Partition)), order: x.newKeying(op.Order),
		partitions: map[string]*heldPartition{}, rows: x.newRows()}
}

// release gives all memory back.
func (h *held) release() {
	h.account.release()
	h.rows.release()
}

// add takes the rows of a batch.
func (h *held) add(b *column.Batch) error {
	if err := h.partition.load(b); err != nil {
		return err
	}
	if err := h.order.load(b); err != nil {
		return err
	}
	if err := h.choose(b.Len); err != nil {
		return err
	}
	if err := h.store(b); err != nil {
		return err
	}
	if h.rows.n > 2*h.live+column.Size {
		return h.compact()
	}
	return nil
}

// choose offers n rows to their partitions. When all of them belong to one only the first ones are offered, which are found without keys.
func (h *held) choose(n int) error {
	if n == 0 {
		return nil
	}
	one := h.partition.constant()
	// In a column of several types numbers sort as texts, which only keys know.
	if mixed := func(v *column.Vector) bool { return v.Values != nil }; one && !slices.ContainsFunc(h.order.vectors, mixed) {
		p, err := h.find(h.partition.of(0))
		for _, i := range h.best(n) {
			if err == nil {
				err = h.offer(p, int(i))
			}
		}
		return err
	}
	var p *heldPartition
	for i := range n {
		var err error
		if p == nil || !one {
			p, err = h.find(h.partition.of(i))
		}
		if err == nil {
			err = h.offer(p, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// best returns the first ones of n rows, in order.
func (h *held) best(n int) []int32 {
	list := h.pick[:0]
	if v := h.order.vectors; h.most == 1 && len(v) == 1 && v[0].Ints != nil && v[0].Nulls == nil && !v[0].Const {
		h.pick = append(list, extreme(v[0].Ints[:n], h.order.keys[0].Desc))
		return h.pick
	}
	for i := range int32(n) {
		at := len(list)
		if at == h.most {
			if h.order.compare(i, list[at-1]) >= 0 {
				continue
			}
			at--
		} else {
			list = append(list, i)
		}
		for at > 0 && h.order.compare(i, list[at-1]) < 0 {
			list[at] = list[at-1]
			at--
		}
		list[at] = i
	}
	h.pick = list
	return list
}

// extreme returns where the least, or greatest, of some numbers comes first.
func extreme(numbers []int64, greatest bool) (at int32) {
	for i, n := range numbers {
		if best := numbers[at]; greatest && n > best || !greatest && n < best {
			at = int32(i)
		}
	}
	return at
}

// find returns the partition of a key.
func (h *held) find(key []byte) (*heldPartition, error) {
	if p, ok := h.partitions[string(key)]; ok {
		return p, nil
	}
	p := &heldPartition{key: string(key)}
	h.partitions[p.key] = p
	return p, h.grow(int64(len(key)) + partitionBytes)
}

// offer takes row i of the batch at hand if it is one of the first of its partition. It goes behind its equals, which came earlier.
func (h *held) offer(p *heldPartition, i int) error {
	key := h.order.of(i)
	n := len(p.rows)
	if n == h.most && bytes.Compare(key, p.rows[n-1].key) >= 0 {
		return nil
	}
	var r *heldRow
	if n == h.most {
		n--
		r = p.rows[n]
	} else {
		r = &heldRow{}
		p.rows = append(p.rows, r)
		h.live++
		if err := h.grow(int64(len(key)) + heldRowBytes); err != nil {
			r.at = int32(-1 - i)
			return err
		}
	}
	at := n
	for at > 0 && bytes.Compare(key, p.rows[at-1].key) < 0 {
		at--
	}
	copy(p.rows[at+1:n+1], p.rows[at:n])
	p.rows[at] = r
	r.key, r.at = append(r.key[:0], key...), int32(-1-i)
	if !p.touched {
		p.touched = true
		h.touched = append(h.touched, p)
	}
	return nil
}

// store keeps the rows of the batch at hand that are held.
func (h *held) store(b *column.Batch) error {
	h.fresh, h.pick = h.fresh[:0], h.pick[:0]
	for _, p := range h.touched {
		p.touched = false
		for _, r := range p.rows {
			if r.at < 0 {
				h.fresh = append(h.fresh, r)
			}
		}
	}
	h.touched = h.touched[:0]
	slices.SortFunc(h.fresh, func(x, y *heldRow) int { return cmp.Compare(y.at, x.at) })
	for _, r := range h.fresh {
		h.pick = append(h.pick, -1-r.at)
	}
	if len(h.pick) == 0 {
		return nil
	}
	from := int32(h.rows.n)
	if err := h.rows.add(b.Gather(h.pick)); err != nil {
		return err
	}
	for i, r := range h.fresh {
		r.at = from + int32(i)
	}
	return nil
}

// stored returns the rows that are held and stored, in the order in which they arrived.
func (h *held) stored() []*heldRow {
	list := make([]*heldRow, 0, h.live)
	for _, p := range h.partitions {
		for _, r := range p.rows {
			if r.at >= 0 {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(x, y *heldRow) int { return cmp.Compare(x.at, y.at) })
	return list
}

// compact forgets the rows that were replaced.
func (h *held) compact() error {
	list := h.stored()
	h.pick = h.pick[:0]
	for i, r := range list {
		h.pick = append(h.pick, r.at)
		r.at = int32(i)
	}
	left := h.rows.batch().Gather(h.pick)
	h.rows.reset()
	err := h.rows.add(left)
	h.lost = err != nil
	return err
}

// inOrder yields the rows that are held, partition by partition.
func (h *held) inOrder() stream {
	return func(yield func(*column.Batch, error) bool) {
		list := make([]*heldPartition, 0, len(h.partitions))
		for _, p := range h.partitions {
			list = append(list, p)
		}
		slices.SortFunc(list, func(a, b *heldPartition) int { return cmp.Compare(a.key, b.key) })
		h.pick = h.pick[:0]
		for _, p := range list {
			for _, r := range p.rows {
				h.pick = append(h.pick, r.at)
			}
		}
		for pick := range slices.Chunk(h.pick, column.Size) {
			if !yield(h.rows.batch().Gather(pick), nil) {
				return
			}
		}
	}
}

// handOver yields the rows that are held from batches before b, b itself and what follows: rows that were replaced are not among the first ones of all. The memory
// counts as free from its beginning on, so that whoever takes the rows can take it.
func (h *held) handOver(b *column.Batch, next func() (*column.Batch, error, bool)) stream {
	return func(yield func(*column.Batch, error) bool) {
		h.pick = h.pick[:0]
		for _, r := range h.stored() {
			h.pick = append(h.pick, r.at)
		}
		h.release()
		h.partitions = nil
		for pick := range slices.Chunk(h.pick, column.Size) {
			if !yield(h.rows.batch().Gather(pick), nil) {
				return
			}
		}
		h.rows.reset()
		for ok := true; ok; {
			var err error
			if !yield(b, err) {
				return
			}
			if b, err, ok = next(); ok && err != nil {
				yield(nil, err)
				return
			}
		}
	}
}
