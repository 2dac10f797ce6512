package events

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

func write(t testing.TB, records []Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Add(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func openBytes(t testing.TB, b []byte) (*File, error) {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Open("/f", vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return Open(fs, "/f")
}

// sample is n messages, newest first, of n/100 entities and three types.
func sample(n int) []Record {
	list := make([]Record, n)
	for i := range list {
		list[i] = Record{Arrival: uint64(n - i), Received: core.Time(20_000_000 + i)}
		m := &list[i].Message
		m.Time, m.Entity, m.Type, m.Source = core.Time(10_000_000-i/3*1000), fmt.Sprintf("e-%d", i/100), []string{"a", "b", "log"}[i%3], "src"
		m.Severity, m.Text, m.Flags = core.Severity(i%8), fmt.Sprintf("line %d: something happened", i), core.Stored
		if i%4 == 0 {
			m.Tags = core.Tags{{Name: "code", Value: fmt.Sprint(i)}, {Name: "host", Value: "h"}}
		}
	}
	return list
}

func readAll(t *testing.T, f *File) (all []Record) {
	t.Helper()
	for i := range f.Blocks() {
		records, err := f.Read(i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, records...)
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 3, 5000} {
		want := sample(n)
		f, err := openBytes(t, write(t, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, append([]Record{}, readAll(t, f)...)); diff != "" {
			t.Errorf("%d messages: %s", n, diff)
		}
		if f.Messages() != uint64(n) || f.Generation() != 5 || f.Oldest() != 2 {
			t.Errorf("%d messages of %d to %d", f.Messages(), f.Oldest(), f.Generation())
		}
	}
}

// TestDirectoryNeverLies compares what blocks say with what is in them.
func TestDirectoryNeverLies(t *testing.T) {
	f, err := openBytes(t, write(t, sample(5000)))
	if err != nil {
		t.Fatal(err)
	}
	all := core.AllTime
	queries := map[string]struct {
		Query
		match func(*Record) bool
	}{
		"entity":   {Query{Range: all, Entities: []string{"e-7"}}, func(r *Record) bool { return r.Entity == "e-7" }},
		"type":     {Query{Range: all, Type: "log"}, func(r *Record) bool { return r.Type == "log" }},
		"severity": {Query{Range: all, MinSeverity: core.Fatal}, func(r *Record) bool { return r.Severity >= core.Fatal }},
		"listed":   {Query{Range: all, Severities: []core.Severity{2}}, func(r *Record) bool { return r.Severity == 2 }},
		"range":    {Query{Range: core.Range{Start: 9_500_000, End: 9_600_000}}, func(r *Record) bool { return r.Time >= 9_500_000 && r.Time < 9_600_000 }},
	}
	for name, q := range queries {
		passed := 0
		for i := range f.Blocks() {
			records, err := f.Read(i)
			if err != nil {
				t.Fatal(err)
			}
			if f.Blocks()[i].MayMatch(&q.Query) {
				continue
			}
			passed++
			if slices.ContainsFunc(records, func(r Record) bool { return q.match(&r) }) {
				t.Errorf("%s: block %d holds what it denies", name, i)
			}
		}
		if (name == "entity" || name == "range") && passed == 0 {
			t.Errorf("%s: no block is passed over", name)
		}
	}
	if q := (Query{Range: all, Entities: []string{"nobody"}}); slices.ContainsFunc(f.Blocks(), func(b Block) bool { return b.MayMatch(&q) }) {
		t.Error("an entity without messages costs a look")
	}
}

func TestMessagesOfOneTimeStayTogether(t *testing.T) {
	list := sample(3000)
	for i := range list {
		list[i].Time = 42
	}
	f, err := openBytes(t, write(t, list))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Blocks()) != 1 {
		t.Errorf("%d blocks", len(f.Blocks()))
	}
}

func TestFlippedBits(t *testing.T) {
	good := write(t, sample(3000))
	for at := 0; at < len(good); at += 97 {
		bad := slices.Clone(good)
		bad[at] ^= 0x10
		visit(t, bad)
	}
}

func visit(t *testing.T, b []byte) {
	f, err := openBytes(t, b)
	if err != nil {
		return
	}
	defer f.Close()
	for i := range f.Blocks() {
		if records, err := f.Read(i); err == nil && len(records) != f.Blocks()[i].Count {
			t.Errorf("block %d: %d messages, want %d", i, len(records), f.Blocks()[i].Count)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add(write(f, sample(5)))
	f.Fuzz(func(t *testing.T, b []byte) { visit(t, b) })
}

// FuzzBlock decodes what passes a checksum but makes no sense.
func FuzzBlock(f *testing.F) {
	f.Add([]byte{2, 0, 1, 1, 'a', 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n > 0 && n <= maxRecords {
			if records, err := decode(b, n); err == nil && len(records) != n {
				t.Errorf("%d records, want %d", len(records), n)
			}
		}
	})
}
