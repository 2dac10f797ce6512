package api

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/cells"
	"github.com/tidemark-db/tidemark/core/dates"
)

// exportFormats are the names of date formats with their patterns. ISO8601 in UTC ends in Z, elsewhere in the offset.
var exportFormats = map[string]string{
	"ISO8601":           "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
	"ISO8601_SECONDS":   "yyyy-MM-dd'T'HH:mm:ssXXX",
	"LOCALTIME":         "yyyy-MM-dd HH:mm:ss.SSS",
	"LOCALTIME_SECONDS": "yyyy-MM-dd HH:mm:ss",
	"DATE_YMD":          "yyyy-MM-dd",
	"DATE_MD":           "MM-dd",
	"MD_DOW":            "MM-dd EEE",
	"MD_DOW_FULL":       "MM-dd EEEE",
}

// exportDates prints the times of an export. It serves one goroutine.
type exportDates struct {
	pattern  *dates.Pattern
	moment   dates.Moment
	iso      bool
	instants cells.Instants // with iso
}

// newExportDates takes the name of a format; DEFAULT is ISO8601.
func newExportDates(name string, m dates.Moment) (exportDates, error) {
	name = strings.ToUpper(name)
	if name == "" || name == "DEFAULT" {
		name = "ISO8601"
	}
	pattern, ok := exportFormats[name]
	if !ok {
		return exportDates{}, core.Errorf(core.Invalid, "IllegalArgumentException: df: unknown date format %s", excerpt(name))
	}
	p, err := dates.CompilePattern(pattern)
	return exportDates{pattern: p, moment: m, iso: name == "ISO8601", instants: cells.NewInstants(m.Zone, "", "")}, err
}

// again returns the same format for another goroutine.
func (d *exportDates) again() exportDates {
	fresh := *d
	fresh.instants = cells.NewInstants(d.moment.Zone, "", "")
	return fresh
}

// append appends the text of t as a cell.
func (d *exportDates) append(b []byte, t core.Time) []byte {
	if d.iso {
		return d.instants.Append(b, t)
	}
	return cells.AppendText(b, d.text(t))
}

func (d *exportDates) text(t core.Time) string { return d.pattern.Format(t, d.moment.Zone) }

// appendNumber appends the number of v as a cell, as number prints it.
func (s *exportSettings) appendNumber(b []byte, v float64) []byte {
	if s.precision >= 0 || v-v != 0 { // NaN or infinite
		return append(b, s.number(v, nil)...)
	}
	return cells.AppendNumber(b, v)
}

// number prints a value: as it is stored, integral values without a fraction, or with the digits asked for, halves away from zero. exact, the value of a
// decimal metric, takes the place of v.
func (s *exportSettings) number(v float64, exact *core.Decimal) string {
	digits := int(s.precision)
	if exact == nil {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return "NaN"
		case digits < 0:
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return new(big.Rat).SetFloat64(v).FloatString(digits)
	}
	exponent := int64(exact.Exponent)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(exponent, -exponent)), nil)
	r := new(big.Rat).SetInt64(exact.Significand)
	if exponent < 0 {
		r.Quo(r, new(big.Rat).SetInt(power))
	} else {
		r.Mul(r, new(big.Rat).SetInt(power))
	}
	if digits < 0 {
		digits = int(max(0, -exponent))
	}
	return r.FloatString(digits)
}
