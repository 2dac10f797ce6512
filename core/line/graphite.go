package line

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// threeWords splits a text of exactly three words.
func threeWords(text string) (a, b, c string, ok bool) {
	words := [3]string{}
	n := 0
	for word := range strings.FieldsSeq(text) {
		if n == 3 {
			return "", "", "", false
		}
		words[n] = word
		n++
	}
	return words[0], words[1], words[2], n == 3
}

// gap reports whether a value is not finite, in any spelling: agents send nan for a counter that they have read only once. Carbon passes over such a point.
func gap(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && (math.IsNaN(f) || math.IsInf(f, 0))
}

// numeric reports whether text is a number, as a value of a sample is written.
func numeric(text string) bool {
	_, ok := command.ParseNumber(text)
	return ok
}

// integer reports whether text is a whole number, or one of the two ways in which a Graphite sender asks for the time of receipt. A fraction of seconds is
// what some senders print of a floating-point clock.
func integer(text string) bool {
	if text == "N" {
		return true
	}
	text = strings.TrimPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	return digits(whole) && whole != "" && digits(fraction)
}

func digits(text string) bool {
	for i := range len(text) {
		if text[i]-'0' > 9 {
			return false
		}
	}
	return true
}

// graphite adds `NAME VALUE SECONDS`. -1 and N stand for the time of receipt. A value that is not finite is no sample.
func (p *Parser) graphite(b *core.Batch, sent, text, stamp string) error {
	if gap(text) {
		return nil
	}
	n, ok := command.ParseNumber(text)
	if !ok {
		return refuse(command.BadValue, "%q is not a number", excerpt(text))
	}
	t := p.Received
	if stamp != "-1" && stamp != "N" {
		var err error
		whole, _, _ := strings.Cut(stamp, ".")
		if t, err = seconds(whole); err != nil {
			return err
		}
	}
	return p.Mapping.add(b, sent, t, n)
}

// seconds reads Unix seconds.
func seconds(text string) (core.Time, error) {
	if len(text) > 11 { // past the end of the storable range
		return storable(-1, text)
	}
	var n int64
	for i := range len(text) {
		if text[i]-'0' > 9 {
			return storable(-1, text)
		}
		n = n*10 + int64(text[i]-'0')
	}
	return storable(core.Time(n*1000), text)
}
