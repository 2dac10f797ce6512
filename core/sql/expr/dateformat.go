package expr

import (
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// patternReader reads a column of date patterns, and keeps what it compiled.
type patternReader struct {
	at       ast.Start
	text     textReader
	list     texts
	compiled map[string]*dates.Pattern
	last     string
	pattern  *dates.Pattern
}

// read prepares for the rows of v; nil is a function without the argument.
func (r *patternReader) read(v *column.Vector) {
	r.list = texts{values: isoName}
	if v != nil {
		r.list = r.text.read(v)
	}
}

// mostPatterns is how many patterns of a column are kept compiled at a time.
const mostPatterns = 256

var isoName = []string{"iso"}

func (r *patternReader) of(i int) (*dates.Pattern, error) {
	text := at(r.list.values, i)
	if r.pattern != nil && text == r.last {
		return r.pattern, nil
	}
	p, ok := r.compiled[text]
	text = strings.Clone(text) // a text of a column is gone with its batch
	if !ok {
		var err error
		if p, err = dates.CompilePattern(text); err != nil {
			return nil, r.at.Errorf("Invalid date pattern: '%s': %v", text, err)
		}
		if r.compiled == nil || len(r.compiled) == mostPatterns {
			r.compiled = map[string]*dates.Pattern{}
		}
		r.compiled[text] = p
	}
	r.last, r.pattern = text, p
	return p, nil
}

// printer prints instants in one pattern and zone. Instants of the same second, minute, hour or day, whichever is the smallest thing that the pattern shows, have
// the same text: it is made once and shared.
type printer struct {
	pattern     *dates.Pattern
	zone        *time.Location
	grain       int64     // milliseconds; 1 for patterns that show them all
	offset      int64     // of the local clock, since span was asked
	from, until core.Time // which instants text is that of; of a minute where all are shown
	text        string
	bytes       []byte
}

func newPrinter(pattern *dates.Pattern, zone *time.Location, bytes []byte) printer {
	return printer{pattern: pattern, zone: zone, grain: grainOf(pattern.String()), bytes: bytes}
}

// print returns the text of an instant; the pattern shows no milliseconds.
func (p *printer) print(t core.Time) string {
	if t >= p.from && t < p.until {
		return p.text
	}
	p.bytes = p.pattern.Append(p.bytes[:0], t, p.zone)
	p.text = string(p.bytes)
	p.from, p.until = p.span(t, p.grain)
	return p.text
}

// Where yyyy-MM-ddTHH:mm:ss.SSS has its seconds.
const isoSeconds = len("yyyy-MM-ddTHH:mm:")

// append appends the text of an instant. ISO texts of a minute differ in their seconds alone.
func (p *printer) append(b []byte, t core.Time) []byte {
	const day = 86_400_000 // beyond it the local year may have more or less digits
	if p.pattern.String() != isoName[0] || t < day || t > dates.MaxDate-day {
		return p.pattern.Append(b, t, p.zone)
	}
	if t < p.from || t >= p.until {
		p.bytes = p.pattern.Append(p.bytes[:0], t, p.zone)
		p.from, p.until = p.span(t, 60_000)
		return append(b, p.bytes...)
	}
	at := len(b) + isoSeconds
	b = append(b, p.bytes...)
	millis := (int64(t) + p.offset) % 60_000
	s, ms := millis/1000, millis%1000
	copy(b[at:], []byte{byte('0' + s/10), byte('0' + s%10), '.', byte('0' + ms/100), byte('0' + ms/10%10), byte('0' + ms%10)})
	return b
}

const distant = core.Time(1 << 52) // times further away are not worth the care for overflow

// span returns the instants around t in the same grain of the local clock, as long as that has the same offset.
func (p *printer) span(t core.Time, grain int64) (from, until core.Time) {
	if t > distant || t < -distant {
		return t, t + 1
	}
	at := time.UnixMilli(int64(t)).In(p.zone)
	_, seconds := at.Zone()
	p.offset = int64(seconds) * 1000
	rest := (int64(t) + p.offset) % grain
	if rest < 0 {
		rest += grain
	}
	from = t - core.Time(rest)
	until = from + core.Time(grain)
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		from = max(from, core.Time(start.UnixMilli()))
	}
	if !end.IsZero() {
		until = min(until, core.Time(end.UnixMilli()))
	}
	return from, until
}

// grainOf returns the smallest unit that a pattern shows.
func grainOf(pattern string) int64 {
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	switch strings.ToLower(pattern) {
	case "iso", "milliseconds", "seconds", "tivoli":
		return 1
	}
	grain, quoted := int64(day), false
	for _, c := range pattern {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == 'S' || c == 'A' || c == 'n' || c == 'N':
			return 1
		case c == 's':
			grain = min(grain, second)
		case c == 'm':
			grain = min(grain, minute)
		case c == 'H' || c == 'h' || c == 'k' || c == 'K' || c == 'a':
			grain = min(grain, hour)
		}
	}
	return grain
}

// dateFormat is DATE_FORMAT(date, pattern, zone).
func dateFormat(c *call) (Node, error) {
	args := append([]Node{Instant(c.args[0], c.at)}, c.args[1:]...)
	return scalar{kind: column.String, args: args, lenient: 1 << 2, flags: usesEnv | mayFail, make: func() kernel {
		patterns, zones := patternReader{at: c.at}, zoneReader{at: c.at}
		var p printer
		var bytes []byte // texts that nothing is shared of, one after another
		var ends []int   // of those; 0 = the text of the row is a shared one
		var room growth
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			patterns.read(argument(args, 1))
			zones.read(argument(args, 2))
			dst := out.makeStrings(rows)
			bytes, ends = bytes[:0], sized(ends, rows)
			clear(ends)
			shared := int64(0)
			for i := range dst {
				if dst[i] = ""; out.skip(i) {
					continue
				}
				pattern, err := patterns.of(i)
				if err != nil {
					return err
				}
				zone, err := zones.of(env, i)
				if err != nil {
					return err
				}
				if p.pattern != pattern || p.zone != zone {
					p = newPrinter(pattern, zone, p.bytes)
				}
				if t := core.Time(args[0].Ints[args[0].Index(i)]); p.grain > 1 {
					if dst[i] = p.print(t); i == 0 || dst[i] != dst[i-1] {
						shared += int64(len(dst[i]))
					}
				} else {
					bytes = p.append(bytes, t)
					ends[i] = len(bytes)
				}
				if err := room.to(env, shared+2*int64(len(bytes))); err != nil {
					return err
				}
			}
			all, from := string(bytes), 0
			for i, end := range ends {
				if end > 0 {
					dst[i], from = all[from:end], end
				}
			}
			return nil
		}
	}}.node(), nil
}

// argument returns argument i, nil when it is absent.
func argument(args []*column.Vector, i int) *column.Vector {
	if i >= len(args) {
		return nil
	}
	return args[i]
}

// dateParse is DATE_PARSE(text, pattern, zone). A text that does not fit is an error where it is written in the statement, and NULL where it is a value of a column.
func dateParse(c *call) (Node, error) {
	_, written := constantOf(c.args[0])
	return scalar{kind: column.Bigint, args: c.args, lenient: 1 << 2, flags: usesEnv | mayFail, make: func() kernel {
		patterns, zones := patternReader{at: c.at}, zoneReader{at: c.at}
		var text textReader
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			s := text.read(args[0])
			patterns.read(argument(args, 1))
			zones.read(argument(args, 2))
			dst := out.makeInts(rows)
			for i := range dst {
				if dst[i] = 0; out.skip(i) || isNull(s.nulls, i) {
					out.makeNulls(rows)[i] = true
					continue
				}
				pattern, err := patterns.of(i)
				if err != nil {
					return err
				}
				zone, err := zones.of(env, i)
				if err != nil {
					return err
				}
				parse := pattern.ParseIn
				if isNull(zones.ids.nulls, i) {
					parse = pattern.Parse
				}
				t, err := parse(at(s.values, i), zone)
				if err != nil {
					if written {
						return c.at.Errorf("Invalid date value: '%s'", at(s.values, i))
					}
					out.makeNulls(rows)[i] = true
				}
				dst[i] = int64(t)
			}
			return nil
		}
	}}.node(), nil
}
