package query

import (
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/cells"
)

// CSV prints results as a table, one row a sample.
type CSV struct{ columns []csvColumn }

type csvColumn struct {
	kind string // time, date, entity, metric, value; "t:" for a tag
	tag  string
}

// NewCSV takes the names of the columns: time, date, entity, metric, value or t:NAME for a tag. Without any the table has time, entity, metric, a
// column for each of the requested tags, and value.
func NewCSV(columns, requestedTags []string) (*CSV, error) {
	if len(columns) == 0 {
		columns = []string{"time", "entity", "metric"}
		for _, tag := range requestedTags {
			columns = append(columns, "t:"+tag)
		}
		columns = append(columns, "value")
	}
	c := &CSV{}
	for _, name := range columns {
		name = strings.TrimSpace(name)
		switch lower := strings.ToLower(name); lower {
		case "time", "date", "entity", "metric", "value":
			c.columns = append(c.columns, csvColumn{kind: lower})
		default:
			tag, ok := strings.CutPrefix(lower, "t:")
			if !ok || tag == "" {
				return nil, core.Errorf(core.Invalid, "IllegalArgumentException: unknown column '%s': use time, date, entity, metric, t:NAME or value", name)
			}
			c.columns = append(c.columns, csvColumn{kind: "t:", tag: tag})
		}
	}
	return c, nil
}

// AppendHeader appends the first line. Tags are named without the prefix.
func (c *CSV) AppendHeader(b []byte) []byte {
	for i, column := range c.columns {
		if i > 0 {
			b = append(b, ',')
		}
		if column.tag != "" {
			b = cells.AppendText(b, column.tag)
		} else {
			b = append(b, column.kind...)
		}
	}
	return append(b, '\n')
}

// AppendRows appends a line for each sample of r.
func (c *CSV) AppendRows(b []byte, r *Result) []byte {
	decimals := r.Samples.Decimals
	instants := cells.NewInstants(nil, "", "")
	for i, t := range r.Samples.Times {
		var exact *core.Decimal
		if len(decimals) > 0 && int(decimals[0].Index) == i {
			exact, decimals = &decimals[0].Decimal, decimals[1:]
		}
		for j, column := range c.columns {
			if j > 0 {
				b = append(b, ',')
			}
			switch column.kind {
			case "time":
				b = cells.AppendInteger(b, int64(t))
			case "date":
				b = appendShortDate(b, t, &instants)
			case "entity":
				b = cells.AppendText(b, r.Entity)
			case "metric":
				b = cells.AppendText(b, r.Metric)
			case "value":
				b = r.appendCellValue(b, r.Samples.Values[i], exact)
			default:
				b = cells.AppendText(b, r.Tags.Value(column.tag))
			}
		}
		b = append(b, '\n')
	}
	return b
}

// appendShortDate leaves out the fraction of whole seconds.
func appendShortDate(b []byte, t core.Time, instants *cells.Instants) []byte {
	b = instants.Append(b, t)
	if t%1000 == 0 {
		b = append(b[:len(b)-len(".000Z")], 'Z')
	}
	return b
}

func (r *Result) appendCellValue(b []byte, v float64, exact *core.Decimal) []byte {
	switch {
	case exact != nil:
		return r.appendDigits(b, *exact)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "NaN"...)
	case r.Computed:
		return calc.AppendComputed(b, v)
	}
	return calc.AppendStored(b, v)
}
