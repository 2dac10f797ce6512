// Package format writes the rows of a result as CSV and as JSON, and what describes its columns.
//
//	format.go     cells and rows of both formats
//	metadata.go   the description of a table: JSON-LD, and lines of comments
package format

import (
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/cells"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Options say how rows are written.
type Options struct {
	JSON   bool // elements of a JSON array, each an array of cells; otherwise CSV: texts and timestamps in quotes, NULL as nothing
	Millis bool // timestamps are Unix milliseconds
	Width  int  // columns of a row; those behind them are not shown
	// Fraction are the columns whose whole numbers have a fraction in JSON, 1.0; nil for none.
	Fraction []bool
}

// Rows appends rows. It belongs to one goroutine.
type Rows struct {
	Options
	some    bool // a row was appended
	instant cells.Instants
	writers []func(dst []byte, i int) []byte // of the columns of the batch at hand
	once    []byte                           // the cells of constant columns, one after another
}

// NewRows returns Rows without any yet.
func NewRows(o Options) *Rows {
	return &Rows{Options: o, instant: cells.NewInstants(nil, `"`, `"`)}
}

// Chunk is how many rows a caller appends at most before it looks at what it has.
const Chunk = 1024

// Append appends the rows of a batch from one up to another.
func (r *Rows) Append(dst []byte, b *column.Batch, from, to int) []byte {
	r.prepare(b.Columns[:r.Width])
	for i := from; i < to; i++ {
		switch {
		case !r.JSON:
		case r.some:
			dst = append(dst, `,[`...)
		default:
			dst = append(dst, '[')
		}
		r.some = true
		for j, write := range r.writers {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = write(dst, i)
		}
		if r.JSON {
			dst = append(dst, ']')
		} else {
			dst = append(dst, '\n')
		}
	}
	return dst
}

// prepare chooses how the cells of each column are written. The text of a constant is made once a batch.
func (r *Rows) prepare(columns []*column.Vector) {
	r.writers, r.once = r.writers[:0], r.once[:0]
	for j, v := range columns {
		write := r.writer(v)
		if r.JSON && j < len(r.Fraction) && r.Fraction[j] {
			write = withFraction(write)
		}
		if v.Const {
			begin := len(r.once)
			r.once = write(r.once, 0)
			text := r.once[begin:len(r.once):len(r.once)]
			write = func(dst []byte, _ int) []byte { return append(dst, text...) }
		}
		r.writers = append(r.writers, write)
	}
}

func (r *Rows) writer(v *column.Vector) func(dst []byte, i int) []byte {
	write := r.present(v)
	if v.Nulls == nil {
		return write
	}
	return func(dst []byte, i int) []byte {
		if v.Nulls[i] {
			return r.null(dst)
		}
		return write(dst, i)
	}
}

// withFraction adds a fraction to whole numbers.
func withFraction(write func(dst []byte, i int) []byte) func(dst []byte, i int) []byte {
	return func(dst []byte, i int) []byte {
		begin := len(dst)
		dst = write(dst, i)
		for _, c := range dst[begin:] {
			if c != '-' && (c < '0' || c > '9') {
				return dst // null, a word in quotes, or it has one
			}
		}
		return append(dst, ".0"...)
	}
}

// present writes cells that are not NULL.
func (r *Rows) present(v *column.Vector) func(dst []byte, i int) []byte {
	switch {
	case v.Type == column.Null:
		return func(dst []byte, _ int) []byte { return r.null(dst) }
	case v.Values != nil:
		return func(dst []byte, i int) []byte { return r.value(dst, v.Values[i]) }
	case v.Type == column.Boolean:
		return func(dst []byte, i int) []byte { return boolean(dst, v.Ints[i]) }
	case v.Type == column.Timestamp && !r.Millis:
		return func(dst []byte, i int) []byte { return r.instant.Append(dst, core.Time(v.Ints[i])) }
	case v.Ints != nil:
		return func(dst []byte, i int) []byte { return cells.AppendInteger(dst, v.Ints[i]) }
	case v.Exact != nil:
		return r.exact(v)
	case v.Floats != nil:
		return func(dst []byte, i int) []byte { return r.number(dst, v.Floats[i]) }
	}
	return func(dst []byte, i int) []byte { return r.text(dst, v.Strings[i]) }
}

// exact writes numbers of which some have more digits than a double. Rows are written in ascending order.
func (r *Rows) exact(v *column.Vector) func(dst []byte, i int) []byte {
	rest := v.Exact
	return func(dst []byte, i int) []byte {
		for len(rest) > 0 && int(rest[0].Index) < i {
			rest = rest[1:]
		}
		if len(rest) > 0 && int(rest[0].Index) == i {
			return calc.AppendDecimal(dst, rest[0].Significand, rest[0].Exponent)
		}
		return r.number(dst, v.Floats[i])
	}
}

func (r *Rows) null(dst []byte) []byte {
	if r.JSON {
		return append(dst, `null`...)
	}
	return dst
}

// value writes a value by its own type. A number may bring its spelling.
func (r *Rows) value(dst []byte, v column.Value) []byte {
	switch {
	case v.Type == column.Null:
		return r.null(dst)
	case v.Type == column.Boolean:
		return boolean(dst, v.Int)
	case v.Type == column.String:
		return r.text(dst, v.Text)
	case v.Type == column.Timestamp && !r.Millis:
		return r.instant.Append(dst, core.Time(v.Int))
	case v.Text != "":
		return append(dst, v.Text...)
	case v.Whole || v.Type == column.Timestamp:
		return cells.AppendInteger(dst, v.Int)
	}
	return r.number(dst, v.Float)
}

func boolean(dst []byte, v int64) []byte {
	if v != 0 {
		return append(dst, `true`...)
	}
	return append(dst, `false`...)
}

// number writes a double. JSON has no word for what is not finite: there it is a string.
func (r *Rows) number(dst []byte, v float64) []byte {
	if v-v == 0 {
		return cells.AppendNumber(dst, v)
	}
	word := "NaN"
	switch {
	case math.IsInf(v, 1):
		word = "Infinity"
	case math.IsInf(v, -1):
		word = "-Infinity"
	}
	if r.JSON {
		return append(append(append(dst, '"'), word...), '"')
	}
	return append(dst, word...)
}

func (r *Rows) text(dst []byte, s string) []byte {
	if r.JSON {
		return cells.AppendJSON(dst, s)
	}
	return cells.AppendQuoted(dst, s)
}

// Header appends the line of labels of CSV.
func Header(dst []byte, labels []string) []byte {
	for i, label := range labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cells.AppendQuoted(dst, label)
	}
	return append(dst, '\n')
}
