package exec

import (
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// joined collects the rows of a join and yields them in batches.
type joined struct {
	yield   func(*column.Batch, error) bool
	stopped bool // by yield
	inputs  []joinedInput
	out     column.Batch
	n       int // rows that wait

	times    []int64
	entities names
	tags     names

	// constant is what a value shows where an input lacks the entity and tags altogether; nil = NULL.
	constant *float64
	lacks    func(input int, tags name) bool
}

// joinedInput is the rows of one input that wait: picks of a batch.
type joinedInput struct {
	*plan.JoinInput
	types  []column.Type // of its columns, as far as known
	source *column.Batch
	picks  []int32 // rows of source, absent or lacking
	holes  bool    // some are absent or lacking
	first  int     // of its columns in the result
}

// lacking is a row of an input that has nothing with the key: its value may be a constant.
const lacking = -2

func newJoined(j *plan.Join, yield func(*column.Batch, error) bool) *joined {
	w := &joined{yield: yield}
	for i := range j.Inputs {
		in := &j.Inputs[i]
		w.inputs = append(w.inputs, joinedInput{JoinInput: in, types: typesOf(in.In, in.Width), first: len(w.out.Columns)})
		w.out.Columns = append(w.out.Columns, make([]*column.Vector, in.Width)...)
	}
	w.out.Columns = append(w.out.Columns, make([]*column.Vector, joinedColumns)...)
	return w
}

// typesOf returns the types of the columns of an operator; Null stands for those that are not known without running it.
func typesOf(op plan.Operator, width int) []column.Type {
	types := make([]column.Type, width)
	switch op := op.(type) {
	case *plan.Scan:
		for i := range min(width, len(op.Columns)) {
			types[i] = op.Columns[i].Type
		}
	case *plan.View:
		for i := range min(width, len(op.Query.Columns)) {
			types[i] = op.Query.Columns[i].Type
		}
	case *plan.Filter:
		return typesOf(op.In, width)
	}
	return types
}

// add joins the groups of m.
func (w *joined) add(m *matcher) error {
	tuples, err := m.match()
	if err != nil {
		return err
	}
	for len(tuples) > 0 {
		if err := w.take(m); err != nil || w.stopped {
			return err
		}
		width := len(w.inputs)
		n := min(len(tuples)/width, column.Size-w.n)
		for i := range n {
			w.row(m, tuples[i*width:(i+1)*width])
		}
		w.n += n
		tuples = tuples[n*width:]
	}
	return nil
}

// take makes the batches of m those that rows are picked from; what waits of others is yielded before.
func (w *joined) take(m *matcher) error {
	full := w.n >= column.Size
	for i := range m.groups {
		g := &m.groups[i]
		full = full || g.batch != nil && w.inputs[i].source != nil && g.batch != w.inputs[i].source
	}
	if full {
		if err := w.flush(); err != nil || w.stopped {
			return err
		}
	}
	for i := range m.groups {
		if g := &m.groups[i]; g.batch != nil {
			w.inputs[i].source = g.batch
		}
	}
	return nil
}

func (w *joined) row(m *matcher, t tuple) {
	first, at := present(t)
	in, b := &m.inputs[first], m.groups[first].batch
	tags := nameAt(b, in.Tags, at)
	for i, row := range t {
		in := &w.inputs[i]
		if row == absent {
			in.holes = true
			if w.constant != nil && w.lacks(i, tags) {
				row = lacking
			}
		}
		in.picks = append(in.picks, row)
	}
	w.times = append(w.times, timeAt(b, in.Time, at))
	w.entities.add(nameAt(b, in.Entity, at))
	w.tags.add(tags)
}

// names collects a column of texts.
type names struct {
	texts []string
	nulls []bool
	some  bool // of them are NULL
}

func (c *names) add(n name) {
	c.texts, c.nulls, c.some = append(c.texts, n.text), append(c.nulls, !n.some), c.some || !n.some
}

// vector returns what was collected, valid until the next add after reset.
func (c *names) vector() *column.Vector {
	v := &column.Vector{Type: column.String, Len: len(c.texts), Strings: c.texts}
	if c.some {
		v.Nulls = c.nulls
	}
	return v
}

func (c *names) reset() { c.texts, c.nulls, c.some = c.texts[:0], c.nulls[:0], false }

// flush yields the rows that wait.
func (w *joined) flush() error {
	if w.n > 0 && !w.stopped {
		w.out.Len = w.n
		for i := range w.inputs {
			w.gather(&w.inputs[i])
		}
		last := len(w.out.Columns) - joinedColumns
		w.out.Columns[last+joinedTime] = timesVector(w.times)
		w.out.Columns[last+joinedEntity] = w.entities.vector()
		w.out.Columns[last+joinedTags] = w.tags.vector()
		w.stopped = !w.yield(&w.out, nil)
	}
	for i := range w.inputs {
		in := &w.inputs[i]
		in.source, in.picks, in.holes = nil, in.picks[:0], false
	}
	w.n, w.times = 0, w.times[:0]
	w.entities.reset()
	w.tags.reset()
	return nil
}

// timesVector makes a column of times, of which math.MinInt64 is NULL.
func timesVector(times []int64) *column.Vector {
	v := &column.Vector{Type: column.Bigint, Len: len(times), Ints: times}
	for i, t := range times {
		if t == math.MinInt64 {
			if v.Nulls == nil {
				v.Nulls = make([]bool, len(times))
			}
			v.Nulls[i] = true
		}
	}
	return v
}

func (w *joined) gather(in *joinedInput) {
	for c := range in.Width {
		dst := &w.out.Columns[in.first+c]
		switch {
		case in.source == nil:
			*dst = constant(in.types[c], column.Value{})
			(*dst).Len = len(in.picks)
		case in.holes:
			*dst = padded(in.source.Columns[c], in.picks)
		default:
			if *dst != nil && (*dst).Const {
				*dst = nil // its memory is that of another
			}
			*dst = in.source.Columns[c].Gather(in.picks, *dst)
		}
		if w.constant != nil && c == in.Value && in.holes {
			*dst = withConstant(*dst, in.picks, *w.constant)
		}
	}
}

// padded returns the rows of v that picks name, NULL where they name none.
func padded(v *column.Vector, picks []int32) *column.Vector {
	out := &column.Vector{Type: v.Type, Len: len(picks)}
	if v.Type == column.Null {
		return out
	}
	rows := make([]int32, len(picks)) // of v; any for NULL
	out.Nulls = make([]bool, len(picks))
	for i, row := range picks {
		if row < 0 {
			out.Nulls[i] = true
			continue
		}
		out.Nulls[i] = v.IsNull(int(row))
		rows[i] = int32(v.Index(int(row)))
	}
	out.Ints, out.Floats, out.Strings, out.Values = choose(v.Ints, rows), choose(v.Floats, rows), choose(v.Strings, rows), choose(v.Values, rows)
	for i, row := range picks {
		if row < 0 || len(v.Exact) == 0 {
			continue
		}
		if d, ok := v.ExactAt(int(row)); ok {
			out.Exact = append(out.Exact, core.DecimalAt{Index: uint32(i), Decimal: d})
		}
	}
	return out
}

// withConstant returns v with a number in the rows that are lacking.
func withConstant(v *column.Vector, picks []int32, number float64) *column.Vector {
	b := column.NewBuilder(v.Type)
	if v.Type == column.Null {
		b = column.NewBuilder(column.Double)
	}
	for i, row := range picks {
		if row == lacking {
			b.AppendFloat(number)
		} else {
			b.AppendRow(v, i)
		}
	}
	return b.Vector()
}
