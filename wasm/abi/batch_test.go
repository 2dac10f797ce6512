package abi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// one returns the smallest batch with a sample: cpu of web-1 is 1.5 at 1000 ms.
func one() []byte {
	var e Encoder
	e.Reset()
	e.AddLines(2)
	e.AddRecords(1)
	e.Sample(e.Series("cpu", "web-1"), 1000, 1.5)
	return bytes.Clone(e.Finish())
}

// The bytes are written by hand from the drawing in ABI.md.
func TestEncoderWritesTheDrawnBytes(t *testing.T) {
	want := strings.Join([]string{
		"01 00 5000", "02000000", "01000000", "00000000", // version, flags, header size 80, lines, records, rejected
		"02000000 0a000000", "01000000 03000000", "01000000 14000000", // strings, series, samples
		"00000000 00000000", "00000000 00000000", "00000000 00000000", "00000000 00000000", "00000000 00000000",
		"03 637075", "05 7765622d31", // "cpu", "web-1"
		"00 01 00",                                         // metric 0, entity 1, no tags
		"00000000", "e803000000000000", "000000000000f83f", // series 0, 1000 ms, 1.5
	}, "")
	if got := hex.EncodeToString(one()); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("batch\n got %s\nwant %s", got, strings.ReplaceAll(want, " ", ""))
	}
}

// everything fills e with one record of each form.
func everything(e *Encoder) {
	e.Reset()
	e.AddLines(9)
	e.AddRecords(8)
	s := e.Series("temp", "pump", Pair{"site", "north"}, Pair{"unit", "C"})
	e.Sample(s, MinTime, -0.25)
	e.SampleText(s, MaxTime, 7, "seven")
	e.Text(s, 5, "only text", AppendText)
	e.SampleDecimal(e.SeriesBytes([]byte("flow"), []byte("pump")), 6, 0.1, "0.10000000000000000001")
	e.Message(&Message{Entity: "pump", Type: "syslog", Source: "k", Severity: 7, Persist: true, Time: 7, Text: "zażółć", Tags: []Pair{{"a", "b"}}})
	e.Property(&Property{Entity: "pump", Type: "disk", Persist: true, Time: 8, Keys: []Pair{{"id", "/"}}, Tags: []Pair{{"fs", "ext4"}}})
	e.Entity(&Record{Name: "pump", Fields: []Pair{{"label", "Pump"}}, Tags: []Pair{{"site", "n"}}})
	e.Metric(&Record{Name: "temp", Fields: []Pair{{"units", "C"}}})
	e.Reject(3, 2, "no number", "x\xffy")
	e.Stop()
}

func TestBatchKeepsEveryRecord(t *testing.T) {
	var e Encoder
	everything(&e)
	var b Batch
	if err := b.Decode(string(e.Finish()), Limits{}); err != nil {
		t.Fatal(err)
	}
	want := Batch{
		Lines: 9, Records: 8, Rejected: 1, Stopped: true,
		Series: []Series{{"temp", "pump", []Pair{{"site", "north"}, {"unit", "C"}}}, {"flow", "pump", nil}},
		Samples: []Sample{
			{0, 0, 0, -0.25}, {0, HasText, 4294969199999, 7}, {0, HasText | TextOnly | AppendText, 5, math.NaN()}, {1, HasDecimal, 6, 0.1},
		},
		Texts:      []SampleText{{1, "seven"}, {2, "only text"}},
		Decimals:   []SampleText{{3, "0.10000000000000000001"}},
		Messages:   []Message{{"pump", "syslog", "k", 7, true, 7, "zażółć", []Pair{{"a", "b"}}}},
		Properties: []Property{{"pump", "disk", true, 8, []Pair{{"id", "/"}}, []Pair{{"fs", "ext4"}}}},
		Entities:   []Record{{"pump", []Pair{{"label", "Pump"}}, []Pair{{"site", "n"}}}},
		Metrics:    []Record{{"temp", []Pair{{"units", "C"}}, nil}},
		Rejects:    []Reject{{3, 2, "no number", "x\uFFFDy"}},
	}
	if diff := cmp.Diff(want, b, cmpopts.IgnoreUnexported(Batch{}), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// A second batch of the same Encoder must not refer to tables that only the first one had.
func TestEncoderForgetsTablesBetweenBatches(t *testing.T) {
	var e Encoder
	var b Batch
	for i, entity := range []string{"one", "two", "one"} {
		e.Reset()
		if i == 2 {
			e.Sample(e.SeriesBytes([]byte("m"), []byte("new")), 1, 1)
		}
		e.Sample(e.SeriesBytes([]byte("m"), []byte(entity)), 1, 1)
		if err := b.Decode(string(e.Finish()), Limits{}); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		last := b.Samples[len(b.Samples)-1]
		if got := b.Series[last.Series]; got.Metric != "m" || got.Entity != entity {
			t.Errorf("batch %d: the sample is of %v, want m of %s", i, got, entity)
		}
	}
}

// However a series is named, its samples come back under its names: the short-cuts of SeriesBytes must not mix series up.
func TestSeriesAreNotMixedUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	name := func() string {
		return strings.Repeat("x", r.IntN(3)) + string(rune('a'+r.IntN(26))) + strings.Repeat("-long-tail", r.IntN(2))
	}
	var e Encoder
	var b Batch
	for range 5 {
		e.Reset()
		var want [][2]string
		for i := range 5000 {
			metric, entity := name(), name()
			if i%100 == 0 {
				metric, entity = "", ""
			}
			want = append(want, [2]string{metric, entity})
			if r.IntN(2) == 0 {
				e.Sample(e.Series(metric, entity), 1, 1)
			} else {
				e.Sample(e.SeriesBytes([]byte(metric), []byte(entity)), 1, 1)
			}
		}
		if err := b.Decode(string(e.Finish()), Limits{}); err != nil {
			t.Fatal(err)
		}
		for i, s := range b.Samples {
			if got := b.Series[s.Series]; got.Metric != want[i][0] || got.Entity != want[i][1] {
				t.Fatalf("sample %d is of %q, want %q", i, got, want[i])
			}
		}
	}
}

func TestEncoderDoesNotAllocateForWhatItKnows(t *testing.T) {
	var e Encoder
	metric, entity := []byte("metric"), []byte("entity")
	run := func() {
		e.Reset()
		for i := range int64(100) {
			e.Sample(e.SeriesBytes(metric, entity), i, 1)
		}
		e.Finish()
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("%v allocations a batch, want 0", n)
	}
}

func TestEncoderCountsRejectsBeyondThoseItLists(t *testing.T) {
	var e Encoder
	e.Reset()
	for i := range 1500 {
		e.Reject(i+1, 0, "bad", strings.Repeat("x", 999))
	}
	var b Batch
	if err := b.Decode(string(e.Finish()), Limits{}); err != nil {
		t.Fatal(err)
	}
	if b.Rejected != 1500 || len(b.Rejects) != 1000 || len(b.Rejects[0].Text) != 256 {
		t.Errorf("rejected %d, listed %d, text of %d bytes; want 1500, 1000, 256", b.Rejected, len(b.Rejects), len(b.Rejects[0].Text))
	}
}

func TestDecodeRefuses(t *testing.T) {
	patch := func(at int, with ...byte) []byte {
		b := one()
		copy(b[at:], with)
		return b
	}
	encode := func(fill func(*Encoder)) []byte {
		var e Encoder
		e.Reset()
		fill(&e)
		return e.Finish()
	}
	const strings, samples = 80, 80 + 10 + 3
	for name, c := range map[string]struct {
		batch  []byte
		limits Limits
	}{
		"another version":         {batch: patch(0, 2)},
		"flags":                   {batch: patch(1, 2)},
		"header size too small":   {batch: patch(2, 79)},
		"header size beyond end":  {batch: patch(2, 255, 255)},
		"cut in the header":       {batch: one()[:79]},
		"cut in a section":        {batch: one()[:len(one())-1]},
		"bytes after the end":     {batch: append(one(), 0)},
		"count without bytes":     {batch: patch(16, 255, 255, 255, 255)},
		"section larger than all": {batch: patch(20, 255, 255, 255, 255)},
		"count below the bytes":   {batch: patch(16, 1)},
		"text not UTF-8":          {batch: patch(strings+1, 0xff)},
		"text longer than all":    {batch: patch(strings, 0x7f)},
		"reference out of table":  {batch: patch(strings+10, 2)},
		"series out of table":     {batch: patch(samples, 1)},
		"unknown sample flag":     {batch: patch(samples+3, 0x10)},
		"append without text":     {batch: patch(samples+3, byte(AppendText))},
		"time after the end":      {batch: encode(func(e *Encoder) { e.Sample(e.Series("m", "e"), MaxTime+1, 0) })},
		"time before the start":   {batch: encode(func(e *Encoder) { e.Sample(e.Series("m", "e"), MinTime-1, 0) })},
		"severity 8":              {batch: encode(func(e *Encoder) { e.Message(&Message{Severity: 8}) })},
		"message time":            {batch: encode(func(e *Encoder) { e.Message(&Message{Time: -1}) })},
		"decimal is no number":    {batch: encode(func(e *Encoder) { e.SampleDecimal(e.Series("m", "e"), 0, 0, "1e") })},
		"too many bytes":          {batch: one(), limits: Limits{Bytes: 100, Items: 9, Strings: 9, Text: 9}},
		"too many records":        {batch: one(), limits: Limits{Bytes: 999, Items: 1, Strings: 9, Text: 9}},
		"too many names":          {batch: one(), limits: Limits{Bytes: 999, Items: 9, Strings: 1, Text: 9}},
		"text too long":           {batch: one(), limits: Limits{Bytes: 999, Items: 9, Strings: 9, Text: 4}},
		"too many tags": {batch: encode(func(e *Encoder) { e.Series("m", "e", Pair{"a", "b"}, Pair{"c", "d"}) }),
			limits: Limits{Bytes: 999, Items: 9, Strings: 9, Text: 9, Pairs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var b Batch
			if err := b.Decode(string(c.batch), c.limits); !errors.Is(err, ErrFormat) {
				t.Errorf("error %v, want ErrFormat", err)
			}
		})
	}
	var b Batch
	if err := b.Decode(string(one()), Limits{}); err != nil {
		t.Errorf("the batch that the cases break is itself refused: %v", err)
	}
}

func TestDecodeTakesAnEmptyResult(t *testing.T) {
	b := Batch{Lines: 3, Samples: []Sample{{}}}
	if err := b.Decode("", Limits{}); err != nil || b.Lines != 0 || len(b.Samples) != 0 {
		t.Errorf("got %v, %+v; want an empty batch", err, b)
	}
}

func TestDecimalText(t *testing.T) {
	for _, s := range []string{"0", "-1", "+1.5", ".5", "5.", "1e9", "1.25E-7", strings.Repeat("9", 64)} {
		if !isDecimal(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", ".", "-", "e5", "1e", "1e+", "NaN", "Inf", "0x10", "1_0", " 1", "1.2.3", strings.Repeat("9", 65)} {
		if isDecimal(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

// A batch of random records, decoded, encoded anew and decoded again, has lost nothing.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var e, again Encoder
		fillRandom(&e, r)
		first := bytes.Clone(e.Finish())
		var b Batch
		if err := b.Decode(string(first), Limits{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text := string(b.Encode(&again))
		var c Batch
		if err := c.Decode(text, Limits{}); err != nil {
			t.Fatalf("seed %d, second time: %v", seed, err)
		}
		if diff := cmp.Diff(b, c, cmpopts.IgnoreUnexported(Batch{}), cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func fillRandom(e *Encoder, r *rand.Rand) {
	name := func() string { return fmt.Sprintf("n%d", r.IntN(20)) }
	pairs := func() []Pair {
		var ps []Pair
		for range r.IntN(4) {
			ps = append(ps, Pair{name(), name()})
		}
		return ps
	}
	at := func() int64 { return r.Int64N(MaxTime + 1) }
	e.Reset()
	for range r.IntN(60) {
		switch r.IntN(9) {
		case 0:
			e.Message(&Message{name(), name(), name(), uint8(r.IntN(8)), r.IntN(2) == 0, at(), name(), pairs()})
		case 1:
			e.Property(&Property{name(), name(), r.IntN(2) == 0, at(), pairs(), pairs()})
		case 2:
			e.Entity(&Record{name(), pairs(), pairs()})
		case 3:
			e.Metric(&Record{name(), pairs(), pairs()})
		case 4:
			e.Reject(r.IntN(99), r.IntN(99), name(), name())
		case 5:
			e.SampleText(e.Series(name(), name(), pairs()...), at(), r.Float64(), name())
		case 6:
			e.SampleDecimal(e.Series(name(), name()), at(), r.Float64(), "-12.50")
		case 7:
			e.Text(e.Series(name(), name()), at(), name(), 0)
		case 8:
			e.Sample(e.SeriesBytes([]byte(name()), []byte(name())), at(), r.NormFloat64())
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(one())
	var e Encoder
	everything(&e)
	f.Add(bytes.Clone(e.Finish()))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b, c Batch
		if err := b.Decode(string(data), Limits{}); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v does not wrap ErrFormat", err)
			}
			return
		}
		// What was accepted can be written, and read back as the same records.
		if err := c.Decode(string(b.Encode(&Encoder{})), Limits{}); err != nil {
			t.Fatal(err)
		}
		if len(b.Samples) != len(c.Samples) || len(b.Messages) != len(c.Messages) || len(b.Properties) != len(c.Properties) {
			t.Fatalf("read %d samples, %d messages, %d properties; again %d, %d, %d", len(b.Samples), len(b.Messages), len(b.Properties),
				len(c.Samples), len(c.Messages), len(c.Properties))
		}
	})
}
