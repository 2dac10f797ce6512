package api

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
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

// exportDates prints the times of an export.
type exportDates struct {
	pattern *dates.Pattern
	moment  dates.Moment
	iso     bool

	minute core.Time // since 1970, of whose beginning text is; with iso
	text0  string
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
	return exportDates{pattern: p, moment: m, iso: name == "ISO8601"}, err
}

const (
	minuteMillis = 60_000
	isoSeconds   = len("2021-05-03T10:00:") // where the seconds are in ISO8601
	isoOffset    = isoSeconds + len("00.000")
)

// append appends the text of t as a cell. Times of one minute share all but the seconds.
func (d *exportDates) append(b []byte, t core.Time) []byte {
	if !d.iso {
		return appendQuoted(b, d.text(t))
	}
	if minute := t / minuteMillis; minute != d.minute || d.text0 == "" {
		d.minute, d.text0 = minute, d.text(minute*minuteMillis)
	}
	if len(d.text0) <= isoOffset || d.text0[isoSeconds-1:isoOffset] != ":00.000" { // an offset in seconds, a year of five digits
		return append(b, d.text(t)...)
	}
	ms := int(t % minuteMillis)
	b = append(b, d.text0[:isoSeconds]...)
	b = append(b, byte('0'+ms/10_000), byte('0'+ms/1000%10), '.', byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
	return append(b, d.text0[isoOffset:]...)
}

func (d exportDates) text(t core.Time) string { return d.pattern.Format(t, d.moment.Zone) }

// appendNumber appends the number of v as a cell, as number prints it.
func (s *exportSettings) appendNumber(b []byte, v float64) []byte {
	switch i := int64(v); {
	case s.precision >= 0 || math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, s.number(v, nil)...)
	case v != 0 && float64(i) == v && i > -1<<53 && i < 1<<53:
		return strconv.AppendInt(b, i, 10)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
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

// appendQuoted appends a cell of a CSV line, in quotes where it would break the line apart.
func appendQuoted(b []byte, cell string) []byte {
	if !strings.ContainsAny(cell, ",\"\n\r") {
		return append(b, cell...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(cell, `"`, `""`)...), '"')
}
