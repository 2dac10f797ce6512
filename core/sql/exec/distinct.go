package exec

import (
	"cmp"
	"context"
	"errors"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// Rows are told apart by keys that are kept in memory, while there is room. Then the keys that are known go on to drop their repeats, and rows with others are
// numbered and dealt out to files (partition.go), each of which is treated in the same way afterwards. A sort brings the rows that are left into the order of
// their numbers.

// distinctRows finds the first row of each key.
type distinctRows struct {
	x     *execution
	width int     // columns of the key, the first ones
	all   int     // columns of the input; in files the number of the row follows
	out   *sorter // of the rows from files
}

// mapEntry is roughly what an entry of a map of texts costs beside the text.
const mapEntry = 64

// keyShare is the part of the memory that keys leave free: for the operators before and after, and for the files.
const keyShare = 4

// errEnough ends the reading of an input when nobody wants more rows.
var errEnough = errors.New("no more rows are wanted")

// distinct drops rows whose first columns equal those of an earlier row.
func (x *execution) distinct(ctx context.Context, op *plan.Distinct, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		d := &distinctRows{x: x, width: op.Width}
		late, err := d.pass(ctx, in, &distinctPass{emit: func(b *column.Batch) error {
			if !yield(b, nil) {
				return errEnough
			}
			return nil
		}})
		if late != nil {
			defer late.close()
			if err == nil {
				err = d.finish(ctx, late, yield)
			}
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// finish yields the rows that are left of those in files.
func (d *distinctRows) finish(ctx context.Context, late *partitions, yield func(*column.Batch, error) bool) error {
	d.out = d.x.newSorter([]plan.Key{{Expr: place{d.all, column.Bigint}}}, 0)
	defer d.out.close()
	err := d.parts(ctx, late, 1)
	if err == nil {
		err = d.out.giveWay(2)
	}
	if err != nil {
		return err
	}
	var out column.Batch
	for b, err := range d.out.rows(ctx) {
		if err != nil {
			return err
		}
		out.Len, out.Columns = b.Len, b.Columns[:d.all]
		if !yield(&out, nil) {
			return errEnough
		}
	}
	return nil
}

// parts gives what is left of the rows of each file to the sort.
func (d *distinctRows) parts(ctx context.Context, files *partitions, level int) error {
	return files.each(ctx, func(r *run) error {
		if err := d.out.giveWay(4); err != nil {
			return err
		}
		late, err := d.pass(ctx, r.batches(ctx), &distinctPass{level: level, size: r.size, emit: d.keep})
		if late != nil {
			defer late.close()
			if err == nil {
				err = d.parts(ctx, late, level+1)
			}
		}
		return err
	})
}

// keep gives rows to the sort.
func (d *distinctRows) keep(b *column.Batch) error {
	for part := range inSlices(b, sorterRows) {
		if err := d.out.add(part); err != nil {
			return err
		}
	}
	return d.out.giveWay(4)
}

// distinctPass goes through an input once.
type distinctPass struct {
	*distinctRows
	level int   // how often the rows were dealt out
	size  int64 // of the file that they come from; 0 = they are the input
	emit  func(*column.Batch) error

	held   account
	seen   map[string]struct{}
	late   *partitions // of the rows whose keys found no room; nil = all did
	number int64       // of the next row

	key      []byte
	pick, to []int32 // rows with new keys; the files of rows
	out, row column.Batch
}

// pass emits the first rows of the keys for which there is room. The rows whose keys found none are in the files that it returns; nil = all did.
func (d *distinctRows) pass(ctx context.Context, in stream, p *distinctPass) (late *partitions, err error) {
	p.distinctRows, p.held, p.seen = d, account{memory: d.x.Memory}, map[string]struct{}{}
	defer p.held.release()
	for b, err := range in {
		if err = cmp.Or(err, ctx.Err()); err == nil {
			err = p.take(b)
		}
		if err != nil {
			return p.late, err
		}
	}
	return p.late, nil
}

// take takes rows.
func (p *distinctPass) take(b *column.Batch) error {
	p.pick, p.to = p.pick[:0], grown(p.to[:0], b.Len)
	for i := range b.Len {
		p.to[i] = -1
		p.key = p.key[:0]
		for _, v := range b.Columns[:p.width] {
			p.key = appendKey(p.key, v, i)
		}
		if _, ok := p.seen[string(p.key)]; ok {
			continue
		}
		if p.late == nil {
			if err := p.know(); err != nil {
				return err
			}
		}
		if p.late == nil {
			p.pick = append(p.pick, int32(i))
		} else {
			p.to[i] = p.late.of(p.key)
		}
	}
	if p.late != nil {
		if err := p.deal(b); err != nil {
			return err
		}
	}
	if len(p.pick) < b.Len {
		gather(&p.out, b, p.pick)
		b = &p.out
	}
	if b.Len == 0 {
		return nil
	}
	return p.emit(b)
}

// know notes the key at hand, which is new, or begins with files when there is no room for it.
func (p *distinctPass) know() error {
	files, room := p.x.SpillDir != "" && p.level < partLevels, p.x.Memory.left(keyShare)
	var err error
	if room || !files {
		if err = p.held.grow(int64(len(p.key)) + mapEntry); err == nil {
			p.seen[string(p.key)] = struct{}{}
			return nil
		}
	}
	if files {
		p.late, err = p.x.newPartitions(p.size)
	}
	return err
}

// deal writes the rows to the files that they were given, with their numbers, which those from files have.
func (p *distinctPass) deal(b *column.Batch) error {
	if p.level > 0 {
		return p.late.deal(b, p.to)
	}
	p.all = len(b.Columns)
	numbers := &column.Vector{Type: column.Bigint, Len: b.Len, Ints: make([]int64, b.Len)}
	for i := range numbers.Ints {
		numbers.Ints[i] = p.number + int64(i)
	}
	p.number += int64(b.Len)
	p.row.Len, p.row.Columns = b.Len, append(append(p.row.Columns[:0], b.Columns...), numbers)
	return p.late.deal(&p.row, p.to)
}
