package csv

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// record handles one record: the header, or a row.
func (p *parser) record(r *record, out *abi.Encoder) *fault {
	if p.grid != nil {
		return p.gridRecord(r, out)
	}
	if r.fault != "" {
		return &fault{r.line, r.place, r.fault, string(r.text)}
	}
	if p.plan == nil {
		return p.header(r, out)
	}
	return p.row(r, out)
}

// header takes the names from the first record, or from the settings. With names in the settings a first record whose time cannot be
// read is the header that they replace.
func (p *parser) header(r *record, out *abi.Encoder) *fault {
	names := []string(p.Header)
	if names == nil {
		for i := range r.size() {
			names = append(names, string(r.raw(i)))
		}
	}
	var err error
	if p.plan, err = p.newPlan(names); err != nil {
		p.IgnoreLineErrors = false // without its columns no line of the file can be read
		return &fault{r.line, 0, err.Error(), string(r.text)}
	}
	if p.Header == nil {
		return nil
	}
	if len(p.plan.time) > 0 {
		if t, ok := p.parseTime(join(r, p.plan.time), p.zone); !ok || !t.Storable() {
			return nil
		}
	}
	return p.row(r, out)
}

// row converts one row.
func (p *parser) row(r *record, out *abi.Encoder) *fault {
	out.AddRecords(1)
	for i := len(p.plan.names); i < r.size(); i++ {
		if b := r.raw(i); len(b) > 0 {
			return &fault{r.line, i + 1, "more cells than the header has names", string(b)}
		}
	}
	t, f := p.timeOf(r)
	if f != nil {
		return f
	}
	if p.filter != nil {
		keep, err := p.filter.Match(&filter.RowEnv{Time: t, Find: func(column string) (string, bool) { return p.find(r, column) }})
		if err != nil {
			return &fault{r.line, 0, "filter: " + err.Error(), string(r.text)}
		}
		if !keep {
			return nil
		}
	}
	entity := p.entity(r)
	if len(entity) == 0 {
		return &fault{r.line, 0, "no entity: set entityColumns or default-entity", string(r.text)}
	}
	if p.command == properties || p.WriteProperty {
		p.property(r, t, p.entityName(entity), out)
	}
	switch {
	case p.command == messages:
		return p.message(r, t, p.entityName(entity), out)
	case p.command == metrics && p.plan.value >= 0:
		return p.longSample(r, t, p.entityName(entity), out)
	case p.command == metrics:
		return p.samples(r, t, p.refsOf(r, entity), out)
	}
	return nil
}

// text returns a cell without blanks around it, empty when the row is too short.
func text(r *record, column int) []byte {
	b := r.raw(column)
	if uint(column) < uint(len(r.cells)) && r.cells[column].quoted {
		return trim(b)
	}
	return b
}

// find gives the row filter a cell. A number is given in plain notation, so that `number('t') > 0` means the same in every file.
func (p *parser) find(r *record, column string) (string, bool) {
	i, ok := p.plan.find(column)
	b := text(r, i)
	if p.number.special() {
		if _, _, isNumber := p.number.parse(b); isNumber {
			b = p.number.buf
		}
	}
	return string(b), ok
}

// join puts the cells of some columns together with dashes.
func join(r *record, columns []int) []byte {
	if len(columns) == 1 {
		return text(r, columns[0])
	}
	var parts [][]byte
	for _, c := range columns {
		parts = append(parts, text(r, c))
	}
	return bytes.Join(parts, []byte("-"))
}

// entity returns the entity of a row as it is written there, empty for none.
func (p *parser) entity(r *record) []byte {
	joined := join(r, p.plan.entity)
	for _, c := range joined {
		if c != '-' {
			return joined
		}
	}
	return p.defaultEntity
}

// entityName makes the stored name of an entity: replaced, then with its prefix.
func (p *parser) entityName(written []byte) string {
	name, replaced := p.EntityReplacements[string(written)]
	if !replaced {
		name = string(written)
	}
	return cleanName(p.EntityPrefix + name)
}

// timeOf reads the time of a row.
func (p *parser) timeOf(r *record) (core.Time, *fault) {
	if len(p.plan.time) == 0 {
		return p.time, nil
	}
	if p.isISO && len(p.plan.time) == 1 && p.plan.diff < 0 && r.isPlain(p.plan.time[0]) {
		b := r.cut(p.plan.time[0])
		if ms, ok := guest.ParseTime(b); ok && len(b) >= 20 && core.Time(ms).Storable() {
			return core.Time(ms), nil // nearly every row
		}
	}
	return p.readTime(join(r, p.plan.time), r, p.plan.time[0]+1)
}

// readTime reads a time that was written in a row, or in a column of it.
func (p *parser) readTime(b []byte, r *record, column int) (core.Time, *fault) {
	t, ok := p.parseTime(b, p.zone)
	if diff := p.diff(r); ok && len(diff) > 0 && !p.namesZone(b) {
		ahead, isOffset := p.offset(diff)
		if !isOffset {
			return 0, &fault{r.line, p.plan.diff + 1, "not an offset from UTC: use +hh:mm, +hhmm, hours below 24 or minutes, up to 18 hours", string(diff)}
		}
		t, ok = p.parseTime(b, nil)
		t -= ahead
	}
	if !ok || !t.Storable() {
		return 0, &fault{r.line, column, "not a time between 1970 and 2106 in the form of timestampPattern", string(b)}
	}
	return t, nil
}

// diff returns the cell with the offset of a row, empty for none.
func (p *parser) diff(r *record) []byte {
	if p.plan == nil || p.plan.diff < 0 {
		return nil
	}
	return text(r, p.plan.diff)
}

// elsewhere is a zone that is not UTC.
var elsewhere = time.FixedZone("", 3600)

// namesZone reports whether a time names its zone: then it is the same instant whatever zone is meant otherwise.
func (p *parser) namesZone(b []byte) bool {
	if p.pattern == nil {
		return false
	}
	here, _ := p.parseTime(b, nil)
	there, _ := p.parseTime(b, elsewhere)
	return here == there
}

// parseTime reads a time, which is UTC when neither it nor zone says otherwise.
func (p *parser) parseTime(b []byte, zone *time.Location) (core.Time, bool) {
	switch p.TimestampType {
	case "SECONDS":
		v, ok := guest.ParseFloat(b)
		if !(math.Abs(v) < 1e15) { // of what no int64 holds, and of NaN, each processor makes another number
			return 0, false
		}
		return core.Time(math.Floor(float64(v*1000) + 0.0005)), ok
	case "MILLISECONDS":
		v, err := strconv.ParseInt(string(b), 10, 64)
		return core.Time(v), err == nil
	}
	if ms, ok := guest.ParseTime(b); ok && p.isISO && len(b) >= 20 {
		return core.Time(ms), true
	}
	t, err := p.pattern.ParseLenient(string(b), zone)
	return t, err == nil
}

const (
	hour      = 60 * 60_000 // milliseconds
	maxOffset = 18 * hour
)

// offset reads local time minus UTC in milliseconds: `+02:00`, `+0200`, or a number, of hours when it is below 24, else of minutes.
func (p *parser) offset(b []byte) (core.Time, bool) {
	written := string(b)
	if b[0] != '-' && b[0] != '+' && bytes.IndexByte(b, ':') > 0 {
		written = "+" + written
	}
	if ms, ok := dates.ParseOffset(written); ok {
		return core.Time(ms), true
	}
	v, _, ok := p.number.parse(b)
	unit := float64(hour)
	if math.Abs(v) >= 24 {
		unit /= 60
	}
	ms := math.Round(v * unit)
	return core.Time(ms), ok && math.Abs(ms) <= maxOffset // which NaN is not
}

// samples writes the series of a row. A cell that is not a number ends the row, unless line errors are ignored: then only the cell.
func (p *parser) samples(r *record, t core.Time, refs *seriesRefs, out *abi.Encoder) *fault {
	plain := !p.number.special()
	for i := range p.plan.metrics {
		m := &p.plan.metrics[i]
		if plain && r.isPlain(m.column) && refs.known[i] {
			if v, ok := guest.ParseDecimal(r.cut(m.column)); ok {
				out.Sample(refs.refs[i], int64(t), v) // nearly every cell
				continue
			}
		}
		b := text(r, m.column)
		if len(b) == 0 {
			continue
		}
		v, exact, ok := p.number.parse(b)
		if !ok {
			f := &fault{r.line, m.column + 1, "not a number", string(b)}
			if !p.IgnoreLineErrors {
				return f
			}
			out.Reject(f.line, f.column, f.reason, f.text)
			continue
		}
		if v != v && p.DiscardNaN {
			continue
		}
		if !refs.known[i] {
			refs.refs[i], refs.known[i] = out.Series(m.name, refs.entity, refs.tags...), true
		}
		p.putSample(refs.refs[i], t, v, exact, out)
	}
	return nil
}

// longSample writes a row whose metric name is in a column.
func (p *parser) longSample(r *record, t core.Time, entity string, out *abi.Encoder) *fault {
	name := string(text(r, p.plan.name))
	if name == "" {
		name = p.DefaultMetric
	}
	if name == "" {
		return &fault{r.line, p.plan.name + 1, "no metric name: set metricNameColumn or default-metric", string(r.text)}
	}
	b := text(r, p.plan.value)
	if len(b) == 0 {
		return nil
	}
	v, exact, ok := p.number.parse(b)
	if !ok {
		return &fault{r.line, p.plan.value + 1, "not a number", string(b)}
	}
	if v != v && p.DiscardNaN {
		return nil
	}
	ref := out.Series(cleanName(p.MetricPrefix+name), entity, p.tagsOf(r)...)
	p.putSample(ref, t, v, exact, out)
	return nil
}

// putSample writes a sample with its decimal text, if it has one.
func (p *parser) putSample(ref abi.SeriesRef, t core.Time, v float64, exact string, out *abi.Encoder) {
	if exact == "" {
		out.Sample(ref, int64(t), v)
	} else {
		out.SampleDecimal(ref, int64(t), v, exact)
	}
}

// maxRemembered bounds the entities whose series are remembered over the batches of a file.
const maxRemembered = 1 << 14

// recentSize slots save a guest, which hashes the key of a map some 10 times slower than a host, most look-ups.
const recentSize = 1 << 8

// refsOf returns the series of the row's entity and tags.
func (p *parser) refsOf(r *record, entity []byte) *seriesRefs {
	slot := &p.recent[guest.Hash(entity)%recentSize]
	s := *slot
	if s == nil || !p.isKey(s.key, r, entity) {
		s = p.findRefs(r, entity)
		*slot = s
	}
	if s.batch != p.batch {
		s.batch = p.batch
		clear(s.known)
	}
	return s
}

// isKey reports whether key stands for the entity and the tags of a row.
func (p *parser) isKey(key string, r *record, entity []byte) bool {
	n := len(entity)
	if n >= len(key) || key[:n] != string(entity) || key[n] != 0 {
		return false
	}
	key = key[n+1:]
	for i := range p.plan.tags {
		tag := text(r, p.plan.tags[i].column)
		n := len(tag)
		if n >= len(key) || key[:n] != string(tag) || key[n] != 0 {
			return false
		}
		key = key[n+1:]
	}
	return key == ""
}

func (p *parser) findRefs(r *record, entity []byte) *seriesRefs {
	p.key = append(append(p.key[:0], entity...), 0)
	for _, tag := range p.plan.tags {
		p.key = append(append(p.key, text(r, tag.column)...), 0)
	}
	s := p.series[string(p.key)]
	if s == nil {
		if len(p.series) >= maxRemembered {
			clear(p.series)
		}
		n := len(p.plan.metrics)
		s = &seriesRefs{key: string(p.key), entity: p.entityName(entity), tags: p.tagsOf(r), refs: make([]abi.SeriesRef, n), known: make([]bool, n)}
		p.series[s.key] = s
	}
	return s
}

// tagsOf returns the tags of a row, sorted by name: columns beat copied tags, those of the request, and these the defaults.
func (p *parser) tagsOf(r *record) []abi.Pair {
	tags := make(core.Tags, 0, len(p.tags)+len(p.plan.tags))
	for _, t := range p.tags {
		tags = append(tags, core.Tag{Name: t.Name, Value: t.Value})
	}
	for _, c := range p.plan.tags {
		if v := text(r, c.column); len(v) > 0 {
			tags = append(tags, core.Tag{Name: c.name, Value: string(v)})
		}
	}
	tags = tags.Normal()
	out := make([]abi.Pair, len(tags), len(tags)+len(p.copied))
	for i, t := range tags {
		out[i] = abi.Pair(t)
	}
	return p.copyInto(out, func(name string) bool {
		return slices.ContainsFunc(p.plan.tags, func(c place) bool { return c.name == name && len(text(r, c.column)) > 0 })
	})
}

// copiedTag is a tag whose value the host copies from the entity or the metric of a command.
type copiedTag struct{ reserved, name string }

// copyInto adds the tags to be copied, unless a column has one of the name: columns beat them, they beat what else stands in tags.
func (p *parser) copyInto(tags []abi.Pair, column func(name string) bool) []abi.Pair {
	for _, c := range p.copied {
		if !column(c.name) {
			tags = append(tags, abi.Pair{Name: c.reserved})
		}
	}
	return tags
}

// property writes a row as a property; a row without a value writes nothing.
func (p *parser) property(r *record, t core.Time, entity string, out *abi.Encoder) {
	kind := p.PropertyType
	if kind == "" {
		kind = p.Name
	}
	p.putProperty(&abi.Property{Entity: entity, Type: cleanName(kind), Persist: true, Time: int64(t), Keys: pairsOf(r, p.plan.keys), Tags: pairsOf(r, p.plan.fields)}, out)
}

// putProperty writes a property with the tags of request and settings, unless it has none of its own.
func (p *parser) putProperty(property *abi.Property, out *abi.Encoder) {
	if len(property.Tags) > 0 {
		property.Tags = p.withDefaults(property.Tags)
		out.Property(property)
	}
}

// withDefaults adds what the request, the settings, the entity and the metric say to the tags of a row, which are over them.
func (p *parser) withDefaults(row []abi.Pair) []abi.Pair {
	all := slices.Clone(row)
	for _, d := range p.tags {
		if !hasName(row, d.Name) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b abi.Pair) int { return strings.Compare(a.Name, b.Name) })
	return p.copyInto(all, func(name string) bool { return hasName(row, name) })
}

func pairsOf(r *record, places []place) []abi.Pair {
	var out []abi.Pair
	for _, c := range places {
		if v := text(r, c.column); len(v) > 0 && !hasName(out, c.name) {
			out = append(out, abi.Pair{Name: c.name, Value: string(v)})
		}
	}
	return out
}

func hasName(pairs []abi.Pair, name string) bool {
	for _, p := range pairs {
		if p.Name == name {
			return true
		}
	}
	return false
}

// messageFields are the columns of a message that are its fields, not its tags.
var messageFields = []string{"type", "source", "severity"}

// message writes a row as a message.
func (p *parser) message(r *record, t core.Time, entity string, out *abi.Encoder) *fault {
	m := abi.Message{Entity: entity, Persist: true, Time: int64(t), Text: string(text(r, p.plan.text))}
	wanted, bad := p.fillMessage(&m, pairsOf(r, p.plan.others))
	if bad != "" {
		return &fault{r.line, 0, "not a severity", bad}
	}
	if wanted {
		out.Message(&m)
	}
	return nil
}

// fillMessage puts the tags of a row and those of request and settings into the fields and tags of a message. It is not wanted when it says nothing; bad is what is not a
// severity.
func (p *parser) fillMessage(m *abi.Message, columns []abi.Pair) (wanted bool, bad string) {
	for i, tag := range slices.Concat(columns, p.tags) {
		switch {
		case i >= len(columns) && hasName(columns, tag.Name):
		case tag.Name == "type":
			m.Type = strings.ToLower(tag.Value)
		case tag.Name == "source":
			m.Source = strings.ToLower(tag.Value)
		case tag.Name == "severity":
			s, ok := core.ParseSeverity(tag.Value)
			if !ok {
				return false, tag.Value
			}
			m.Severity = uint8(s)
		default:
			m.Tags = append(m.Tags, tag)
		}
	}
	if m.Text == "" && len(m.Tags) == 0 {
		return false, ""
	}
	m.Tags = p.copyInto(m.Tags, func(name string) bool { return hasName(columns, name) })
	return true, ""
}

// numbers reads the numbers of a file.
type numbers struct {
	decimal, grouping byte // grouping 0 = none
	buf               []byte
}

// special reports whether numbers are not written in plain notation.
func (n *numbers) special() bool { return n.grouping != 0 || n.decimal != '.' }

// exactDigits is how many digits float64 surely gives back.
const exactDigits = 15

// parse reads one cell. exact is the decimal text when the number has more digits than float64 surely keeps.
func (n *numbers) parse(b []byte) (v float64, exact string, ok bool) {
	if n.special() {
		n.buf = n.buf[:0]
		for _, c := range b {
			switch c {
			case n.grouping:
				continue
			case n.decimal:
				c = '.'
			case '.':
				return 0, "", false
			}
			n.buf = append(n.buf, c)
		}
		b = n.buf
	}
	if v, ok = guest.ParseDecimal(b); ok {
		return v, "", true
	}
	if len(b) == 3 && bytes.EqualFold(b, []byte("nan")) {
		return math.NaN(), "", true
	}
	if !numeric(b) {
		return 0, "", false
	}
	v, ok = guest.ParseFloat(b)
	if ok && len(b) > exactDigits {
		exact = string(b)
	}
	return v, exact, ok
}

// numeric leaves out what strconv reads beyond decimal numbers: hexadecimal, infinities, underscores.
func numeric(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return false
		}
	}
	return len(b) > 0
}
