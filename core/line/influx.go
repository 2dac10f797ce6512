package line

import (
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// Influx reads the line protocol of InfluxDB:
//
//	measurement[,tag=value]... field=value[,field=value]... [time]
//
// Each field becomes a sample of the metric measurement.field, or of the metric measurement when the field is called value. The tag EntityTag becomes the
// entity. Strings are texts, booleans 1 and 0, integers are exact. It belongs to one connection.
type Influx struct {
	Received  core.Time
	EntityTag string // lower case; "" = host
	Unit      Unit   // of times

	tags   core.Tags
	fields []influxField
}

// Unit is the unit of times in a request: so many nanoseconds.
type Unit int64

// The units that a request may name.
const (
	Nanosecond  Unit = 1
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
	Minute           = 60 * Second
	Hour             = 60 * Minute
)

// ParseUnit reads the precision of a request; the default is nanoseconds.
func ParseUnit(text string) (Unit, bool) {
	switch text {
	case "", "n", "ns":
		return Nanosecond, true
	case "u", "us", "µ", "µs":
		return Microsecond, true
	case "ms":
		return Millisecond, true
	case "s":
		return Second, true
	case "m":
		return Minute, true
	case "h":
		return Hour, true
	}
	return 0, false
}

type influxField struct {
	metric string
	number command.Number
	text   string
	isText bool
}

// Line appends the fields of one line to a batch. A comment or an empty line has none. line is not kept.
func (p *Influx) Line(b *core.Batch, line []byte) error {
	c := influxCursor{text: strings.TrimSpace(string(line))}
	if c.text == "" || c.text[0] == '#' {
		return nil
	}
	key, err := p.key(&c)
	if err != nil {
		return err
	}
	measurement := key.Metric
	p.fields = p.fields[:0]
	for {
		f, err := c.field()
		if err != nil {
			return err
		}
		if f.metric == "value" {
			f.metric = measurement
		} else {
			f.metric = measurement + "." + f.metric
		}
		p.fields = append(p.fields, f)
		if !c.take(',') {
			break
		}
	}
	t, err := p.time(&c)
	if err != nil {
		return err
	}
	for i := range p.fields {
		f := &p.fields[i]
		key.Metric = f.metric
		if f.isText {
			b.AddText(b.Ref(key), t, f.text)
		} else {
			add(b, key, t, f.number)
		}
	}
	return nil
}

// key reads measurement and tags. The metric of the key is the measurement.
func (p *Influx) key(c *influxCursor) (core.SeriesKey, error) {
	key := core.SeriesKey{Metric: name(c.word(", ")), Entity: InfluxEntity}
	if key.Metric == "" {
		return key, c.fault(command.BadName, "missing measurement")
	}
	entityTag := p.EntityTag
	if entityTag == "" {
		entityTag = "host"
	}
	p.tags = p.tags[:0]
	for c.take(',') {
		tag := name(c.word("=, "))
		if tag == "" {
			return key, c.fault(command.BadName, "missing tag key")
		}
		if !c.take('=') {
			return key, c.fault(command.BadSyntax, "missing tag value")
		}
		v := value(c.word(", ="))
		switch {
		case c.peek() == '=':
			return key, c.fault(command.BadSyntax, "invalid tag format")
		case v == "":
			return key, c.fault(command.BadSyntax, "missing tag value")
		case tag == entityTag:
			key.Entity = name(v)
		default:
			p.tags = append(p.tags, core.Tag{Name: tag, Value: v})
		}
	}
	if len(p.tags) > command.MaxTags {
		return key, c.fault(command.BadSyntax, "too many tags")
	}
	if len(p.tags) > 0 {
		key.Tags = append(core.Tags(nil), p.tags...).Normal()
	}
	if !c.blanks() {
		return key, c.fault(command.BadSyntax, "missing fields")
	}
	return key, nil
}

// time reads the time at the end of a line, and cuts it to the millisecond.
func (p *Influx) time(c *influxCursor) (core.Time, error) {
	if c.pos == len(c.text) {
		return p.Received, nil
	}
	if !c.blanks() {
		return 0, c.fault(command.BadSyntax, "invalid field format")
	}
	text := c.text[c.pos:]
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, c.fault(command.BadTime, "bad timestamp")
	}
	unit := max(p.Unit, Nanosecond)
	t := core.Time(-1)
	switch {
	case unit <= Millisecond && n >= 0:
		t = core.Time(n / int64(Millisecond/unit))
	case n >= 0 && n <= math.MaxInt64/int64(unit/Millisecond):
		t = core.Time(n * int64(unit/Millisecond))
	}
	if !t.Storable() {
		return 0, c.fault(command.BadTime, "time outside 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z, or in another precision")
	}
	return t, nil
}

// influxCursor reads one line.
type influxCursor struct {
	text string
	pos  int
}

// fault is a refusal in the words that clients of InfluxDB look for.
func (c *influxCursor) fault(reason command.Reason, what string) error {
	return refuse(reason, "unable to parse '%s': %s", excerpt(c.text), what)
}

func (c *influxCursor) peek() byte {
	if c.pos < len(c.text) {
		return c.text[c.pos]
	}
	return 0
}

func (c *influxCursor) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.pos++
	return true
}

// blanks skips blanks and reports whether something follows them.
func (c *influxCursor) blanks() bool {
	start := c.pos
	for c.peek() == ' ' {
		c.pos++
	}
	return c.pos > start && c.pos < len(c.text)
}

// word reads up to one of the ends. A backslash before a comma, a blank, an equals sign or a backslash is left out; before anything else it is a character
// like any other.
func (c *influxCursor) word(ends string) string {
	start, escaped := c.pos, false
	for ; c.pos < len(c.text); c.pos++ {
		b := c.text[c.pos]
		if b == '\\' && c.pos+1 < len(c.text) && strings.IndexByte(`, =\`, c.text[c.pos+1]) >= 0 {
			escaped = true
			c.pos++
			continue
		}
		if strings.IndexByte(ends, b) >= 0 {
			break
		}
	}
	text := c.text[start:min(c.pos, len(c.text))]
	if escaped {
		text = unescape(text, `, =\`)
	}
	return text
}

// unescape leaves out the backslashes before some characters.
func unescape(text, special string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(special, text[i+1]) >= 0 {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// field reads name=value.
func (c *influxCursor) field() (influxField, error) {
	f := influxField{metric: name(c.word("=, "))}
	if f.metric == "" {
		return f, c.fault(command.BadName, "missing field key")
	}
	if !c.take('=') {
		return f, c.fault(command.BadSyntax, "invalid field format")
	}
	if c.peek() == '"' {
		err := c.quoted(&f)
		return f, err
	}
	start := c.pos
	for c.pos < len(c.text) && c.text[c.pos] != ',' && c.text[c.pos] != ' ' {
		c.pos++
	}
	text := c.text[start:c.pos]
	switch text {
	case "":
		return f, c.fault(command.BadSyntax, "missing field value")
	case "t", "T", "true", "True", "TRUE":
		f.number = command.Number{Value: 1}
		return f, nil
	case "f", "F", "false", "False", "FALSE":
		return f, nil
	}
	if last := text[len(text)-1]; last == 'i' || last == 'u' {
		text = text[:len(text)-1]
		if !whole(text, last == 'i') {
			return f, c.fault(command.BadValue, "invalid integer")
		}
	}
	n, ok := command.ParseNumber(text)
	if !ok || math.IsNaN(n.Value) {
		return f, c.fault(command.BadValue, "invalid number")
	}
	f.number = n
	return f, nil
}

// whole reports whether text is an integer of 64 bits.
func whole(text string, signed bool) bool {
	var err error
	if signed {
		_, err = strconv.ParseInt(text, 10, 64)
	} else {
		_, err = strconv.ParseUint(text, 10, 64)
	}
	return err == nil
}

// quoted reads a string, in which \" and \\ are one character.
func (c *influxCursor) quoted(f *influxField) error {
	start, escaped := c.pos+1, false
	for c.pos++; c.pos < len(c.text); c.pos++ {
		switch c.text[c.pos] {
		case '\\':
			if c.pos+1 < len(c.text) && (c.text[c.pos+1] == '"' || c.text[c.pos+1] == '\\') {
				escaped = true
				c.pos++
			}
		case '"':
			f.isText, f.text = true, c.text[start:c.pos]
			if escaped {
				f.text = unescape(f.text, `"\`)
			}
			f.text = strings.ToValidUTF8(f.text, "\uFFFD")
			c.pos++
			return nil
		}
	}
	return c.fault(command.BadSyntax, "unbalanced quotes")
}

// Lines cuts a body into lines, in linear time: a line break inside a quoted field value is a part of it. What stands between two line ends is yielded as it
// is, comments included.
func Lines(body string) iter.Seq[string] {
	return func(yield func(line string) bool) {
		start := 0
		comment, fields, quoted := false, false, false // fields: the blank before the fields has been seen
		for i := 0; i < len(body); i++ {
			switch c := body[i]; {
			case c == '\n' && !quoted:
				if !yield(body[start:i]) {
					return
				}
				start, comment, fields = i+1, false, false
			case comment:
			case c == '\\' && i+1 < len(body) && body[i+1] != '\n':
				i++ // whatever follows neither opens a string nor ends one
			case c == '#' && i == start:
				comment = true
			case c == ' ' && i > start:
				fields = true
			case c == '"':
				quoted = !quoted && fields && body[i-1] == '=' // elsewhere it is a character like any other
			}
		}
		if start < len(body) {
			yield(body[start:])
		}
	}
}
