package storage

import (
	"bytes"
	"encoding/hex"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

func testPacker(t testing.TB) *packer {
	t.Helper()
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encoded(t testing.TB, b *core.Batch) []byte {
	t.Helper()
	var e encoder
	if err := e.encode(testPacker(t), b); err != nil {
		t.Fatal(err)
	}
	return e.payload
}

// everything is a batch with every kind of record and every field set. Its keys are in order, so that a round trip gives the same batch.
func everything() *core.Batch {
	tags := core.Tags{{Name: "k", Value: "v"}, {Name: "l", Value: ""}}
	b := &core.Batch{Origin: core.Origin{User: "ada", Address: "10.0.0.7", Door: core.DoorTCP, Depth: 3,
		Grants: core.Grants{Roles: core.DataRead | core.Authenticated, ReadAll: true, ReadGroups: []string{"g", "h"}, WriteGroups: []string{"w"}}}}
	b.Add(b.Ref(core.SeriesKey{Metric: "flow", Entity: "pump"}), 1_900_000_000_000, 0.1)
	b.AddText(b.Ref(core.SeriesKey{Metric: "flow", Entity: "pump", Tags: core.Tags{{Name: "site", Value: "north hall"}}}), 1_899_999_999_999, "")
	b.Add(0, -1, math.Inf(-1))
	b.Add(1, math.MaxInt64, -0.0)
	b.Samples.Flags[2] |= core.AppendText
	b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: 2, Text: "läuft;\n"})
	b.Samples.Decimals = []core.DecimalAt{{Index: 0, Decimal: core.Decimal{Significand: math.MinInt64, Exponent: math.MaxInt32}},
		{Index: 3, Decimal: core.Decimal{Significand: 1, Exponent: -9}}}
	b.Samples.Versions = []core.VersionAt{{Index: 3, Source: "gui", Status: "ok", Written: 77}}
	b.Messages = []core.Message{
		{Time: 5, Entity: "pump", Type: "ops", Source: "plc", Severity: core.Fatal, Text: "valve\nopen", Tags: tags, Flags: core.Default},
		{Time: 4, Entity: "x"},
	}
	b.Properties = []core.Property{{PropertyKey: core.PropertyKey{Entity: "pump", Type: "disk", Key: tags}, Time: 9, Tags: tags, Flags: core.Stored}}
	b.Series = []core.SeriesDelete{{Key: core.SeriesKey{Metric: "m", Entity: "e", Tags: tags}, Range: core.AllTime}}
	b.Removed = []core.PropertyKey{{Entity: "e", Type: "t", Key: tags}, {Entity: "e", Type: "t"}}
	alert := core.Alert{ID: math.MaxUint64, Rule: "hot", Window: "w", Metric: "flow", Entity: "pump", Tags: tags,
		Severity: core.Major, RepeatCount: 2, Value: 1.5, OpenValue: 1, TextValue: "tv", Message: "msg", OpenTime: 10, LastEvent: 11, Acknowledged: true, State: "nodata"}
	row := core.AlertRow{AlertID: 1, Time: 2, Received: 3, OpenTime: 4, Entity: "pump", Metric: "flow", Rule: "hot", Tags: tags,
		Type: core.StatusOpen, Value: 5, Text: "t", Severity: core.Minor, Condition: "value > 1", Filter: "f", Window: "length(3)", Schedule: "*", RepeatCount: 6}
	b.Alerts = []core.AlertChange{{Event: "e1", Kind: core.AlertClosed, Alert: alert, Row: &row}, {Event: "e2", Kind: core.AlertDeleted}}
	b.Documents = []core.DocChange{{Kind: core.DocRule, Key: "r", Op: core.DocPut, Body: []byte(`{"a":1}`)},
		{Kind: core.DocUser, Key: "ada", Op: core.DocPatch, Body: []byte(`{}`)}, {Kind: core.DocTable, Key: "t", Op: core.DocDelete}}
	return b
}

var sameBatch = cmp.Options{cmpopts.IgnoreUnexported(core.Batch{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

func TestRoundTrip(t *testing.T) {
	p := testPacker(t)
	plain := everything()
	long := everything()
	for i := range 500 {
		long.Messages = append(long.Messages, core.Message{Time: core.Time(i), Entity: "pump", Text: "again and again"})
	}
	keyless := &core.Batch{Documents: []core.DocChange{{Kind: core.DocRule, Key: "r"}}}
	for _, b := range []*core.Batch{plain, long, keyless, {}} {
		payload := encoded(t, b)
		got, err := p.decodeRecord(payload)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b, got, sameBatch); d != "" {
			t.Errorf("round trip (-in +out):\n%s", d)
		}
	}
	if payload := encoded(t, long); payload[1]&recordPacked == 0 || len(payload) > 2000 {
		t.Errorf("500 equal messages take %d bytes, flags %d: not packed", len(payload), payload[1])
	}
}

// Keys come back sorted, unused ones are left out, and each sample keeps its key.
func TestKeyTable(t *testing.T) {
	b := &core.Batch{}
	for _, entity := range []string{"c", "unused", "a", "b", "server-10", "server-1"} {
		ref := b.Ref(core.SeriesKey{Metric: "m", Entity: entity})
		if entity != "unused" {
			b.Add(ref, 1, float64(len(entity)))
		}
	}
	got, err := testPacker(t).decodeRecord(encoded(t, b))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range got.Keys {
		keys = append(keys, k.Entity)
	}
	if d := cmp.Diff([]string{"a", "b", "c", "server-1", "server-10"}, keys); d != "" {
		t.Error(d)
	}
	for i, ref := range got.Samples.Series {
		if want := b.Keys[b.Samples.Series[i]]; got.Keys[ref].Compare(want) != 0 {
			t.Errorf("sample %d is of %v, want %v", i, got.Keys[ref], want)
		}
	}
}

// TestBytes is a record by hand, from FORMAT.md.
func TestBytes(t *testing.T) {
	b := &core.Batch{Origin: core.Origin{User: "u", Door: core.DoorUDP}}
	b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "b"}), 1000, 2)
	b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "a"}), 1001, 2)
	want := strings.Join([]string{
		"01 00",                                                 // version, flags
		"01",                                                    // parts: samples
		"01 75", "00", "03 75 64 70", "00", "00", "00", "00 00", // user, address, door, depth, roles, rights, groups
		"02", "00 04 6d 00 61 00", "02 02 62 00", // keys: m 00 a 00, then 2 shared bytes and b 00
		"02",       // samples
		"02 01",    // series: 1, then -1
		"d0 0f 02", // times: 1000 zigzag, +1
		"07 02",    // flags: 7 twice
		"01 40 00", // values: XOR; 2.0 = 0x4000000000000000 reversed is 0x40; equal is 0
		"00 00 00", // no texts, decimals, versions
	}, " ")
	if got := hex.EncodeToString(encoded(t, b)); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("record\n got  %s\n want %s", got, strings.ReplaceAll(want, " ", ""))
	}
}

// TestFirstRelease decodes a record that the first release wrote. Its file is never written again: a change that needs another one breaks the
// databases in the field.
func TestFirstRelease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "record1.hex"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := testPacker(t).decodeRecord(payload)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(everything(), got, sameBatch); d != "" {
		t.Errorf("record of the first release (-want +got):\n%s", d)
	}
}

func TestTooLarge(t *testing.T) {
	b := &core.Batch{}
	for i := range 3 {
		b.Add(b.Ref(core.SeriesKey{Metric: strings.Repeat("m", maxKeyBytes/2), Entity: string(rune('a' + i))}), 1, 1)
	}
	var e encoder
	if err := e.encode(testPacker(t), b); core.CodeOf(err) != core.TooLarge {
		t.Errorf("encode: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	p := testPacker(t)
	good := encoded(t, everything())
	for name, bad := range map[string][]byte{
		"nothing":        {},
		"later version":  append([]byte{recordVersion + 1}, good[1:]...),
		"unknown flag":   append([]byte{recordVersion, 0x80}, good[2:]...),
		"unknown part":   {recordVersion, 0, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0, 0},
		"a byte more":    append(encoded(t, &core.Batch{}), 0),
		"bomb":           append([]byte{recordVersion, recordPacked}, 0xff, 0xff, 0xff, 0x7f, 0, 0),
		"many keys":      {recordVersion, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f},
		"number too big": {recordVersion, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		if b, err := p.decodeRecord(bad); err == nil || core.CodeOf(err) != core.Internal {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
	// A record that is cut anywhere is refused, packed or not.
	for i := range good {
		if _, err := p.decodeRecord(good[:i]); err == nil {
			t.Errorf("the first %d of %d bytes are a record", i, len(good))
		}
	}
}

// Keys that share nearly everything must not make a reader allocate without bound.
func TestKeyBomb(t *testing.T) {
	var e encoder
	e.body = []byte{partSamples, 0, 0, 0, 0, 0, 0, 0, 0}
	const long, n = 1 << 20, 100_000
	e.count(n)
	e.count(0)
	e.text(strings.Repeat("m", long) + "\x00e\x00")
	for range n - 1 {
		e.count(long + 3)
		e.text("")
	}
	if _, err := testPacker(t).decodeRecord(append([]byte{recordVersion, 0}, e.body...)); err == nil {
		t.Error("a hundred gigabytes of keys were decoded")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(encoded(f, everything()))
	f.Add(encoded(f, &core.Batch{}))
	g := storetest.NewGenerator(1)
	for range 20 {
		f.Add(encoded(f, g.Next()))
	}
	p := testPacker(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := p.decodeRecord(payload)
		if err != nil {
			return
		}
		if err := checkShape(b); err != nil {
			t.Fatalf("decoded a batch that is not well formed: %v", err)
		}
		// What was decoded can be written; from then on the bytes do not change any more.
		var first, second encoder
		if err := first.encode(p, b); err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		again, err := p.decodeRecord(first.payload)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if err := second.encode(p, again); err != nil || !bytes.Equal(first.payload, second.payload) {
			t.Errorf("bytes change, %v:\n %x\n %x", err, first.payload, second.payload)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("m\x00e\x00a\x01b\x00")
	f.Add("m\x00e\x00a\x01b\x01\x00")
	f.Fuzz(func(t *testing.T, s string) {
		k, ok := parseKey(s)
		want, err := core.ParseSeriesKey([]byte(s))
		if ok != (err == nil) || ok && k.Compare(want) != 0 {
			t.Errorf("%q: %v, %v, want %v, %v", s, k, ok, want, err)
		}
	})
}

// TestGoldenDump writes a small database and compares its bytes, as text, with testdata.
func TestGoldenDump(t *testing.T) {
	mem := vfs.NewMem()
	db, _, err := Open(mem, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*core.Batch{everything(), sample(1, core.ForRules), sample(2, core.Default|core.HasValue)} {
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	path := filepath.Join("/data", journalDir, segmentName(t, mem))
	if err := Dump(mem, path, &out, Outline); err != nil {
		t.Fatal(err)
	}
	// The salt of a segment is random, and with it the first line.
	_, text, _ := strings.Cut(out.String(), "\n")
	golden := filepath.Join("testdata", "dump.golden")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), text); d != "" {
		t.Errorf("dump (-want +got):\n%s", d)
	}
	if strings.Contains(text, `{}`+"\n  document table") {
		t.Error("the body of a user is in the dump")
	}
	var found bytes.Buffer
	if err := Check(t.Context(), mem, "/data", Checking{Out: &found}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(found.String(), "3 frames in 1 segments, positions 1 to 4") {
		t.Errorf("check says %q", found.String())
	}
}

func segmentName(t *testing.T, fs vfs.FS) string {
	t.Helper()
	files, err := fs.List(filepath.Join("/data", journalDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".seg") {
			return f.Name
		}
	}
	t.Fatal("no segment")
	return ""
}

// A sound frame that cannot be decoded is counted, named and passed over; what is behind it is there.
func TestUnreadableFrames(t *testing.T) {
	mem := vfs.NewMem()
	j, _, err := journal.Open(mem, filepath.Join("/data", journalDir), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []journal.Frame{{Kind: frameBatch, Payload: []byte("\x01\x00nonsense")}, {Kind: frameBatch, Payload: []byte{recordVersion}},
		{Kind: frameBatch, Payload: encoded(t, sample(5, core.Default|core.HasValue))}} {
		f.Position, f.Received = journal.Position(i+1), int64(1000*(i+1))
		if _, err := j.Append(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var found bytes.Buffer
	if err := Check(t.Context(), mem, "/data", Checking{Out: &found}); err == nil || strings.Count(found.String(), "damaged:") != 2 {
		t.Errorf("check: %v, %q", err, found.String())
	}
	db, report, err := Open(mem, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if !report.Damaged() || report.Skipped != 2 || report.Samples != 1 || report.Series != 1 || !strings.Contains(report.String(), "position 2") {
		t.Errorf("report %v", report)
	}
	if !has(t, db, 5) || db.End() != 3 {
		t.Errorf("what follows is gone; end %d", db.End())
	}
	if lines := storetest.TailLines(t.Context(), db, 0); len(lines) != 1 {
		t.Errorf("tail: %q", lines)
	}
}
