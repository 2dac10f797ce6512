package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

func TestKeysAreNormalisedAndJoined(t *testing.T) {
	f := newFixture(Options{})
	b := &core.Batch{}
	shared := core.Tags{{Name: "B", Value: " x "}, {Name: "a", Value: "Y"}}
	for i, metric := range []string{"Flow", "flow", "temp"} {
		b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: "Pump-Ä", Tags: shared}), core.Time(i), float64(i))
	}
	got := f.mustIngest(t, b)
	tags := core.Tags{{Name: "a", Value: "Y"}, {Name: "b", Value: "x"}}
	diff(t, []core.SeriesKey{{Metric: "flow", Entity: "pump-ä", Tags: tags}, {Metric: "temp", Entity: "pump-ä", Tags: tags}}, got.Keys)
	diff(t, []uint32{0, 0, 1}, got.Samples.Series)
	if shared[0].Name != "B" || shared[0].Value != " x " {
		t.Errorf("shared tags were changed in place: %v", shared)
	}
}

func TestOneLookupForEachName(t *testing.T) {
	f := newFixture(Options{})
	b := &core.Batch{}
	for i := range 100 {
		key := core.SeriesKey{Metric: "m" + strconv.Itoa(i%5), Entity: "e" + strconv.Itoa(i%7), Tags: core.Tags{{Name: "n", Value: strconv.Itoa(i)}}}
		b.Add(b.Ref(key), 0, 1)
	}
	b.Messages = []core.Message{{Entity: "e1", Text: "x"}, {Entity: "e2", Text: "x"}}
	f.mustIngest(t, b)
	if f.catalog.lookups != 5+7 {
		t.Errorf("%d lookups for 5 metrics and 7 entities", f.catalog.lookups)
	}
}

func TestRefusals(t *testing.T) {
	series := func(k core.SeriesKey) *core.Batch {
		b := &core.Batch{}
		b.Add(b.Ref(k), 0, 1)
		return b
	}
	tags := func(name, value string) *core.Batch {
		return series(core.SeriesKey{Metric: "m", Entity: "e", Tags: core.Tags{{Name: name, Value: value}}})
	}
	times := func(list ...core.Time) *core.Batch {
		b := &core.Batch{}
		for _, at := range list {
			sample(b, "m", at, 1)
		}
		return b
	}
	message := func(m core.Message) *core.Batch { return &core.Batch{Messages: []core.Message{m}} }
	property := func(p core.Property) *core.Batch { return &core.Batch{Properties: []core.Property{p}} }
	var many core.Tags
	for i := range 1025 {
		many = append(many, core.Tag{Name: fmt.Sprintf("t%04d", i), Value: "v"})
	}
	key := core.PropertyKey{Entity: "e", Type: "t"}
	for _, test := range []struct {
		name  string
		batch *core.Batch
		text  string
	}{
		{"empty entity", series(core.SeriesKey{Metric: "m"}), "IllegalArgumentException: Empty entity"},
		{"blank entity", series(core.SeriesKey{Metric: "m", Entity: " \n"}), "IllegalArgumentException: Empty entity"},
		{"empty metric", series(core.SeriesKey{Entity: "e"}), "IllegalArgumentException: Empty metric"},
		{"blank in entity", series(core.SeriesKey{Metric: "m", Entity: "my host"}), "IllegalArgumentException: Invalid entity name: 'my host'"},
		{"line break in metric", series(core.SeriesKey{Metric: "m\n", Entity: "e"}), "IllegalArgumentException: Invalid metric name: 'm\n'"},
		{"wide blank in metric", series(core.SeriesKey{Metric: "m\u2028x", Entity: "e"}), "IllegalArgumentException: Invalid metric name: 'm\u2028x'"},
		{"not UTF-8", series(core.SeriesKey{Metric: "m\xff", Entity: "e"}), ""},
		{"separator in entity", series(core.SeriesKey{Metric: "m", Entity: "e\x00"}), ""},
		{"empty tag value", tags("Site", ""), `IllegalArgumentException: Tag "Site" has empty value`},
		{"blank tag value", tags("Site", " \t\r\n"), `IllegalArgumentException: Tag "Site" has empty value`},
		{"separator in tag value", tags("Site", "a\x01b"), ""},
		{"separator in wide tag value", tags("Site", "ä\x00b"), ""},
		{"tag value not UTF-8", tags("Site", "a\xff"), ""},
		{"blank in tag name", tags("my tag", "v"), "IllegalArgumentException: Invalid tag name: 'my tag'"},
		{"empty tag name", tags("", "v"), "IllegalArgumentException: Invalid tag name: ''"},
		{"too many tags", series(core.SeriesKey{Metric: "m", Entity: "e", Tags: many}), "IllegalArgumentException: 1025 tags in one record. Max allowed value is 1024"},
		{"negative time", times(0, -1, core.MaxTime+1), "IllegalArgumentException: Negative timestamp"},
		{"first offending time", times(0, core.MaxTime+2, -1), "IllegalArgumentException: Too large timestamp 4294969200001. Max allowed value is 4294969199999"},
		{"message time", message(core.Message{Time: -5, Entity: "e", Text: "x"}), "IllegalArgumentException: Negative timestamp"},
		{"message entity", message(core.Message{Entity: " ", Text: "x"}), "IllegalArgumentException: Empty entity"},
		{"message type", message(core.Message{Entity: "e", Type: "a b", Text: "x"}), "IllegalArgumentException: Invalid type name: 'a b'"},
		{"message source", message(core.Message{Entity: "e", Source: "a\nb", Text: "x"}), "IllegalArgumentException: Invalid source name: 'a\nb'"},
		{"message tag", message(core.Message{Entity: "e", Tags: core.Tags{{Name: "a b", Value: "x"}}}), "IllegalArgumentException: Invalid tag name: 'a b'"},
		{"message tags", message(core.Message{Entity: "e", Tags: many}), "IllegalArgumentException: 1025 tags in one record. Max allowed value is 1024"},
		{"property without type", property(core.Property{PropertyKey: core.PropertyKey{Entity: "e"}}), "IllegalArgumentException: Empty type"},
		{"property without entity", property(core.Property{PropertyKey: core.PropertyKey{Type: "t"}}), "IllegalArgumentException: Empty entity"},
		{"property without tags", property(core.Property{PropertyKey: key}), "Empty tag values in command: property t of e has no tag with a value"},
		{"property with empty tags", property(core.Property{PropertyKey: key, Tags: core.Tags{{Name: "a", Value: " \n"}}}),
			"Empty tag values in command: property t of e has no tag with a value"},
		{"property of 1025 keys and tags", property(core.Property{PropertyKey: core.PropertyKey{Entity: "e", Type: "t", Key: many[:1000]}, Tags: many[1000:]}),
			"IllegalArgumentException: 1025 tags in one record. Max allowed value is 1024"},
		{"no entity tags", property(core.Property{PropertyKey: core.PropertyKey{Entity: "e", Type: core.EntityTagsType}}), ""},
		{"property time", property(core.Property{PropertyKey: key, Time: core.MaxTime + 1, Tags: core.Tags{{Name: "a", Value: "1"}}}),
			"IllegalArgumentException: Too large timestamp 4294969200000. Max allowed value is 4294969199999"},
		{"metric document", &core.Batch{Documents: []core.DocChange{{Kind: core.DocMetric, Key: "a b"}}}, "IllegalArgumentException: Invalid metric name: 'a b'"},
		{"entity document", &core.Batch{Documents: []core.DocChange{{Kind: core.DocEntity}}}, "IllegalArgumentException: Empty entity"},
		{"series delete", &core.Batch{Series: []core.SeriesDelete{{Key: core.SeriesKey{Metric: "m"}}}}, "IllegalArgumentException: Empty entity"},
		{"columns do not fit", &core.Batch{Samples: core.Samples{Times: []core.Time{1}}}, ""},
		{"reference without key", &core.Batch{Samples: core.Samples{Series: []uint32{7}, Times: []core.Time{1}, Values: []float64{1}, Flags: []core.Flags{core.Default}}}, ""},
		{"too deep", &core.Batch{Origin: core.Origin{Door: core.DoorRule, Depth: core.MaxDepth + 1, Grants: core.SystemGrants}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(Options{})
			got, err := f.ingest(t, test.batch)
			wantError(t, err, core.Invalid, test.text)
			if got != nil {
				t.Error("the log got a batch")
			}
		})
	}
}

func TestLimitsAreAccepted(t *testing.T) {
	f := newFixture(Options{MaxRecords: 2})
	b := &core.Batch{Origin: core.Origin{Door: core.DoorRule, Depth: core.MaxDepth, Grants: core.SystemGrants}}
	sample(b, "m", core.MinTime, 1)
	sample(b, "m", core.MaxTime, 1)
	if got := f.mustIngest(t, b); got.Samples.Len() != 2 {
		t.Errorf("got %d samples", got.Samples.Len())
	}
	b = &core.Batch{}
	for i := range 3 {
		sample(b, "m", core.Time(i), 1)
	}
	_, err := f.ingest(t, b)
	wantError(t, err, core.TooLarge, "batch has 3 records: at most 2 are allowed, send them in several requests")
}

func TestMetricSettings(t *testing.T) {
	limits := func(action core.InvalidAction) func(*core.Metric) {
		low, high := 0.0, 10.0
		return func(m *core.Metric) { m.InvalidAction, m.MinValue, m.MaxValue = action, &low, &high }
	}
	const full = core.Default | core.HasValue
	const rulesOnly = core.ForRules | core.HasValue
	nan := math.NaN()
	for _, test := range []struct {
		name     string
		settings func(*core.Metric)
		values   []float64 // that come back
		flags    []core.Flags
		status   []string
	}{
		{"defaults", func(*core.Metric) {}, []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"disabled", func(m *core.Metric) { m.Enabled = false }, nil, nil, nil},
		{"not persistent", func(m *core.Metric) { m.Persistent = false }, []float64{5, -1, 11, nan}, []core.Flags{rulesOnly, rulesOnly, rulesOnly, rulesOnly}, nil},
		{"NONE", limits(core.InvalidNone), []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"DISCARD", limits(core.InvalidDiscard), []float64{5, nan}, []core.Flags{full, full}, nil},
		{"TRANSFORM", limits(core.InvalidTransform), []float64{5, 0, 10, nan}, []core.Flags{full, full, full, full}, nil},
		{"RAISE_ERROR", limits(core.InvalidRaiseError), []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"SET_VERSION_STATUS", func(m *core.Metric) { limits(core.InvalidSetStatus)(m); m.Versioned = true },
			[]float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, []string{"", "Invalid", "Invalid", "Invalid"}},
		{"SET_VERSION_STATUS without versions", limits(core.InvalidSetStatus), []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"filter", func(m *core.Metric) { m.Filter = "value > 0" }, []float64{5, -1, 11, nan}, []core.Flags{full, rulesOnly, full, rulesOnly}, nil},
		{"filter by entity", func(m *core.Metric) { m.Filter = "entity = 'other'" }, []float64{5, -1, 11, nan}, []core.Flags{rulesOnly, rulesOnly, rulesOnly, rulesOnly}, nil},
		{"filter that is null", func(m *core.Metric) { m.Filter = "null" }, []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"filter that is a number", func(m *core.Metric) { m.Filter = "value + 1" }, []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"filter that is false", func(m *core.Metric) { m.Filter = "false" }, []float64{5, -1, 11, nan}, []core.Flags{rulesOnly, rulesOnly, rulesOnly, rulesOnly}, nil},
		{"filter that does not parse", func(m *core.Metric) { m.Filter = "value >" }, []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
		{"filter on another name", func(m *core.Metric) { m.Filter = "name = 'x'" }, []float64{5, -1, 11, nan}, []core.Flags{full, full, full, full}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(Options{})
			f.metric("m", test.settings)
			b := &core.Batch{}
			for i, v := range []float64{5, -1, 11, nan} {
				sample(b, "M", core.Time(i), v)
			}
			got := f.mustIngest(t, b)
			if test.values == nil {
				if got != nil {
					t.Errorf("the log got %d samples", got.Samples.Len())
				}
				return
			}
			diff(t, test.values, got.Samples.Values)
			diff(t, test.flags, got.Samples.Flags)
			if len(got.Samples.Versions) != len(test.status) {
				t.Fatalf("got %d versions, want %d", len(got.Samples.Versions), len(test.status))
			}
			for i, v := range got.Samples.Versions {
				diff(t, core.VersionAt{Index: uint32(i), Status: test.status[i]}, v)
			}
		})
	}
}

func TestRaiseErrorIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	f := newFixture(Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	high := 1.0
	f.metric("m", func(m *core.Metric) { m.InvalidAction, m.MaxValue = core.InvalidRaiseError, &high })
	b := &core.Batch{}
	for i := range 3 {
		sample(b, "m", core.Time(i), 2)
	}
	f.mustIngest(t, b)
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "metric=m values=3") {
		t.Errorf("log: %q", text)
	}
}

// TestSideColumnsFollow drops samples between others and checks that texts, exact values and versions stay with theirs.
func TestSideColumnsFollow(t *testing.T) {
	f := newFixture(Options{})
	high := 100.0
	f.metric("d", func(m *core.Metric) {
		m.DataType, m.Versioned, m.InvalidAction, m.MaxValue = core.TypeDecimal, true, core.InvalidDiscard, &high
	})
	f.metric("off", func(m *core.Metric) { m.Enabled = false })
	b := &core.Batch{}
	exact := core.Decimal{Significand: 1234567890123456789, Exponent: -18}
	add := func(metric string, v float64, text string) {
		i := sample(b, metric, core.Time(b.Samples.Len()), v)
		b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: i, Text: text})
		b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: i, Decimal: exact})
		b.Samples.Versions = append(b.Samples.Versions, core.VersionAt{Index: i, Source: text})
	}
	add("off", 1, "gone")
	add("d", 1, "one")
	add("d", 101, "too large")
	add("float", 3, "three")
	f.metric("float", func(*core.Metric) {})
	sample(b, "d", 4, 4)
	got := f.mustIngest(t, b)
	diff(t, []core.SeriesKey{{Metric: "d", Entity: "e"}, {Metric: "float", Entity: "e"}}, got.Keys)
	diff(t, core.Samples{
		Series: []uint32{0, 1, 0}, Times: []core.Time{1, 3, 4}, Values: []float64{1, 3, 4},
		Flags:    []core.Flags{core.Default | core.HasValue, core.Default | core.HasValue, core.Default | core.HasValue},
		Texts:    []core.TextAt{{Index: 0, Text: "one"}, {Index: 1, Text: "three"}},
		Decimals: []core.DecimalAt{{Index: 0, Decimal: exact}},
		Versions: []core.VersionAt{{Index: 0, Source: "one"}, {Index: 2}},
	}, got.Samples)
}

func TestDecimals(t *testing.T) {
	f := newFixture(Options{})
	high := 1.0
	f.metric("exact", func(m *core.Metric) {
		m.DataType, m.InvalidAction, m.MaxValue = core.TypeDecimal, core.InvalidTransform, &high
	})
	batch := func(metric string, v float64, d core.Decimal) *core.Batch {
		b := &core.Batch{}
		b.Samples.Decimals = []core.DecimalAt{{Index: sample(b, metric, 0, v), Decimal: d}}
		return b
	}
	_, err := f.ingest(t, batch("exact", 1, overflow))
	wantError(t, err, core.Invalid, "IllegalArgumentException: BigDecimal significand overflows the long type")
	if got := f.mustIngest(t, batch("other", 1, overflow)); len(got.Samples.Decimals) != 0 {
		t.Error("a metric that is not exact kept the mark of an overflow")
	}
	got := f.mustIngest(t, batch("exact", 1.5, core.Decimal{Significand: 15, Exponent: -1}))
	if got.Samples.Values[0] != 1 || len(got.Samples.Decimals) != 0 {
		t.Errorf("clamped to %v with exact value %v, want 1 and none", got.Samples.Values[0], got.Samples.Decimals)
	}
}

func TestVersionsOfMetrics(t *testing.T) {
	f := newFixture(Options{})
	f.metric("plain", func(*core.Metric) {})
	b := &core.Batch{}
	sample(b, "plain", 0, 1)
	sample(b, "new", 0, 1)
	sample(b, "new", 1, 2)
	b.Samples.Versions = []core.VersionAt{{Index: 0, Source: "a"}, {Index: 1, Status: "ok"}}
	got := f.mustIngest(t, b)
	diff(t, []core.VersionAt{{Index: 1, Status: "ok"}, {Index: 2}}, got.Samples.Versions)
	diff(t, []core.DocChange{{Kind: core.DocMetric, Key: "new", Op: core.DocPatch, Body: []byte(`{"versioned":true}`)}}, got.Documents)
}

func TestInfinitiesBecomeNaN(t *testing.T) {
	f := newFixture(Options{})
	b := &core.Batch{}
	sample(b, "m", 0, math.Inf(1))
	sample(b, "m", 1, math.Inf(-1))
	diff(t, []float64{math.NaN(), math.NaN()}, f.mustIngest(t, b).Samples.Values)
}

func TestMessages(t *testing.T) {
	f := newFixture(Options{})
	f.catalog.entities["off"] = core.Entity{Name: "off"}
	field := core.Tags{{Name: "type", Value: "x"}}
	messages := func() *core.Batch {
		return &core.Batch{Messages: []core.Message{
			{Entity: " Host-1 \n ", Type: " Ops\n", Source: "PLC", Text: "  valve \n stuck \n", Tags: core.Tags{{Name: " Line ", Value: " A1 "}, {Name: "empty", Value: " "}, {Name: "type", Value: "x"}},
				Flags: core.ForRules},
			{Entity: "a", Text: " \n"},
			{Entity: "a", Tags: field},
			{Entity: "OFF", Text: "x"},
			{Entity: "a", Tags: core.Tags{{Name: "k", Value: "v"}}},
		}}
	}
	got := f.mustIngest(t, messages())
	diff(t, []core.Message{
		{Entity: "host-1", Type: "ops", Source: "plc", Text: "valve \n stuck", Tags: core.Tags{{Name: "line", Value: "A1"}}, Flags: core.ForRules},
		{Entity: "a", Tags: core.Tags{{Name: "k", Value: "v"}}},
	}, got.Messages)

	b := messages()
	b.Origin = core.Origin{Door: webhookDoor, Grants: core.SystemGrants}
	got = f.mustIngest(t, b)
	if len(got.Messages) != 3 || !got.Messages[1].Tags.Equal(field) {
		t.Errorf("webhook messages keep the tag type, got %+v", got.Messages)
	}

	got = f.mustIngest(t, &core.Batch{Messages: []core.Message{{Entity: "a"}}})
	if got != nil {
		t.Error("a message without text and tags was appended")
	}
}

func TestProperties(t *testing.T) {
	f := newFixture(Options{})
	f.catalog.entities["off"] = core.Entity{Name: "off"}
	key := func(entity, typ string, tags ...core.Tag) core.PropertyKey {
		return core.PropertyKey{Entity: entity, Type: typ, Key: tags}
	}
	got := f.mustIngest(t, &core.Batch{
		Properties: []core.Property{
			{PropertyKey: key("E", "Disk", core.Tag{Name: "Dev", Value: " a "}, core.Tag{Name: "none", Value: " "}), Tags: core.Tags{{Name: "Size", Value: "1"}, {Name: "fs", Value: "\n"}}},
			{PropertyKey: key("off", "disk"), Tags: core.Tags{{Name: "a", Value: "1"}}},
			{PropertyKey: key("E", "$entity_tags", core.Tag{Name: "Owner", Value: "x"}), Tags: core.Tags{{Name: "old"}, {Name: "Site", Value: "N"}}},
		},
		Removed: []core.PropertyKey{key("E", "Disk"), key("e", "$entity_tags")},
	})
	diff(t, []core.Property{{PropertyKey: key("e", "disk", core.Tag{Name: "dev", Value: "a"}), Tags: core.Tags{{Name: "fs"}, {Name: "size", Value: "1"}}}}, got.Properties)
	diff(t, []core.PropertyKey{key("e", "disk")}, got.Removed)
	diff(t, []core.DocChange{{Kind: core.DocEntity, Key: "e", Op: core.DocPatch, Body: []byte(`{"tags":{"old":null,"owner":"x","site":"N"}}`)}}, got.Documents)
}

// TestBlanksInPropertyTags: parsers keep the names that machines give their settings. No other name may hold a blank.
func TestBlanksInPropertyTags(t *testing.T) {
	f := newFixture(Options{})
	tags := func(names ...string) (out core.Tags) {
		for _, name := range names {
			out = append(out, core.Tag{Name: name, Value: "1"})
		}
		return out
	}
	property := func(typ string, key, values core.Tags) *core.Batch {
		return &core.Batch{Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "e", Type: typ, Key: key}, Tags: values}}}
	}
	got := f.mustIngest(t, property("configuration", nil, tags("Entitled Capacity", "CPU in  SYS", "z")))
	diff(t, tags("cpu in  sys", "entitled capacity", "z"), got.Properties[0].Tags)

	for _, name := range []string{"", " ", " a", "a ", "a\tb", "a\u00a0b", "a b\x01", "a b\xff"} {
		_, err := f.ingest(t, property("configuration", nil, tags(name)))
		wantError(t, err, core.Invalid, "IllegalArgumentException: Invalid tag name: '"+strings.ToValidUTF8(name, "\uFFFD")+"'")
	}
	series := &core.Batch{}
	series.Add(series.Ref(core.SeriesKey{Metric: "m", Entity: "e", Tags: tags("a b")}), 0, 1)
	for _, b := range []*core.Batch{
		property("configuration", tags("a b"), tags("v")), property(core.EntityTagsType, nil, tags("a b")), series,
		{Messages: []core.Message{{Entity: "e", Text: "x", Tags: tags("a b")}}},
	} {
		_, err := f.ingest(t, b)
		wantError(t, err, core.Invalid, "IllegalArgumentException: Invalid tag name: 'a b'")
	}
}

func TestDisabledEntityDropsSamples(t *testing.T) {
	f := newFixture(Options{})
	f.catalog.entities["e"] = core.Entity{Name: "e"}
	b := &core.Batch{}
	sample(b, "m", 0, 1)
	b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "other"}), 0, 2)
	got := f.mustIngest(t, b)
	diff(t, []core.SeriesKey{{Metric: "m", Entity: "other"}}, got.Keys)
	diff(t, []float64{2}, got.Samples.Values)
}

func TestDroppedBatchIsAcknowledged(t *testing.T) {
	f := newFixture(Options{})
	f.metric("m", func(m *core.Metric) { m.Enabled = false })
	b := &core.Batch{Origin: core.Origin{Grants: core.SystemGrants}}
	sample(b, "m", 0, 1)
	receipt, err := f.pipe.Ingest(t.Context(), b)
	if want := (core.Receipt{Durability: core.Volatile, Received: now}); err != nil || receipt != want {
		t.Errorf("got %+v, %v, want %+v", receipt, err, want)
	}
}

func TestAuthorise(t *testing.T) {
	message := func(entity string) *core.Batch {
		return &core.Batch{Messages: []core.Message{{Entity: entity, Text: "x"}}}
	}
	series := func(entity string) *core.Batch {
		b := &core.Batch{}
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: entity}), 0, 1)
		return b
	}
	document := func(kind core.DocKind) *core.Batch {
		return &core.Batch{Documents: []core.DocChange{{Kind: kind, Key: "k", Op: core.DocPatch, Body: []byte(`{}`)}}}
	}
	property := func(typ string) *core.Batch {
		return &core.Batch{Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "v1", Type: typ}, Tags: core.Tags{{Name: "a", Value: "1"}}}}}
	}
	writer := core.Grants{Roles: core.DataWrite, WriteGroups: []string{"other", "valves"}}
	all := core.Grants{Roles: core.DataWrite, WriteAll: true}
	for _, test := range []struct {
		name   string
		grants core.Grants
		batch  *core.Batch
		ok     bool
	}{
		{"member of a writable group", writer, message("V1"), true},
		{"series of a member", writer, series("v1"), true},
		{"property of a member", writer, property("t"), true},
		{"entity tags by property need no other role", writer, property(core.EntityTagsType), true},
		{"not a member", writer, message("p1"), false},
		{"one of two entities", writer, &core.Batch{Messages: []core.Message{{Entity: "v1", Text: "x"}, {Entity: "p1", Text: "x"}}}, false},
		{"unknown entity", writer, message("new"), false},
		{"unknown entity in a group by name", writer, message("ghost"), false},
		{"unknown entity with all entities", all, message("new"), true},
		{"no role", core.Grants{WriteAll: true}, message("v1"), false},
		{"wrong role", core.Grants{Roles: core.MetaWrite | core.DataRead, WriteAll: true}, message("v1"), false},
		{"reading permission does not count", core.Grants{Roles: core.DataWrite, ReadAll: true, ReadGroups: []string{"valves"}}, message("v1"), false},
		{"series delete", writer, &core.Batch{Series: []core.SeriesDelete{{Key: core.SeriesKey{Metric: "m", Entity: "p1"}}}}, false},
		{"series delete of a member", writer, &core.Batch{Series: []core.SeriesDelete{{Key: core.SeriesKey{Metric: "m", Entity: "v1"}}}}, true},
		{"property delete", writer, &core.Batch{Removed: []core.PropertyKey{{Entity: "p1", Type: "t"}}}, false},
		{"alert without role", core.Grants{WriteAll: true}, &core.Batch{Alerts: []core.AlertChange{{}}}, false},
		{"alert", writer, &core.Batch{Alerts: []core.AlertChange{{}}}, true},
		{"metric document", core.Grants{Roles: core.MetaWrite}, document(core.DocMetric), true},
		{"entity document", core.Grants{Roles: core.MetaWrite}, document(core.DocEntity), true},
		{"metric document by a data writer", all, document(core.DocMetric), false},
		{"group needs two roles", core.Grants{Roles: core.MetaWrite}, document(core.DocGroup), false},
		{"group", core.Grants{Roles: core.MetaWrite | core.EntityGroupAdmin}, document(core.DocGroup), true},
		{"rule", core.Grants{Roles: core.Editor.Expand()}, document(core.DocRule), true},
		{"user by an editor", core.Grants{Roles: core.Editor.Expand(), WriteAll: true}, document(core.DocUser), false},
		{"user by the administrator", core.Grants{Roles: core.Admin.Expand()}, document(core.DocUser), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(Options{})
			f.catalog.entities = map[string]core.Entity{"v1": core.NewEntity("v1", 0), "p1": core.NewEntity("p1", 0)}
			f.catalog.groups = map[string][]string{"v1": {"valves"}, "p1": {"pumps"}, "ghost": {"valves"}}
			test.batch.Origin = core.Origin{Door: core.DoorHTTP, Grants: test.grants}
			got, err := f.ingest(t, test.batch)
			if test.ok {
				if err != nil || got == nil {
					t.Errorf("got %v, want it appended", err)
				}
				return
			}
			wantError(t, err, core.Forbidden, "code 15")
			if got != nil {
				t.Error("the log got a batch")
			}
		})
	}
}

// TestDropDoesNotBypassRights sends a record that settings would drop from a caller who may not write it.
func TestDropDoesNotBypassRights(t *testing.T) {
	f := newFixture(Options{})
	f.catalog.entities["off"] = core.Entity{Name: "off"}
	b := &core.Batch{Origin: core.Origin{Grants: core.Grants{Roles: core.DataWrite}}, Messages: []core.Message{{Entity: "off", Text: "x"}}}
	_, err := f.pipe.Ingest(t.Context(), b)
	wantError(t, err, core.Forbidden, "code 15")
}

// slowPasser records what it is asked and answers only when the context ends.
type slowPasser struct{ asked []core.Position }

func (p *slowPasser) Passed(ctx context.Context, at core.Position, _ *core.Batch) error {
	p.asked = append(p.asked, at)
	<-ctx.Done()
	return ctx.Err()
}

func TestWaitsForRulesWithinBounds(t *testing.T) {
	for _, test := range []struct {
		door core.Door
		wait time.Duration
		want time.Duration
	}{
		{core.DoorHTTP, 0, 250 * time.Millisecond}, {core.DoorPlugin, time.Second, time.Second}, {core.DoorHTTP, -1, 0}, {core.DoorRule, 0, 0}, {core.DoorSystem, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(Options{RulesWait: test.wait})
			passer := &slowPasser{}
			f.pipe.Watch(passer)
			b := &core.Batch{Origin: core.Origin{Door: test.door, Grants: core.SystemGrants}}
			sample(b, "m", 0, 1)
			start := time.Now()
			receipt, err := f.pipe.Ingest(t.Context(), b)
			if took := time.Since(start); err != nil || receipt.Position != 1 || took != test.want {
				t.Errorf("door %s: took %v, want %v; %+v, %v", test.door, took, test.want, receipt, err)
			}
			if asked := len(passer.asked); (asked == 1) != (test.want > 0) {
				t.Errorf("door %s: the engine was asked %d times", test.door, asked)
			}
		})
	}
}

func TestLogErrorsComeBack(t *testing.T) {
	f := newFixture(Options{})
	passer := &slowPasser{}
	f.pipe.Watch(passer)
	f.log.err = core.Errorf(core.NoSpace, "disk full")
	b := &core.Batch{}
	sample(b, "m", 0, 1)
	_, err := f.ingest(t, b)
	wantError(t, err, core.NoSpace, "disk full")
	if len(passer.asked) != 0 {
		t.Error("waited for rules although nothing was stored")
	}
}

// TestScratchIsClean reuses a pipeline: nothing of one batch may reach the next.
func TestScratchIsClean(t *testing.T) {
	f := newFixture(Options{})
	f.metric("off", func(m *core.Metric) { m.Enabled = false })
	for range 3 {
		b := &core.Batch{}
		sample(b, "off", 0, 1)
		sample(b, "on", 0, 2)
		diff(t, []float64{2}, f.mustIngest(t, b).Samples.Values)
		f.metric("late", func(*core.Metric) {})
		b = &core.Batch{}
		sample(b, "on", 0, 3)
		diff(t, []float64{3}, f.mustIngest(t, b).Samples.Values)
	}
}

func TestAboutSamples(t *testing.T) {
	for text, want := range map[string]bool{
		"value > 1.5e3": true,
		"entity LIKE 'pump*' AND NOT message = ''":                 true,
		"tags.docker-host != '' or tags['any name'] = \"it\\\"s\"": true,
		"Math.abs(value) > 1 && lower(entity) = 'a'":               true,
		"timestamp IN (1, 2) /* name */ // other":                  true,
		"name = 'x'":       false,
		"value > limit":    false,
		"tags.name = name": false,
	} {
		if got := aboutSamples(text); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// FuzzNames checks that what normalisation lets through is stable and safe as part of a series key.
func FuzzNames(f *testing.F) {
	f.Add("Entity", "metric", "Tag", " value ")
	f.Add("İ", "m\u2028", "\xff", "\x00")
	f.Fuzz(func(t *testing.T, entity, metric, tag, value string) {
		k := core.SeriesKey{Metric: metric, Entity: entity, Tags: core.Tags{{Name: tag, Value: value}}}
		if _, err := normalKey(&k); err != nil {
			return
		}
		back, err := core.ParseSeriesKey(k.Append(nil))
		if err != nil || back.Compare(k) != 0 {
			t.Fatalf("%q reads back as %q: %v", k, back, err)
		}
		again := k.Clone()
		if _, err := normalKey(&again); err != nil || again.Compare(k) != 0 {
			t.Fatalf("normalised twice: %q, then %q (%v)", k, again, err)
		}
	})
}

// BenchmarkIngest takes a batch of a thousand samples of as many series: a hundred entities with ten metrics each.
func BenchmarkIngest(b *testing.B) {
	f := newFixture(Options{})
	for i := range 10 {
		f.metric("cpu.usage."+strconv.Itoa(i), func(*core.Metric) {})
	}
	for i := range 100 {
		name := "web-server-" + strconv.Itoa(i)
		f.catalog.entities[name] = core.NewEntity(name, 0)
	}
	batch := &core.Batch{Origin: core.Origin{Door: core.DoorHTTP, Grants: core.SystemGrants}}
	for i := range 1000 {
		key := core.SeriesKey{Metric: "cpu.usage." + strconv.Itoa(i%10), Entity: "web-server-" + strconv.Itoa(i/10),
			Tags: core.Tags{{Name: "dc", Value: "eu-central"}, {Name: "rack", Value: "r17"}}}
		batch.Add(batch.Ref(key), now, float64(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		f.log.batches = f.log.batches[:0]
		if _, err := f.pipe.Ingest(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIngestNames is the worst case of lookups: every sample has an entity and a metric of its own.
func BenchmarkIngestNames(b *testing.B) {
	f := newFixture(Options{})
	batch := &core.Batch{Origin: core.Origin{Door: core.DoorHTTP, Grants: core.SystemGrants}}
	for i := range 1000 {
		name := strconv.Itoa(i)
		f.metric("metric-"+name, func(*core.Metric) {})
		f.catalog.entities["entity-"+name] = core.NewEntity("entity-"+name, 0)
		batch.Add(batch.Ref(core.SeriesKey{Metric: "metric-" + name, Entity: "entity-" + name}), now, float64(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		f.log.batches = f.log.batches[:0]
		if _, err := f.pipe.Ingest(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}
