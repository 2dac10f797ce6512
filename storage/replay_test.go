package storage

import (
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// contents prints everything that samples leave: series in order, their samples, and which metrics and entities there are.
func contents(t *testing.T, db *DB) string {
	t.Helper()
	text := ""
	for b, err := range db.Series(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintln(b.Key, b.Times, b.Values, b.Texts)
	}
	for _, kind := range []core.DocKind{core.DocMetric, core.DocEntity} {
		for d, err := range db.Documents(t.Context(), core.DocumentQuery{Kind: kind}) {
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintln(kind, d.Key)
		}
	}
	return text
}

// TestReplayOfEqualKeys writes to the same keys again and again, while series go away and come back under them. What a replay remembers of the keys of one
// batch must not be used for the next one when its series are others.
func TestReplayOfEqualKeys(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	step := core.Time(0)
	write := func(metrics ...string) {
		step++
		b := &core.Batch{}
		for i, m := range metrics {
			for _, entity := range []string{"a", "b"} {
				b.Add(b.Ref(core.SeriesKey{Metric: m, Entity: entity}), storetest.Epoch+step, float64(step)*10+float64(i))
			}
		}
		b.AddText(0, storetest.Epoch+100+step, fmt.Sprint("text ", step))
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	change := func(kind core.DocKind, key string, op core.DocOp, body string) {
		b := &core.Batch{Documents: []core.DocChange{{Kind: kind, Key: key, Op: op, Body: []byte(body)}}}
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	write("m", "n")
	write("m", "n")
	change(core.DocMetric, "m", core.DocDelete, "")
	write("m", "n")
	write("m", "o")
	change(core.DocEntity, "a", core.DocRename, `{"name":"c"}`)
	write("m", "n")
	write("m", "o")
	remove := &core.Batch{Series: []core.SeriesDelete{{Key: core.SeriesKey{Metric: "m", Entity: "b"}, Range: core.AllTime}}}
	if _, err := db.Append(t.Context(), remove); err != nil {
		t.Fatal(err)
	}
	write("m", "n")
	change(core.DocEntity, "b", core.DocDelete, "")
	write("m", "n")
	change(core.DocMetric, "n", core.DocRename, `{"name":"p"}`)
	write("m", "n")
	write("m", "n")
	want := contents(t, db)
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, open(t, fs, small())); got != want {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", got, want)
	}
}

// TestReplayOfTablesThatBeginAlike has key tables whose first 64 bytes are equal.
func TestReplayOfTablesThatBeginAlike(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	long := fmt.Sprintf("%080d", 7)
	for i := range 200 {
		b := &core.Batch{}
		for n := range 2 + i%3 {
			b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprint(long, n*(i%5))}), storetest.Epoch+core.Time(i), float64(n))
		}
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	want := contents(t, db)
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, open(t, fs, small())); got != want {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", got, want)
	}
}
