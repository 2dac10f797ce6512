package query

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// appendText appends a JSON string. Only what JSON demands is escaped: clients compare answers as text, and `<` or `&` stay readable.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size, escape := 1, ""
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			escape = `\ufffd`
		}
		b = append(b, s[start:i]...)
		if escape != "" {
			b = append(b, escape...)
		} else {
			b = appendEscape(b, c)
		}
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// object appends the members of one JSON object, separated by commas.
type object struct {
	b    []byte
	some bool
}

func openObject(b []byte) object { return object{b: append(b, '{')} }

func (o *object) close() []byte { return append(o.b, '}') }

// name starts a member whose value the caller appends to o.b.
func (o *object) name(name string) {
	if o.some {
		o.b = append(o.b, ',')
	}
	o.some = true
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(name, value string) {
	o.name(name)
	o.b = appendText(o.b, value)
}

// optional appends a text unless it is empty.
func (o *object) optional(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) integer(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

func (o *object) number(name string, value float64) {
	o.name(name)
	o.b = appendNumber(o.b, value)
}

func (o *object) boolean(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

func (o *object) date(name string, t core.Time) {
	o.name(name)
	o.b = appendDate(o.b, t)
}

func (o *object) tags(name string, tags core.Tags) {
	o.name(name)
	inner := openObject(o.b)
	for _, t := range tags {
		if inner.some {
			inner.b = append(inner.b, ',')
		}
		inner.some = true
		inner.b = appendText(inner.b, t.Name)
		inner.b = append(inner.b, ':')
		inner.b = appendText(inner.b, t.Value)
	}
	o.b = inner.close()
}

func appendDate(b []byte, t core.Time) []byte {
	b = append(b, '"')
	b = dates.AppendISO(b, t)
	return append(b, '"')
}

// appendNumber appends a number as it was stored; null when it is none.
func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return calc.AppendStored(b, v)
}

// maxPlainExponent bounds the zeros of a decimal in plain notation: an exponent may be as large as 2147483647.
const maxPlainExponent = 400

// appendDecimal appends the exact value of a decimal.
func appendDecimal(b []byte, d core.Decimal) []byte {
	if d.Exponent > maxPlainExponent || d.Exponent < -maxPlainExponent {
		b = strconv.AppendInt(b, d.Significand, 10)
		b = append(b, 'e')
		return strconv.AppendInt(b, int64(d.Exponent), 10)
	}
	return calc.AppendDecimal(b, d.Significand, d.Exponent)
}
