package storage

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/samples"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// fleet is a database of series with few samples each.
type fleet struct {
	*DB
	t *testing.T
}

func openFleet(t *testing.T) fleet {
	db, _, err := Open(vfs.NewMem(), "/data", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return fleet{db, t}
}

func (f fleet) key(host int) core.SeriesKey {
	return core.SeriesKey{Metric: "m", Entity: fmt.Sprintf("host-%04d", host), Tags: core.Tags{{Name: "rack", Value: fmt.Sprint(host % 7)}}}
}

// put stores one sample for each of the hosts, the number of the host, and flushes.
func (f fleet) put(at core.Time, from, to int) {
	f.t.Helper()
	b := &core.Batch{}
	for host := from; host < to; host++ {
		b.Add(b.Ref(f.key(host)), at, float64(host))
	}
	f.append(b)
	if err := f.Flush(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f fleet) append(b *core.Batch) {
	f.t.Helper()
	if _, err := f.Append(f.t.Context(), b); err != nil {
		f.t.Fatal(err)
	}
}

func (f fleet) compact() *samples.File {
	f.t.Helper()
	if err := f.Compact(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	files := f.views.current.Load().files
	if len(files) != 1 {
		f.t.Fatalf("%d files", len(files))
	}
	return files[0].file
}

// times returns the times of the samples of a host, all of which have the number of the host.
func (f fleet) times(host int) (times []core.Time) {
	f.t.Helper()
	key := f.key(host)
	sc, done := f.look()
	defer done()
	id := f.index.Lookup(key.Append(nil))
	w := window{Range: core.AllTime}
	if err := sc.open(id, w); err != nil {
		f.t.Fatal(err)
	}
	for {
		b, ok, err := sc.next(w)
		if err != nil {
			f.t.Fatal(err)
		}
		if !ok {
			return times
		}
		for i, v := range b.Values {
			if v != float64(host) {
				f.t.Errorf("host %d has %v at %d", host, v, b.Times[i])
			}
		}
		times = append(times, b.Times...)
	}
}

// A merge brings together what series have in several files, moves what they have in one, and leaves out series that ended, before or after a merge that
// found all of them alive.
func TestMergeOfSmallSeries(t *testing.T) {
	f := openFleet(t)
	f.put(10, 0, 300)
	f.put(20, 200, 500)
	f.put(5, 450, 600) // before what two files hold
	merged := f.compact()
	if merged.Series() != 600 || merged.Rows() != 750 {
		t.Errorf("%d series, %d rows", merged.Series(), merged.Rows())
	}
	if !merged.Facts.Numbers || merged.Facts.Removals != f.ended.Load() {
		t.Errorf("of numbers alone, with every series alive, is known %+v", merged.Facts)
	}
	for host, want := range map[int]string{0: "[10]", 199: "[10]", 200: "[10 20]", 299: "[10 20]", 300: "[20]", 449: "[20]", 450: "[5 20]", 500: "[5]", 599: "[5]"} {
		if got := fmt.Sprint(f.times(host)); got != want {
			t.Errorf("host %d has samples at %s, want %s", host, got, want)
		}
	}
	f.append(&core.Batch{Series: []core.SeriesDelete{{Key: f.key(0), Range: core.AllTime}, {Key: f.key(250), Range: core.Range{Start: 10, End: 11}}}})
	f.put(30, 599, 601)
	merged = f.compact()
	if merged.Series() != 600 || merged.Rows() != 750 { // one ended, one row went; one came, two rows came
		t.Errorf("after a deletion: %d series, %d rows", merged.Series(), merged.Rows())
	}
	for host, want := range map[int]string{0: "[]", 1: "[10]", 250: "[20]", 599: "[5 30]", 600: "[30]"} {
		if got := fmt.Sprint(f.times(host)); got != want {
			t.Errorf("after a deletion: host %d has samples at %s, want %s", host, got, want)
		}
	}
}

// A number keeps the text that is stored at its time, also when the text came into a database of numbers alone.
func TestTextAmongNumbers(t *testing.T) {
	f := openFleet(t)
	f.put(10, 0, 3)
	if !f.views.current.Load().files[0].file.Facts.Numbers {
		t.Fatal("a file of numbers alone is not known as one")
	}
	b := &core.Batch{}
	b.AddText(b.Ref(f.key(1)), 10, "note")
	f.append(b)
	f.put(10, 1, 3) // while it is in memory
	f.put(10, 1, 3) // and in a file
	for _, file := range f.views.current.Load().files[:2] {
		if file.file.Facts.Numbers {
			t.Error("a file with a text is known for numbers alone")
		}
	}
	sc, done := f.look()
	defer done()
	key := f.key(1)
	w := window{Range: core.AllTime}
	if err := sc.open(f.index.Lookup(key.Append(nil)), w); err != nil {
		t.Fatal(err)
	}
	got, ok, err := sc.next(w)
	if err != nil || !ok || len(got.Texts) != 1 || got.Texts[0].Text != "note" || got.Values[0] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A series that is renamed takes its memory along: what comes under its old name is another series, and neither writes into the other.
func TestRenameOfSmallSeries(t *testing.T) {
	f := openFleet(t)
	write := func(entity string, at core.Time, v float64) {
		b := &core.Batch{}
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: entity}), at, v)
		f.append(b)
	}
	write("a", 1, 1)
	f.append(&core.Batch{Documents: []core.DocChange{{Kind: core.DocEntity, Key: "a", Op: core.DocRename, Body: []byte(`{"name":"b"}`)}}})
	write("a", 1, 2)
	write("b", 2, 3)
	write("a", 2, 4)
	for entity, want := range map[string]string{"a": "[1 2] [2 4]", "b": "[1 2] [1 3]"} {
		key := core.SeriesKey{Metric: "m", Entity: entity}
		var b core.Block
		f.active.get(f.index.Lookup(key.Append(nil))).copyTo(&b, window{Range: core.AllTime, most: 10})
		if got := fmt.Sprint(b.Times, " ", b.Values); got != want {
			t.Errorf("%s holds %s, want %s", entity, got, want)
		}
	}
}
