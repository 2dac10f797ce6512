package storage

import (
	"hash/maphash"
	"math"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// There may be a million entities, and nearly as many metrics, and each is asked about with every one of its records. So they stay in memory, but packed: one that
// was made by its first sample is a creation and nothing else, of any other the settings are one text, laid out as in a batch record. What is asked for again
// and again is unpacked once, see hot. Packed documents are replaced, never changed.

// packedEntity is an entity without its name.
type packedEntity struct {
	created core.Time
	more    *entitySettings // nil: enabled, never changed, and nothing was set
}

// entitySettings: the text is u8 enabled, text label, text interpolate, text time zone, tags in order of name.
type entitySettings struct {
	versioned core.Time
	text      string
}

// packedMetric is a metric without its name.
type packedMetric struct {
	created   core.Time
	versioned bool
	retained  bool   // a retention of either kind is set
	text      string // "": the settings of core.NewMetric; otherwise see packMetric
}

// Bits of the first byte of the text of a metric.
const (
	metricEnabled = 1 << iota
	metricPersistent
	metricMin
	metricMax
)

// slabLength: small objects share some 2 to 4 KB, so that the collector has few to visit.
const slabLength = 64

// slab hands out objects one by one. They live as long as one of those that share their memory.
type slab[T any] struct{ free []T }

func (s *slab[T]) next() *T {
	if len(s.free) == 0 {
		s.free = make([]T, slabLength)
	}
	one := &s.free[0]
	s.free = s.free[1:]
	return one
}

// textMemory keeps short texts side by side.
type textMemory struct{ chunk strings.Builder }

func (t *textMemory) keep(text string) string {
	if len(text) > textChunk/8 {
		return strings.Clone(text)
	}
	if t.chunk.Cap()-t.chunk.Len() < len(text) {
		t.chunk = strings.Builder{}
		t.chunk.Grow(textChunk)
	}
	start := t.chunk.Len()
	t.chunk.WriteString(text)
	return t.chunk.String()[start:]
}

// packing makes packed documents. What comes first under its name, by a start or by its first sample, goes side by side with others; what replaces it has memory of its own,
// since a chunk stays as long as anything in it is in use. The appender's.
type packing struct {
	texts    textMemory
	entities slab[packedEntity]
	settings slab[entitySettings]
	metrics  slab[packedMetric]
	body     encoder // scratch, as is what follows
	tags     core.Tags
}

// lasting says where what is packed goes.
type lasting uint8

const (
	alone      lasting = iota // it may be replaced soon
	sideBySide                // it is likely to stay
)

func (p *packing) text(l lasting) string {
	if l == sideBySide {
		return p.texts.keep(shared(p.body.body))
	}
	return string(p.body.body)
}

// objectIn returns memory for an object.
func objectIn[T any](l lasting, s *slab[T]) *T {
	if l == sideBySide {
		return s.next()
	}
	return new(T)
}

// entity packs an entity. tags are those of it, in order; what its own field holds is not looked at.
func (p *packing) entity(e *core.Entity, tags core.Tags, l lasting) *packedEntity {
	to := objectIn(l, &p.entities)
	to.created = e.Created
	if e.Enabled && e.Versioned == 0 && e.Label == "" && e.Interpolate == "" && e.TimeZone == "" && len(tags) == 0 {
		return to
	}
	b := &p.body
	b.body = append(b.body[:0], boolByte(e.Enabled))
	b.text(e.Label)
	b.text(e.Interpolate)
	b.text(e.TimeZone)
	b.tags(tags)
	to.more = objectIn(l, &p.settings)
	*to.more = entitySettings{e.Versioned, p.text(l)}
	return to
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// versionDate is that of core.Entity.
func (p *packedEntity) versionDate() core.Time {
	if p.more == nil {
		return max(0, p.created)
	}
	return max(p.more.versioned, p.created)
}

// unpack makes the document. Its texts are those of p.
func (p *packedEntity) unpack(name string) core.Entity {
	if p.more == nil {
		return core.NewEntity(name, p.created)
	}
	d := decoder{rest: p.more.text}
	e := core.Entity{Name: name, Created: p.created, Versioned: p.more.versioned, Enabled: d.byte() != 0, Label: d.text(), Interpolate: d.text(), TimeZone: d.text()}
	e.Tags = d.tagMap()
	return e
}

// tags returns the tags in order of name.
func (p *packedEntity) tags() core.Tags {
	if p.more == nil {
		return nil
	}
	d := decoder{rest: p.more.text}
	d.byte()
	for range 3 {
		d.text()
	}
	return d.tags()
}

// tagMap reads tags as a map, which is nil when there are none.
func (d *decoder) tagMap() map[string]string {
	n := d.count(2)
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		name := d.text()
		m[name] = d.text()
	}
	return m
}

// metric packs a metric.
func (p *packing) metric(m *core.Metric, l lasting) *packedMetric {
	to := objectIn(l, &p.metrics)
	*to = packedMetric{created: m.Created, versioned: m.Versioned, retained: m.RetentionDays > 0 || m.SeriesRetentionDays > 0}
	if !plainMetric(m) {
		p.metricText(m)
		to.text = p.text(l)
	}
	return to
}

// plainMetric reports whether a metric has, but for its times, the settings that its first sample gave it.
func plainMetric(m *core.Metric) bool {
	return m.Enabled && m.Persistent && m.DataType == core.TypeFloat && m.Interpolate == "LINEAR" && m.InvalidAction == core.InvalidNone &&
		m.Label == "" && m.Description == "" && m.Units == "" && m.TimeZone == "" && m.Filter == "" && m.MinValue == nil && m.MaxValue == nil &&
		m.RetentionDays == 0 && m.SeriesRetentionDays == 0 && len(m.Tags) == 0
}

// metricText lays out the settings: u8 bits, then the eight texts, varint days of both retentions, floats whose bit is set, and tags.
func (p *packing) metricText(m *core.Metric) {
	bits := boolByte(m.Enabled)*metricEnabled | boolByte(m.Persistent)*metricPersistent | boolByte(m.MinValue != nil)*metricMin | boolByte(m.MaxValue != nil)*metricMax
	b := &p.body
	b.body = append(b.body[:0], bits)
	for _, text := range [...]string{string(m.DataType), m.Label, m.Description, m.Units, m.Interpolate, m.TimeZone, m.Filter, string(m.InvalidAction)} {
		b.text(text)
	}
	b.varint(int64(m.RetentionDays))
	b.varint(int64(m.SeriesRetentionDays))
	for _, limit := range [...]*float64{m.MinValue, m.MaxValue} {
		if limit != nil {
			b.float(*limit)
		}
	}
	b.tags(core.TagsOf(m.Tags))
}

// unpack makes the document. Its texts are those of p.
func (p *packedMetric) unpack(name string) core.Metric {
	if p.text == "" {
		m := core.NewMetric(name, p.created)
		m.Versioned = p.versioned
		return m
	}
	d := decoder{rest: p.text}
	bits := d.byte()
	m := core.Metric{Name: name, Created: p.created, Versioned: p.versioned, Enabled: bits&metricEnabled != 0, Persistent: bits&metricPersistent != 0}
	var dataType, action string
	for _, text := range [...]*string{&dataType, &m.Label, &m.Description, &m.Units, &m.Interpolate, &m.TimeZone, &m.Filter, &action} {
		*text = d.text()
	}
	m.DataType, m.InvalidAction = core.DataType(dataType), core.InvalidAction(action)
	m.RetentionDays, m.SeriesRetentionDays = int(d.varint()), int(d.varint())
	if bits&metricMin != 0 {
		m.MinValue = new(d.float())
	}
	if bits&metricMax != 0 {
		m.MaxValue = new(d.float())
	}
	m.Tags = d.tagMap()
	return m
}

// hotSlots is how many unpacked documents of a kind are kept: those of the clients that are busy, in some 2 MB.
const hotSlots = 4096

// hot keeps documents unpacked that were asked for lately, each in one of the two places that its name has. P is the packed form, by whose address it is known whether
// the document is still that one.
type hot[P, D any] struct {
	seed  maphash.Seed
	slots [hotSlots]atomic.Pointer[warm[P, D]]
}

type warm[P, D any] struct {
	packed *P
	doc    D
}

// get returns the document whose packed form is given, made by unpack unless it is there.
func (h *hot[P, D]) get(name string, packed *P, unpack func(*P, string) D) *D {
	at := h.place(name)
	first, second := &h.slots[at], &h.slots[at+1]
	before := first.Load()
	if before != nil && before.packed == packed {
		return &before.doc
	}
	if w := second.Load(); w != nil && w.packed == packed {
		return &w.doc
	}
	w := &warm[P, D]{packed, unpack(packed, name)}
	first.Store(w)
	if before != nil {
		second.Store(before)
	}
	return &w.doc
}

// place is the first of the two slots that a name may be in. Three names that meet there cost an unpacking each time, and no more.
func (h *hot[P, D]) place(name string) int { return int(maphash.String(h.seed, name)%hotSlots) &^ 1 }

// jsonForm reads a document as json.Marshal writes it: fields in order, without blanks, escapes and repetitions. It is several times as fast as package json, which is
// asked about everything else: so it refuses in doubt, and what it takes means the same to both.
type jsonForm struct {
	rest    string
	refused bool
	some    bool // a field was read
}

// field reads the name of the next field, if it is this one, which is given with quotes and colon.
func (f *jsonForm) field(name string) bool {
	separator := byte('{')
	if f.some {
		separator = ','
	}
	if f.rest == "" || f.rest[0] != separator || !strings.HasPrefix(f.rest[1:], name) {
		return false
	}
	f.rest, f.some = f.rest[1+len(name):], true
	return true
}

// literal reads a text that must be there.
func (f *jsonForm) literal(text string) bool {
	rest, ok := strings.CutPrefix(f.rest, text)
	f.rest = rest
	f.refused = f.refused || !ok
	return ok
}

// text reads a string without escapes.
func (f *jsonForm) text() string {
	if !f.literal(`"`) {
		return ""
	}
	end := strings.IndexByte(f.rest, '"')
	if end < 0 {
		f.refused = true
		return ""
	}
	text, rest, above := f.rest[:end], f.rest[end+1:], byte(0)
	for i := range len(text) {
		c := text[i]
		if above |= c; c == '\\' || c < ' ' {
			f.refused = true
			return ""
		}
	}
	f.refused = f.refused || above >= utf8.RuneSelf && !utf8.ValidString(text)
	f.rest = rest
	return text
}

func (f *jsonForm) bool() bool {
	if rest, ok := strings.CutPrefix(f.rest, "true"); ok {
		f.rest = rest
		return true
	}
	f.literal("false")
	return false
}

// integer reads a number of at most 18 digits, without sign.
func (f *jsonForm) integer() int64 {
	n, digits := int64(0), 0
	for digits < len(f.rest) && digits < 19 && '0' <= f.rest[digits] && f.rest[digits] <= '9' {
		n = 10*n + int64(f.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits == 19 || f.rest[0] == '0' && digits > 1 {
		f.refused = true
		return 0
	}
	f.rest = f.rest[digits:]
	return n
}

// tags reads an object of texts, in the memory of to.
func (f *jsonForm) tags(to core.Tags) core.Tags {
	to = to[:0]
	f.literal("{")
	for !f.refused {
		tag := core.Tag{Name: f.text()}
		f.literal(":")
		tag.Value = f.text()
		if len(to) > 0 && tag.Name <= to[len(to)-1].Name {
			f.refused = true
		}
		to = append(to, tag)
		if rest, more := strings.CutPrefix(f.rest, ","); more {
			f.rest = rest
			continue
		}
		f.literal("}")
		break
	}
	return to
}

// done reports whether all of the document was read.
func (f *jsonForm) done() bool { return f.some && f.rest == "}" && !f.refused }

// scanEntity reads the body of an entity. The tags, in order of name, are beside it, in the memory of to.
func scanEntity(body string, to core.Tags) (e core.Entity, tags core.Tags, ok bool) {
	f := jsonForm{rest: body}
	tags = to[:0]
	if f.field(`"name":`) {
		f.text()
	}
	if f.field(`"enabled":`) {
		e.Enabled = f.bool()
	}
	if f.field(`"label":`) {
		e.Label = f.text()
	}
	if f.field(`"interpolate":`) {
		e.Interpolate = f.text()
	}
	if f.field(`"timeZone":`) {
		e.TimeZone = f.text()
	}
	if f.field(`"tags":`) {
		tags = f.tags(tags)
	}
	if f.field(`"created":`) {
		e.Created = core.Time(f.integer())
	}
	if f.field(`"versionDate":`) {
		e.Versioned = core.Time(f.integer())
	}
	return e, tags, f.done()
}

// scanMetric reads the body of a metric that has neither limits nor tags.
func scanMetric(body string) (m core.Metric, ok bool) {
	f := jsonForm{rest: body}
	text := func(field string, to *string) {
		if f.field(field) {
			*to = f.text()
		}
	}
	flag := func(field string, to *bool) {
		if f.field(field) {
			*to = f.bool()
		}
	}
	days := func(field string, to *int) {
		if f.field(field) {
			if n := f.integer(); n <= math.MaxInt32 {
				*to = int(n)
			} else {
				f.refused = true
			}
		}
	}
	var name, dataType, action string
	text(`"name":`, &name)
	flag(`"enabled":`, &m.Enabled)
	text(`"dataType":`, &dataType)
	text(`"label":`, &m.Label)
	text(`"description":`, &m.Description)
	text(`"units":`, &m.Units)
	flag(`"persistent":`, &m.Persistent)
	text(`"interpolate":`, &m.Interpolate)
	text(`"timeZone":`, &m.TimeZone)
	text(`"filter":`, &m.Filter)
	flag(`"versioned":`, &m.Versioned)
	text(`"invalidAction":`, &action)
	days(`"retentionDays":`, &m.RetentionDays)
	days(`"seriesRetentionDays":`, &m.SeriesRetentionDays)
	if f.field(`"created":`) {
		m.Created = core.Time(f.integer())
	}
	m.DataType, m.InvalidAction = core.DataType(dataType), core.InvalidAction(action)
	return m, f.done()
}
