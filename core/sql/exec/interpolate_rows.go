package exec

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// pointRows collects points of one series and makes rows of them: time and value are those of the points, the series that of its rows, and everything else goes
// on from the row that a point carries.
type pointRows struct {
	columns pointColumns
	times   []int64
	values  []float64
	carried []int32 // rows of the series; absent = none
	raw     []bool  // the row itself
	of      []int32 // the rows whose numbers these are, unchanged; -1: computed
}

// pointColumns are the places of columns in the rows of a series; -1 = there is none.
type pointColumns struct {
	time, value int
	also        []int // other columns that show the time
	series      []int // columns that are the same in all rows of a series
}

// pointColumnsOf finds the columns of an input of a join or of a view.
func pointColumnsOf(op plan.Operator, c pointColumns) pointColumns {
	switch op := op.(type) {
	case *plan.Scan:
		for i, s := range op.Columns {
			switch s.Kind {
			case plan.SourceTime:
				c.also = append(c.also, i)
			case plan.SourceValue, plan.SourceText, plan.SourceInterval:
			default:
				c.series = append(c.series, i)
			}
		}
	case *plan.View:
		for i, column := range op.Query.Columns {
			switch column.Property {
			case "atsd:time", "atsd:datetime":
				c.also = append(c.also, i)
			case "atsd:metric", "atsd:entity", "atsd:seriesTag", "atsd:entityTag", "atsd:metricTag":
				c.series = append(c.series, i)
			}
		}
		c.series = append(c.series, op.Metric, op.Entity, op.Tags)
	}
	return c
}

func (p *pointRows) len() int { return len(p.times) }

func (p *pointRows) reset() {
	p.times, p.values, p.carried, p.raw, p.of = p.times[:0], p.values[:0], p.carried[:0], p.raw[:0], p.of[:0]
}

// add takes a point; it carries the number of a row, plus 1, or 0 for none.
func (p *pointRows) add(at point[int32]) {
	p.times, p.values = append(p.times, int64(at.time)), append(p.values, at.value)
	p.carried, p.raw = append(p.carried, at.carried-1), append(p.raw, at.raw)
	of := int32(-1)
	if at.of != nil {
		of = *at.of - 1
	}
	p.of = append(p.of, of)
}

// addRow takes a row of the series as it is.
func (p *pointRows) addRow(time core.Time, row int32) {
	carried := row + 1
	p.add(point[int32]{reading[int32]{time: time, value: nan, carried: carried}, true, &carried})
}

// batch returns the rows of the points; one is a row of the series, the others are the rows of src that the points carry.
func (p *pointRows) batch(src *column.Batch, one int32) *column.Batch {
	out := &column.Batch{Len: p.len()}
	any := make([]int32, p.len())
	for i, row := range p.carried {
		if any[i] = row; row < 0 {
			any[i] = one
		}
	}
	for c, v := range src.Columns {
		var made *column.Vector
		switch {
		case c == p.columns.time || slices.Contains(p.columns.also, c):
			made = &column.Vector{Type: v.Type, Len: p.len(), Ints: append([]int64(nil), p.times...)}
		case c == p.columns.value:
			made = p.valueColumn(v)
		case slices.Contains(p.columns.series, c):
			made = v.Gather(any, nil)
		default:
			made = padded(v, p.carried)
		}
		out.Columns = append(out.Columns, made)
	}
	return out
}

func (p *pointRows) valueColumn(v *column.Vector) *column.Vector {
	out := &column.Vector{Type: v.Type, Len: p.len(), Floats: append([]float64(nil), p.values...)}
	if !out.Type.Numeric() {
		out.Type = column.Double
	}
	for i, raw := range p.raw {
		if !raw {
			continue
		}
		row := int(p.carried[i])
		if v.IsNull(row) {
			if out.Nulls == nil {
				out.Nulls = make([]bool, p.len())
			}
			out.Nulls[i] = true
			continue
		}
		out.Floats[i] = v.Float(row)
	}
	for i, row := range p.of {
		if row < 0 || v.Exact == nil && v.Ints == nil || v.IsNull(int(row)) {
			continue
		}
		if d, ok := v.Value(int(row)).Decimal(); ok {
			out.Exact = append(out.Exact, core.DecimalAt{Index: uint32(i), Decimal: d})
		}
	}
	return out
}
