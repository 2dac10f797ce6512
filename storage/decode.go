package storage

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// decodeRecord is the inverse of encoder.encode. The batch's strings share one copy of the body, nothing of it points into payload. Whatever the
// bytes are, it allocates a bounded multiple of their length.
func (p *packer) decodeRecord(payload []byte) (*core.Batch, error) {
	body, err := p.body(payload, nil)
	if err != nil {
		return nil, err
	}
	b := &core.Batch{}
	d := decoder{rest: unsafe.String(unsafe.SliceData(body), len(body))} // nobody writes to these bytes again
	if err := d.batch(b); err != nil {
		return nil, err
	}
	return b, nil
}

// batch reads a body into b, which is empty, except for columns whose memory may be used.
func (d *decoder) batch(b *core.Batch) error {
	parts := d.uvarint()
	if parts >= partsEnd {
		d.err, d.rest = &laterRecord{VersionError: vfs.VersionError{Found: uint32(min(parts, math.MaxUint32)), Known: partsEnd - 1}, what: "parts"}, ""
	}
	b.Origin = d.origin()
	for _, part := range [...]struct {
		bit  uint64
		read func(*core.Batch)
	}{
		{partSamples, d.samples}, {partMessages, d.messages}, {partProperties, d.properties}, {partSeries, d.series}, {partRemoved, d.removed},
		{partAlerts, d.alerts}, {partDocuments, d.documents},
	} {
		if parts&part.bit != 0 {
			part.read(b)
		}
	}
	if d.err == nil && d.rest != "" {
		d.fail("%d bytes too many", len(d.rest))
	}
	return d.err
}

// body returns the unpacked body, in the memory of buf if there is enough.
func (p *packer) body(payload, buf []byte) ([]byte, error) {
	if len(payload) < 2 {
		return nil, malformed("%d bytes are too few", len(payload))
	}
	version, flags, rest := payload[0], payload[1], payload[2:]
	switch {
	case version != recordVersion:
		return nil, malformed("version %d, this program reads %d", version, recordVersion)
	case flags&^recordPacked != 0:
		return nil, malformed("unknown flags %#x", flags)
	case flags == 0:
		return append(buf[:0], rest...), nil
	}
	length, n := binary.Uvarint(rest)
	if n <= 0 || length > maxRecord || length > maxPackRatio*uint64(len(rest)) {
		return nil, malformed("raw length %d for %d packed bytes", length, len(rest))
	}
	if uint64(cap(buf)) < length {
		buf = make([]byte, 0, length)
	}
	raw, err := p.dec.DecodeAll(rest[n:], buf[:0:length])
	if err != nil {
		return nil, malformed("unpack: %w", err)
	}
	if uint64(len(raw)) != length {
		return nil, malformed("unpacked to %d bytes instead of %d", len(raw), length)
	}
	return raw, nil
}

func malformed(format string, args ...any) error {
	return core.Wrap(core.Internal, fmt.Errorf(format, args...), "malformed batch record")
}

// decoder reads from the front of rest. After the first fault it yields zeroes, and nothing to loop over.
type decoder struct {
	rest   string
	err    error
	tables *keyTables // nil: each record's keys are read
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = malformed(format, args...)
	}
	d.rest = ""
}

func (d *decoder) uvarint() uint64 {
	if d.rest != "" && d.rest[0] < 0x80 { // most numbers
		v := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(v)
	}
	return d.longUvarint()
}

func (d *decoder) longUvarint() uint64 {
	var v uint64
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		c := d.rest[i]
		if c < 0x80 {
			if i == binary.MaxVarintLen64-1 && c > 1 {
				break
			}
			d.rest = d.rest[i+1:]
			return v | uint64(c)<<(7*i)
		}
		v |= uint64(c&0x7f) << (7 * i)
	}
	d.fail("broken number")
	return 0
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads a number of elements, each of which takes at least width bytes.
func (d *decoder) count(width int) int {
	n := d.uvarint()
	if n > uint64(len(d.rest)/width) {
		d.fail("%d elements in %d bytes", n, len(d.rest))
		return 0
	}
	return int(n)
}

func (d *decoder) take(n int) string {
	if n > len(d.rest) {
		d.fail("%d bytes of %d", n, len(d.rest))
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) byte() byte {
	if s := d.take(1); s != "" {
		return s[0]
	}
	return 0
}

func (d *decoder) float() float64 {
	s := d.take(8)
	if s == "" {
		return 0
	}
	var x uint64
	for i := range 8 {
		x |= uint64(s[i]) << (8 * i)
	}
	return math.Float64frombits(x)
}

func (d *decoder) text() string { return d.take(d.count(1)) }

func (d *decoder) time() core.Time { return core.Time(d.varint()) }

func (d *decoder) tags() core.Tags {
	n := d.count(2)
	if n == 0 {
		return nil
	}
	t := make(core.Tags, n)
	for i := range t {
		t[i] = core.Tag{Name: d.text(), Value: d.text()}
	}
	return t
}

func (d *decoder) origin() core.Origin {
	o := core.Origin{User: d.text(), Address: d.text(), Door: core.Door(d.text()), Depth: d.byte()}
	roles := d.uvarint()
	if roles > math.MaxUint16 {
		d.fail("roles %#x", roles)
	}
	o.Grants.Roles = core.Roles(roles)
	rights := d.byte()
	if rights > originReadAll|originWriteAll {
		d.fail("rights %#x", rights)
	}
	o.Grants.ReadAll, o.Grants.WriteAll = rights&originReadAll != 0, rights&originWriteAll != 0
	o.Grants.ReadGroups, o.Grants.WriteGroups = d.names(), d.names()
	return o
}

func (d *decoder) names() []string {
	n := d.count(1)
	if n == 0 {
		return nil
	}
	names := make([]string, n)
	for i := range names {
		names[i] = d.text()
	}
	return names
}

// keys reads the front-coded table.
func (d *decoder) keys() []core.SeriesKey {
	n := d.count(2)
	var arena strings.Builder
	ends := make([]int, 0, n)
	start := 0 // of the key before
	for range n {
		before := arena.String()[start:]
		shared := d.uvarint()
		suffix := d.text()
		if shared > uint64(len(before)) || arena.Len()+int(shared)+len(suffix) > maxKeyBytes {
			d.fail("key table")
			return nil
		}
		start = arena.Len()
		arena.WriteString(before[:shared])
		arena.WriteString(suffix)
		ends = append(ends, arena.Len())
	}
	all := arena.String()
	keys := make([]core.SeriesKey, n)
	start = 0
	for i, end := range ends {
		var ok bool
		if keys[i], ok = parseKey(all[start:end]); !ok || strings.IndexByte(keys[i].Metric, 1) >= 0 || strings.IndexByte(keys[i].Entity, 1) >= 0 {
			d.fail("series key %q", all[start:end])
			return nil
		}
		start = end
	}
	return keys
}

// parseKey is core.ParseSeriesKey without copies: the key's strings are parts of s.
func parseKey(s string) (core.SeriesKey, bool) {
	return parseKeyIn(s, func(n int) core.Tags { return make(core.Tags, 0, n) })
}

// parseKeyIn is parseKey with the memory for tags asked for: room for n of them.
func parseKeyIn(s string, room func(n int) core.Tags) (core.SeriesKey, bool) {
	metric, rest, ok1 := strings.Cut(s, "\x00")
	entity, rest, ok2 := strings.Cut(rest, "\x00")
	if !ok1 || !ok2 {
		return core.SeriesKey{}, false
	}
	k := core.SeriesKey{Metric: metric, Entity: entity}
	if n := strings.Count(rest, "\x00"); n > 0 {
		k.Tags = room(n)
	}
	for rest != "" {
		tag, more, ok := strings.Cut(rest, "\x00")
		name, value, paired := strings.Cut(tag, "\x01")
		if !ok || !paired || strings.IndexByte(value, 1) >= 0 {
			return core.SeriesKey{}, false
		}
		k.Tags = append(k.Tags, core.Tag{Name: name, Value: value})
		rest = more
	}
	return k, true
}

func (d *decoder) samples(b *core.Batch) {
	if d.tables != nil {
		b.Keys = d.tables.read(d)
	} else {
		b.Keys = d.keys()
	}
	n := d.count(2) // a reference and a time take a byte each
	s := core.Samples{Series: cells(b.Samples.Series, n), Times: cells(b.Samples.Times, n), Values: cells(b.Samples.Values, n),
		Flags: cells(b.Samples.Flags, n)}
	last := int64(0)
	for i := range s.Series {
		last += d.varint()
		if last < 0 || last >= int64(len(b.Keys)) {
			d.fail("sample of series %d of %d", last, len(b.Keys))
			return
		}
		s.Series[i] = uint32(last)
	}
	last = 0
	for i := range s.Times {
		last += d.varint()
		s.Times[i] = core.Time(last)
	}
	for i := 0; i < n && d.err == nil; {
		flags, run := core.Flags(d.byte()), d.uvarint()
		if run == 0 || run > uint64(n-i) {
			d.fail("run of %d flags", run)
			return
		}
		for end := i + int(run); i < end; i++ {
			s.Flags[i] = flags
		}
	}
	d.values(&s)
	d.sides(&s)
	b.Samples = s
}

// cells returns a column of n elements, in the memory of another if there is enough. Each element is still to be set.
func cells[T any](memory []T, n int) []T {
	if cap(memory) >= n && n > 0 {
		return memory[:n]
	}
	return make([]T, n)
}

func (d *decoder) values(s *core.Samples) {
	mode := d.byte()
	if mode > valuesXor {
		d.fail("values of mode %d", mode)
	}
	var before uint64
	for i := range s.Values {
		switch {
		case s.Flags[i]&core.HasValue == 0:
			s.Values[i] = math.NaN()
		case mode == valuesRaw:
			s.Values[i] = d.float()
		default:
			before ^= bits.ReverseBytes64(d.uvarint())
			s.Values[i] = math.Float64frombits(before)
		}
	}
}

func (d *decoder) sides(s *core.Samples) {
	last, first := uint64(0), true
	index := func() uint32 {
		step := d.uvarint()
		if last += step; last >= uint64(s.Len()) || step == 0 && !first || step > math.MaxUint32 {
			d.fail("side column at sample %d of %d", last, s.Len())
			last = 0
		}
		first = false
		return uint32(last)
	}
	restart := func(width int) int {
		last, first = 0, true
		return d.count(width)
	}
	if n := restart(2); n > 0 {
		s.Texts = make([]core.TextAt, n)
		for i := range s.Texts {
			s.Texts[i] = core.TextAt{Index: index(), Text: d.text()}
		}
	}
	if n := restart(3); n > 0 {
		s.Decimals = make([]core.DecimalAt, n)
		for i := range s.Decimals {
			at := core.DecimalAt{Index: index(), Decimal: core.Decimal{Significand: d.varint()}}
			exponent := d.varint()
			if at.Exponent = int32(exponent); int64(at.Exponent) != exponent {
				d.fail("decimal exponent %d", exponent)
			}
			s.Decimals[i] = at
		}
	}
	if n := restart(4); n > 0 {
		s.Versions = make([]core.VersionAt, n)
		for i := range s.Versions {
			s.Versions[i] = core.VersionAt{Index: index(), Source: d.text(), Status: d.text(), Written: d.time()}
		}
	}
}

func (d *decoder) messages(b *core.Batch) {
	b.Messages = make([]core.Message, d.count(8))
	last := core.Time(0)
	for i := range b.Messages {
		last += d.time()
		b.Messages[i] = core.Message{Time: last, Entity: d.text(), Type: d.text(), Source: d.text(), Severity: core.Severity(d.byte()),
			Flags: core.Flags(d.byte()), Text: d.text(), Tags: d.tags()}
	}
}

func (d *decoder) propertyKey() core.PropertyKey {
	return core.PropertyKey{Entity: d.text(), Type: d.text(), Key: d.tags()}
}

func (d *decoder) properties(b *core.Batch) {
	b.Properties = make([]core.Property, d.count(6))
	last := core.Time(0)
	for i := range b.Properties {
		p := core.Property{PropertyKey: d.propertyKey()}
		last += d.time()
		p.Time, p.Flags, p.Tags = last, core.Flags(d.byte()), d.tags()
		b.Properties[i] = p
	}
}

func (d *decoder) series(b *core.Batch) {
	b.Series = make([]core.SeriesDelete, d.count(5))
	for i := range b.Series {
		b.Series[i] = core.SeriesDelete{Key: core.SeriesKey{Metric: d.text(), Entity: d.text(), Tags: d.tags()},
			Range: core.Range{Start: d.time(), End: d.time()}}
	}
}

func (d *decoder) removed(b *core.Batch) {
	b.Removed = make([]core.PropertyKey, d.count(3))
	for i := range b.Removed {
		b.Removed[i] = d.propertyKey()
	}
}

// alertWidth is the least an alert change takes: event, kind, marks, id, seven texts, tags, severity, repeat count, two numbers, two times.
const alertWidth = 3 + 1 + 7 + 1 + 2 + 16 + 2

func (d *decoder) alerts(b *core.Batch) {
	b.Alerts = make([]core.AlertChange, d.count(alertWidth))
	for i := range b.Alerts {
		c := core.AlertChange{Event: d.text(), Kind: core.AlertChangeKind(d.byte())}
		marks := d.byte()
		if marks > alertHasRow|alertAcknowledged {
			d.fail("alert marks %#x", marks)
		}
		a := &c.Alert
		a.ID = d.uvarint()
		for _, s := range [...]*string{&a.Rule, &a.Window, &a.Metric, &a.Entity, &a.TextValue, &a.Message, &a.State} {
			*s = d.text()
		}
		a.Tags, a.Severity, a.RepeatCount = d.tags(), core.Severity(d.byte()), int(d.varint())
		a.Value, a.OpenValue, a.OpenTime, a.LastEvent = d.float(), d.float(), d.time(), d.time()
		a.Acknowledged = marks&alertAcknowledged != 0
		if marks&alertHasRow != 0 {
			c.Row = d.row()
		}
		b.Alerts[i] = c
	}
}

func (d *decoder) row() *core.AlertRow {
	r := &core.AlertRow{AlertID: d.uvarint(), Time: d.time(), Received: d.time(), OpenTime: d.time()}
	var status string
	for _, s := range [...]*string{&r.Entity, &r.Metric, &r.Rule, &status, &r.Text, &r.Condition, &r.Filter, &r.Window, &r.Schedule} {
		*s = d.text()
	}
	r.Type, r.Tags, r.Value = core.Status(status), d.tags(), d.float()
	r.Severity, r.RepeatCount = core.Severity(d.byte()), int(d.varint())
	return r
}

func (d *decoder) documents(b *core.Batch) {
	b.Documents = make([]core.DocChange, d.count(4))
	for i := range b.Documents {
		c := core.DocChange{Kind: core.DocKind(d.text()), Key: d.text(), Op: core.DocOp(d.byte())}
		if c.Op > core.DocRename {
			d.fail("document operation %d", c.Op)
		}
		if body := d.text(); body != "" {
			c.Body = []byte(body)
		}
		b.Documents[i] = c
	}
}
