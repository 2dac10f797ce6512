package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// MaxTags is how many tags a series or message, and keys plus tags a property, may have.
const MaxTags = 1024

// Parser turns commands into records of a batch. It reuses its memory from command to command: one parser a connection, never shared.
type Parser struct {
	Received  core.Time // time of records that carry none
	Transport Transport

	f       field
	staged  []sample
	fields  []sampleField
	seen    []mark // by series reference
	command uint64 // counts commands, for seen
	tags    core.Tags
	keys    core.Tags
}

// Line parses one command and appends its records to b. A refused command appends nothing; the error is a *core.Error of code Invalid whose text
// is what a debug reply shows, with the reason as its cause. line is not kept.
func (p *Parser) Line(b *core.Batch, line []byte) error {
	line = trim(line)
	if tooLong(line) {
		return ErrTooLong
	}
	// One copy a command: every name and value is a part of it, so that the batch never points into the caller's buffer.
	c := cursor{text: string(line), transport: p.Transport}
	if !utf8.ValidString(c.text) {
		return malformed(c.text, errors.New("not UTF-8"))
	}
	if strings.IndexByte(c.text, 0) >= 0 || strings.IndexByte(c.text, 1) >= 0 {
		return malformed(c.text, errors.New("characters 0 and 1 are not allowed"))
	}
	p.tags, p.keys = p.tags[:0], p.keys[:0]
	var err error
	switch c.word() {
	case "series":
		err = p.series(b, &c)
	case "property":
		err = p.property(b, &c)
	case "message":
		err = p.message(b, &c)
	case "metric":
		err = p.metric(b, &c)
	case "entity":
		err = p.entity(b, &c)
	default:
		return core.Wrap(core.Invalid, errUnknown, "Invalid command: "+excerpt(c.text))
	}
	if err == nil {
		return nil
	}
	var typed *core.Error
	if errors.As(err, &typed) {
		return typed
	}
	return malformed(c.text, err)
}

func malformed(line string, cause error) error {
	return core.Wrap(core.Invalid, cause, "Malformed command: "+excerpt(line))
}

// excerpt makes a command fit one line of a reply. 1024 bytes show what is wrong with all but hostile input.
func excerpt(line string) string {
	const limit = 1024
	if len(line) > limit {
		line = strings.ToValidUTF8(line[:limit], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(line, "\uFFFD"))
}

// moment collects the time fields of a command. ms wins over s, and s over d.
type moment struct {
	time core.Time
	rank uint8 // 0 none, 1 d, 2 s, 3 ms
}

// set takes a field d, s or ms.
func (m *moment) set(c *cursor, f *field) error {
	var (
		t    core.Time
		rank uint8
		err  error
	)
	switch f.prefix {
	case "d":
		rank = 1
		t, err = dates.ParseISO(f.value)
	case "s":
		var seconds int64
		rank = 2
		seconds, err = strconv.ParseInt(f.value, 10, 64)
		t = core.Time(min(max(seconds, -1), int64(core.MaxTime)) * 1000) // clamped, so that it cannot wrap into the valid range
	default:
		var millis int64
		rank = 3
		millis, err = strconv.ParseInt(f.value, 10, 64)
		t = core.Time(millis)
	}
	switch {
	case err != nil:
		return c.reject(BadTime, f.at, "bad time %q", f.value)
	case !t.Storable():
		return c.reject(BadTime, f.at, "time %q is outside 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z", f.value)
	case rank >= m.rank:
		m.time, m.rank = t, rank
	}
	return nil
}

// or returns the time of the command, now when it has none.
func (m *moment) or(now core.Time) core.Time {
	if m.rank == 0 {
		return now
	}
	return m.time
}

// strictBool takes true and false and nothing else.
func strictBool(c *cursor, f *field) (bool, error) {
	switch f.value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, c.fault(f.at, "%s: takes true or false, not %q", f.prefix, f.value)
}

// lowerName checks and lower-cases a value that is a name.
func lowerName(c *cursor, f *field) (string, error) {
	if !validName(f.value) {
		return "", c.reject(BadName, f.at, "invalid name %q: names have no blanks and only printable characters", f.value)
	}
	return strings.ToLower(f.value), nil
}

// take returns the tags of the command as a set of its own, nil for none.
func take(tags core.Tags) (core.Tags, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	normal := append(core.Tags(nil), tags...).Normal()
	if len(normal) > MaxTags {
		return nil, fmt.Errorf("%d tags: at most %d are allowed", len(normal), MaxTags)
	}
	return normal, nil
}

var errNoEntity = errors.New("no entity: set e:")

// sampleField is one m: or x: field.
type sampleField struct {
	metric string
	number Number
	text   string
	isText bool
}

// sample is what the fields of one metric make together.
type sample struct {
	ref     uint32
	number  Number
	text    string
	hasNum  bool
	hasText bool
}

// mark remembers where the sample of a series is staged, valid for one command only.
type mark struct {
	command uint64
	index   int
}

// The shape functions are the grammar of a command: which prefixes it has, and which of them carry a name.
func seriesShape(prefix string) shape {
	switch prefix {
	case "m", "x", "t":
		return named
	case "e", "a", "d", "s", "ms":
		return plain
	}
	return unknown
}

// series parses a series command.
func (p *Parser) series(b *core.Batch, c *cursor) error {
	var (
		entity  string
		at      moment
		flags   = core.Default
		version core.VersionAt
		f       = &p.f
	)
	p.fields = p.fields[:0]
	for {
		more, err := c.field(f, seriesShape)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch f.prefix {
		case "m":
			n, ok := ParseNumber(f.value)
			if !ok {
				return c.reject(BadValue, f.at, "%q is not a number", f.value)
			}
			p.fields = append(p.fields, sampleField{metric: f.name, number: n})
		case "x":
			p.fields = append(p.fields, sampleField{metric: f.name, text: f.value, isText: true})
		case "t":
			err = p.seriesTag(c, f, &version)
		case "e":
			entity, err = lowerName(c, f)
		case "a":
			var on bool
			on, err = strictBool(c, f)
			flags &^= core.AppendText
			if on {
				flags |= core.AppendText
			}
		default:
			err = at.set(c, f)
		}
		if err != nil {
			return err
		}
	}
	tags, err := take(p.tags)
	switch {
	case err != nil:
		return err
	case entity == "":
		return errNoEntity
	case len(p.fields) == 0:
		return errors.New("no value: set m: or x:")
	}
	// From here on nothing can fail: only now the batch changes.
	p.stage(b, core.SeriesKey{Entity: entity, Tags: tags})
	p.commit(b, at.or(p.Received), flags, version)
	return nil
}

// seriesTag takes a t: field.
func (p *Parser) seriesTag(c *cursor, f *field, version *core.VersionAt) error {
	if version.TakeTag(f.name, f.value) {
		return nil
	}
	value := strings.TrimSpace(f.value)
	if value == "" {
		return c.fault(f.at, "tag %q has an empty value", f.name)
	}
	p.tags = append(p.tags, core.Tag{Name: f.name, Value: value})
	return nil
}

// stage joins the fields of equal metrics into samples; the last number and the last text of a metric win.
func (p *Parser) stage(b *core.Batch, key core.SeriesKey) {
	p.command++
	p.staged = p.staged[:0]
	for i := range p.fields {
		f := &p.fields[i]
		key.Metric = f.metric
		ref := b.Ref(key)
		for int(ref) >= len(p.seen) {
			p.seen = append(p.seen, mark{})
		}
		m := &p.seen[ref]
		if m.command != p.command {
			*m = mark{p.command, len(p.staged)}
			p.staged = append(p.staged, sample{ref: ref, number: Number{Value: math.NaN()}})
		}
		s := &p.staged[m.index]
		if f.isText {
			s.text, s.hasText = f.text, true
		} else {
			s.number, s.hasNum = f.number, true
		}
	}
}

// commit appends the staged samples. They come in the order of their metrics in the command, which keeps the side columns ascending.
func (p *Parser) commit(b *core.Batch, t core.Time, flags core.Flags, version core.VersionAt) {
	for i := range p.staged {
		s := &p.staged[i]
		at := uint32(b.Add(s.ref, t, s.number.Value))
		f := flags
		if s.hasNum {
			f |= core.HasValue
		}
		b.Samples.Flags[at] = f
		if s.hasText {
			b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: at, Text: s.text})
		}
		if s.number.Inexact {
			b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: at, Decimal: s.number.Decimal})
		}
		if version.Source != "" || version.Status != "" {
			version.Index = at
			b.Samples.Versions = append(b.Samples.Versions, version)
		}
	}
}
