package api

import (
	"errors"
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
)

// seriesInsert takes an array of series with samples. Nothing is stored unless all of it is valid.
func (c *call) seriesInsert() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	d := seriesDecoder{batch: c.batch(), records: c.server.Limits.Records, catalog: c.server.Catalog}
	err = d.decode(body)
	d.keys.release()
	if err != nil {
		if errors.Is(err, errTooMany) {
			return c.tooMany()
		}
		return err
	}
	return c.ingest(d.batch)
}

// batch returns an empty batch of this caller.
func (c *call) batch() *core.Batch { return &core.Batch{Origin: c.id.Origin(core.DoorHTTP)} }

// ingest hands a batch to the pipeline and answers an insert. A batch without records is a success that stores nothing.
func (c *call) ingest(b *core.Batch) error {
	receipt, err := c.submit(b)
	if err != nil {
		return err
	}
	return c.stored(receipt)
}

// submit hands a batch to the pipeline, which owns it from then on. An empty one is acknowledged as volatile: nothing of it was to be stored.
func (c *call) submit(b *core.Batch) (core.Receipt, error) {
	if b.Len() == 0 {
		return core.Receipt{Durability: core.Volatile}, nil
	}
	return c.server.Ingest.Ingest(c.r.Context(), b)
}

var errTooMany = core.Errorf(core.TooLarge, "too many records")

// seriesDecoder reads the body of a series insert into a batch. It is the hot path of the server: one pass over the objects of the
// array, one over the samples of each, no allocation a sample. Members may come in any order, so an object is looked over before its
// samples are read.
type seriesDecoder struct {
	batch   *core.Batch
	records int
	catalog core.Catalog

	keys            keyTable
	heads           *headCache
	key             core.SeriesKey
	tags            core.Tags // of all series, one after another: one allocation for many
	head            seriesHead
	sample          sampleFields
	headOf, fieldOf func(key string, v gjson.Result) bool // headMember and sampleMember: method values are made once, not once a sample
	ref             uint32                                // of the series whose samples are read
	spread          uint32                                // of its deviations, once a sample has one
	err             error
}

// noRef is the reference of a series that has none yet.
const noRef = math.MaxUint32

// seriesHead is one series object, its samples not yet read.
type seriesHead struct {
	entity, metric string
	tags, data     gjson.Result
	kind           core.Kind
	forecast       string // name of a forecast
}

// sampleFields is one sample object. Raw values keep the digits that were sent.
type sampleFields struct {
	time              core.Time
	timed             bool // t was seen; it beats d
	date              string
	value, deviation  gjson.Result
	text              string
	hasValue, hasText bool
	version           gjson.Result
}

// decode reads a scanned body: an array of series, or one.
func (d *seriesDecoder) decode(body string) error {
	d.heads = headCaches.take()
	defer func() {
		headCaches.giveBack(d.heads)
		d.heads = nil
	}()
	d.heads.batch++
	return d.read(body)
}

func (d *seriesDecoder) read(body string) error {
	root := gjson.Parse(body)
	d.headOf, d.fieldOf = d.headMember, d.sampleMember
	if !root.IsArray() {
		d.series(root.Raw, 0)
		return d.err
	}
	d.reserve(body)
	eachObject(root.Raw, func(i int) (int, bool) {
		end := d.series(root.Raw, i)
		return end, d.err == nil
	})
	return d.err
}

// reserve makes room for about as many series and samples as the body has, so that no column grows step by step.
func (d *seriesDecoder) reserve(body string) {
	const (
		most       = 1 << 16 // hints only: brackets in texts cost no more than some MB
		leastBytes = 13      // of a sample: {"t":1,"v":2}
	)
	// A series has one array, and a brace beside those of its samples. Counting a byte is nearly free.
	series := min(strings.Count(body, "["), len(body)/leastBytes, most)
	samples := min(max(strings.Count(body, "{")-series, series), len(body)/leastBytes, most)
	d.tags = make(core.Tags, 0, 2*series) // more tags than that are rare
	d.batch.Keys = make([]core.SeriesKey, 0, series)
	d.batch.Samples = core.Samples{Series: make([]uint32, 0, samples), Times: make([]core.Time, 0, samples), Values: make([]float64, 0, samples),
		Flags: make([]core.Flags, 0, samples)}
}

// series reads the object at i: first its head, whatever the order of the members, then its samples. It returns the place after the object.
func (d *seriesDecoder) series(body string, i int) (end int) {
	if i >= len(body) || body[i] != '{' {
		v, end := valueAt(body, i)
		d.fail("a series object is expected, not %s", excerpt(v.Raw))
		return end
	}
	if end, ok := d.known(body, i); ok {
		return end
	}
	d.head = seriesHead{}
	if end = walkAt(body, i, d.headOf); d.err == nil {
		d.readSeries()
	}
	if d.err == nil && d.head.kind == core.Measured {
		d.heads.learn(body[i:end], d.head.data.Raw, d.key)
	}
	return end
}

// readSeries judges the head and reads the samples.
func (d *seriesDecoder) readSeries() {
	key := core.SeriesKey{Metric: d.head.metric, Entity: d.head.entity}
	switch {
	case key.Entity == "":
		d.fail("Empty entity")
	case key.Metric == "":
		d.fail("Empty metric")
	case !validName(key.Entity):
		d.fail("Invalid entity name '%s'", key.Entity)
	case !validName(key.Metric):
		d.fail("Invalid metric name '%s'", key.Metric)
	case d.head.tags.Type != gjson.Null:
		start := len(d.tags)
		if d.tags, d.err = decodeTags(d.head.tags, d.tags); d.err == nil {
			key.Tags = d.tags[start:len(d.tags):len(d.tags)].Normal()
		}
	}
	if d.err != nil {
		return
	}
	switch {
	case d.head.data.Type == gjson.Null:
		d.fail("No data")
		return
	case !d.head.data.IsArray():
		d.fail("data: an array is expected, not %s", excerpt(d.head.data.Raw))
		return
	}
	d.key, d.spread = key, noRef
	d.ref = d.keys.ref(d.batch, key.In(d.head.kind, d.head.forecast))
	before := d.batch.Samples.Len()
	d.readSamples(d.head.data.Raw, 0)
	if d.err == nil && d.batch.Samples.Len() == before {
		d.fail("No data")
	}
}

// readSamples reads the samples of the array at i and returns the place after it, or after the sample that is at fault.
func (d *seriesDecoder) readSamples(json string, i int) (end int) {
	for i++; ; {
		if i = nextItem(json, i); i >= len(json) || json[i] == ']' {
			return i + 1
		}
		end, ok := d.addPlain(json, i)
		if !ok {
			var more bool
			if end, more = d.addSample(json, i); !more {
				return end
			}
		}
		i = end
	}
}

// addPlain reads the sample at i when it is of the usual form {"t":1620036000000,"v":12.5}. Otherwise, and when anything is wrong with it, it has done
// nothing.
func (d *seriesDecoder) addPlain(json string, i int) (end int, ok bool) {
	const (
		timeMember, valueMember = `{"t":`, `"v":`

		maxDigits = 13 // of storable times; they fit in any case
	)
	if len(json)-i < len(timeMember) || json[i:i+len(timeMember)] != timeMember {
		return 0, false
	}
	i = skipBlank(json, i+len(timeMember))
	t, start := core.Time(0), i
	for i < len(json) && isDigit(json[i]) && i-start < maxDigits {
		t = 10*t + core.Time(json[i]-'0')
		i++
	}
	if i == start || i >= len(json) || json[i] != ',' {
		return 0, false
	}
	i = skipBlank(json, i+1)
	if len(json)-i < len(valueMember) || json[i:i+len(valueMember)] != valueMember {
		return 0, false
	}
	i = skipBlank(json, i+len(valueMember))
	for start = i; i < len(json) && json[i] != '}' && json[i] != ','; i++ {
	}
	if i >= len(json) || json[i] != '}' || !(isDigit(json[start]) || json[start] == '-') || !t.Storable() || d.batch.Samples.Len() >= d.records {
		return 0, false
	}
	n, ok := command.ParseNumber(json[start:i])
	if ok {
		d.addNumber(d.ref, t, n)
	}
	return i + 1, ok
}

// skipBlank skips the one blank that many encoders write behind a colon or a comma.
func skipBlank(json string, i int) int {
	if i < len(json) && json[i] == ' ' {
		i++
	}
	return i
}

// addNumber appends a sample with a number and returns its index.
func (d *seriesDecoder) addNumber(ref uint32, t core.Time, n command.Number) int {
	i := d.batch.Add(ref, t, n.Value)
	if n.Inexact {
		d.batch.Samples.Decimals = append(d.batch.Samples.Decimals, core.DecimalAt{Index: uint32(i), Decimal: n.Decimal})
	}
	return i
}

func (d *seriesDecoder) fail(format string, args ...any) {
	d.err = core.Errorf(core.Invalid, "IllegalArgumentException: "+format, args...)
}

// headMember takes one member of a series object; tags and data are only noted.
func (d *seriesDecoder) headMember(key string, v gjson.Result) bool {
	if v.Type == gjson.Null {
		return true
	}
	switch key {
	case "entity":
		d.head.entity = d.name(key, v)
	case "metric":
		d.head.metric = d.name(key, v)
	case "tags":
		d.head.tags = v
	case "data":
		d.head.data = v
	case "forecastName":
		var o object
		d.head.forecast, d.err = trimmed(o.text(key, v)), o.err
	case "type":
		switch strings.ToUpper(v.Str) {
		case "HISTORY", "":
		case "FORECAST":
			d.head.kind = core.Predicted
		default:
			d.fail("unknown series type %s", excerpt(v.Raw))
		}
	}
	return d.err == nil
}

// name reads the name of an entity or metric; a number is a name, too.
func (d *seriesDecoder) name(key string, v gjson.Result) string {
	if v.Type == gjson.JSON {
		d.fail("%s: a name is expected, not %s", key, excerpt(v.Raw))
	}
	if v.Type == gjson.String {
		return lowered(trimmed(v.Str))
	}
	return lowered(v.Raw)
}

// decodeTags appends the tags of an insert, in the order in which they were sent: no value may be empty.
func decodeTags(v gjson.Result, tags core.Tags) (core.Tags, error) {
	var o object
	if !v.IsObject() {
		o.fail("tags: an object is expected, not %s", excerpt(v.Raw))
		return tags, o.err
	}
	walk(v.Raw, func(key string, v gjson.Result) bool {
		value := ""
		if v.Type != gjson.Null {
			value = trimmed(o.text(key, v))
		}
		name := lowered(trimmed(key))
		switch {
		case o.err != nil:
		case value == "":
			o.fail("Tag \"%s\" has empty value", key)
		case name == "" || !validName(name):
			o.fail("Invalid tag name '%s'", key)
		}
		tags = append(tags, core.Tag{Name: name, Value: value})
		return o.err == nil
	})
	return tags, o.err
}

// addSample reads the sample at i and returns the place after it. Faults are found in the order of the request, so that the text names the first one.
func (d *seriesDecoder) addSample(data string, i int) (end int, more bool) {
	if data[i] != '{' {
		v, end := valueAt(data, i)
		d.fail("a sample object is expected, not %s", excerpt(v.Raw))
		return end, false
	}
	d.sample = sampleFields{}
	if end = walkAt(data, i, d.fieldOf); d.err != nil {
		return end, false
	}
	t, err := d.sample.when()
	if err == nil {
		err = checkTime(t)
	}
	if err == nil && d.batch.Samples.Len() >= d.records {
		err = errTooMany
	}
	if err == nil {
		err = d.store(t)
	}
	d.err = err
	return end, err == nil
}

// sampleMember takes one member of a sample.
func (d *seriesDecoder) sampleMember(key string, v gjson.Result) bool {
	f := &d.sample
	switch key {
	case "t":
		if v.Type == gjson.Null {
			break
		}
		n, ok := parseInteger(textValue(v))
		if !ok {
			d.fail("t: Unix milliseconds are expected, not %s", excerpt(v.Raw))
		}
		f.time, f.timed = core.Time(n), true
	case "d":
		if v.Type == gjson.Null {
			break
		}
		f.date = textValue(v) // of anything but a string: its text, which is no date
	case "v":
		f.value, f.hasValue = v, true
	case "x":
		var o object
		f.text, f.hasText = o.text("x", v), v.Type != gjson.Null
		d.err = o.err
	case "version":
		f.version = v
	case "s":
		f.deviation = v
	}
	return d.err == nil
}

// textValue is the text of a value: of a string what its quotes hold.
func textValue(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}

// when returns the time of the sample: t before d.
func (f *sampleFields) when() (core.Time, error) {
	if f.timed {
		return f.time, nil
	}
	if f.date == "" {
		return 0, core.Errorf(core.Invalid, "IllegalArgumentException: a sample needs t or d")
	}
	t, err := dates.ParseISO(f.date)
	if err != nil {
		return 0, mappingFault(err)
	}
	return t, nil
}

// store appends the sample to the batch.
func (d *seriesDecoder) store(t core.Time) error {
	f := &d.sample
	var i int
	switch {
	case f.hasValue:
		n, err := d.number("v", f.value)
		if err != nil {
			return err
		}
		i = d.addNumber(d.ref, t, n)
		if f.hasText {
			d.batch.Samples.Texts = append(d.batch.Samples.Texts, core.TextAt{Index: uint32(i), Text: f.text})
		}
	case f.hasText:
		i = d.batch.AddText(d.ref, t, f.text)
	default:
		return core.Errorf(core.Invalid, "IllegalArgumentException: a sample needs v or x")
	}
	if err := d.storeVersion(i); err != nil {
		return err
	}
	if d.head.kind == core.Measured || f.deviation.Type == gjson.Null {
		return nil
	}
	return d.storeDeviation(t)
}

// storeDeviation appends the standard deviation of a forecast value as a sample of a series of its own.
func (d *seriesDecoder) storeDeviation(t core.Time) error {
	n, err := d.number("s", d.sample.deviation)
	if err != nil {
		return err
	}
	if d.spread == noRef {
		d.spread = d.keys.ref(d.batch, d.key.In(core.Deviation, d.head.forecast))
	}
	d.addNumber(d.spread, t, n)
	return nil
}

// storeVersion adds the version fields to sample i.
func (d *seriesDecoder) storeVersion(i int) error {
	f := &d.sample
	if f.version.Type == gjson.Null {
		return nil
	}
	if m, ok := d.catalog.Metric(d.head.metric); ok && !m.Versioned {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Metric '%s' is not versioned", d.head.metric)
	}
	version := core.VersionAt{Index: uint32(i)}
	o := object{member: "version"}
	o.each(f.version, func(name string, v gjson.Result) {
		switch name {
		case "source":
			version.Source = o.text(name, v)
		case "status":
			version.Status = o.text(name, v)
		}
	})
	d.batch.Samples.Versions = append(d.batch.Samples.Versions, version)
	return o.err
}

// number reads a value: null and NaN are no number, a string holds what the text protocol takes.
func (d *seriesDecoder) number(name string, v gjson.Result) (command.Number, error) {
	text := v.Raw
	switch v.Type {
	case gjson.Null:
		return command.Number{Value: math.NaN()}, nil
	case gjson.String:
		text = v.Str
	}
	n, ok := command.ParseNumber(text)
	if !ok {
		return n, core.Errorf(core.Invalid, "IllegalArgumentException: %s: a number is expected, not %s", name, excerpt(v.Raw))
	}
	return n, nil
}
