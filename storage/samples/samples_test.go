package samples

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// run is what one call of Add writes.
type run struct {
	id ID
	core.Block
}

func write(t testing.TB, runs ...run) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, 3, 7)
	for i := range runs {
		if err := w.Add(runs[i].id, &runs[i].Block); err != nil {
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

func mustOpen(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := openBytes(t, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// numbers is n samples a second apart from start on.
func numbers(id ID, start core.Time, n int) run {
	r := run{id: id}
	for i := range n {
		r.Times, r.Values = append(r.Times, start+core.Time(i)*1000), append(r.Values, float64(i%97)/4)
	}
	return r
}

func equalBlocks(a, b *core.Block) bool {
	return slices.Equal(a.Times, b.Times) && slices.EqualFunc(a.Values, b.Values, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }) &&
		slices.Equal(a.Texts, b.Texts) && slices.Equal(a.Decimals, b.Decimals) && slices.Equal(a.Versions, b.Versions)
}

// read returns all rows of a series in r, put together from its blocks.
func read(t testing.TB, f *File, id ID, r core.Range) (all core.Block, entries []Entry) {
	t.Helper()
	var c Cursor
	entries, err := f.Find(&c, id, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var d chunk.Decoder
	var b core.Block
	for i := range entries {
		if err := f.Read(&entries[i], &d, &b); err != nil {
			t.Fatal(err)
		}
		base := uint32(len(all.Times))
		all.Times, all.Values = append(all.Times, b.Times...), append(all.Values, b.Values...)
		for _, e := range b.Texts {
			e.Index += base
			all.Texts = append(all.Texts, e)
		}
		for _, e := range b.Decimals {
			e.Index += base
			all.Decimals = append(all.Decimals, e)
		}
		for _, e := range b.Versions {
			e.Index += base
			all.Versions = append(all.Versions, e)
		}
	}
	return all, entries
}

func TestManySeriesManyBlocks(t *testing.T) {
	var runs []run
	for id := ID(1); id <= 700; id += 3 {
		runs = append(runs, numbers(id, core.Time(id)*10, 1+int(id)%5))
	}
	long := numbers(1000, 0, 3*chunk.MaxSamples+5)
	runs = append(runs, long, numbers(math.MaxUint32, 5, 1))
	f := mustOpen(t, write(t, runs...))
	for i := range runs {
		if got, _ := read(t, f, runs[i].id, core.AllTime); !equalBlocks(&got, &runs[i].Block) {
			t.Errorf("series %d: %d rows, want %d", runs[i].id, len(got.Times), len(runs[i].Times))
		}
	}
	for _, absent := range []ID{2, 999, 1001} {
		if _, entries := read(t, f, absent, core.AllTime); len(entries) > 0 {
			t.Errorf("series %d, which was not written, has %d blocks", absent, len(entries))
		}
	}
	// The second block of the long series begins at sample 8192.
	middle := core.Time(chunk.MaxSamples * 1000)
	if _, entries := read(t, f, 1000, core.Range{Start: middle, End: middle + 1}); len(entries) != 1 || entries[0].First != middle {
		t.Errorf("one instant of the long series: %v", entries)
	}
	if f.Series() != uint64(len(runs)) || f.Generation() != 7 || f.Oldest() != 3 {
		t.Errorf("%d series of generations %d to %d, want %d of 3 to 7", f.Series(), f.Oldest(), f.Generation(), len(runs))
	}
	if want := (core.Range{Start: 0, End: long.Times[len(long.Times)-1] + 1}); f.Range() != want {
		t.Errorf("range %v, want %v", f.Range(), want)
	}
}

func TestSidesAndVersions(t *testing.T) {
	r := run{id: 5}
	for i := range 10_000 {
		r.Times, r.Values = append(r.Times, core.Time(i/3)), append(r.Values, float64(i))
		if i%7 == 0 {
			r.Texts = append(r.Texts, core.TextAt{Index: uint32(i), Text: "on"})
		}
		if i%11 == 0 {
			r.Decimals = append(r.Decimals, core.DecimalAt{Index: uint32(i), Decimal: core.Decimal{Significand: int64(i), Exponent: -3}})
		}
		r.Versions = append(r.Versions, core.VersionAt{Index: uint32(i), Source: "s", Status: "ok", Written: core.Time(i)})
	}
	f := mustOpen(t, write(t, r))
	got, entries := read(t, f, 5, core.AllTime)
	if !equalBlocks(&got, &r.Block) {
		t.Error("rows differ")
	}
	for i, e := range entries {
		if e.Flags != HasSides|HasVersions {
			t.Errorf("block %d has flags %b", i, e.Flags)
		}
		if i > 0 && e.First == entries[i-1].Last {
			t.Errorf("block %d parts the versions of one time", i)
		}
	}
}

func TestStats(t *testing.T) {
	r := numbers(1, 0, 400) // 0, 0.25 ... 24, then again: 4 rounds of 97 and 12 more
	r.Values[10] = math.NaN()
	f := mustOpen(t, write(t, r, numbers(2, 0, statsFrom-1)))
	_, entries := read(t, f, 1, core.AllTime)
	// Sum of 0..96 is 4656, of 0..11 is 66; sample 10 is missing: (4 x 4656 + 66 - 10) / 4.
	want := Stats{Count: 399, Min: 0, Max: 24, Sum: 4670, First: 0, Last: 11.0 / 4, LastTime: 399_000, MaxTime: 96_000}
	if len(entries) != 1 || entries[0].Stats != want {
		t.Errorf("stats %+v, want %+v", entries, want)
	}
	if _, entries := read(t, f, 2, core.AllTime); entries[0].Flags&HasStats != 0 {
		t.Error("a short block has stats")
	}
}

func TestCopyAndOrder(t *testing.T) {
	f := mustOpen(t, write(t, numbers(1, 0, 100), numbers(2, 50, 200)))
	var out bytes.Buffer
	w := NewWriter(&out, 1, 1)
	for e, err := range f.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := f.Raw(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Copy(*e, raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	copied := mustOpen(t, out.Bytes())
	want := numbers(2, 50, 200)
	if got, _ := read(t, copied, 2, core.AllTime); !equalBlocks(&got, &want.Block) {
		t.Error("a copied block reads differently")
	}
	b := numbers(1, 0, 1)
	if err := w.Add(1, &b.Block); err == nil {
		t.Error("series 1 behind series 2 is taken")
	}
}

// TestFlippedBits damages every 97th byte: the file opens or says why not, and what can be read is right.
func TestFlippedBits(t *testing.T) {
	runs := []run{numbers(1, 0, 300), numbers(2, 7, 3), numbers(9, 1, chunk.MaxSamples+1)}
	runs[1].Texts = []core.TextAt{{Index: 1, Text: "hello"}}
	good := write(t, runs...)
	reported := 0
	for at := 0; at < len(good); at += 97 {
		bad := slices.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if visit(t, bad, runs) {
			reported++
		} else if at >= sealed.HeaderSize && at < len(good)-2*tailSize-2*pageRefSize { // the ends are there twice
			t.Errorf("a flipped bit of byte %d of %d is not noticed", at, len(good))
		}
	}
	if reported == 0 {
		t.Error("no damage was reported")
	}
}

// visit reads a whole file and reports whether any part could not be read; what could be has to be what was written.
func visit(t *testing.T, b []byte, runs []run) (damaged bool) {
	t.Helper()
	f, err := openBytes(t, b)
	if err != nil {
		return true
	}
	defer f.Close()
	var d chunk.Decoder
	var block core.Block
	for e, err := range f.Entries() {
		if err != nil {
			damaged = true
			continue
		}
		if err := f.Read(e, &d, &block); err != nil {
			var where *DamageError
			if !errors.As(err, &where) {
				t.Errorf("an error that does not say where: %v", err)
			}
			damaged = true
			continue
		}
		if runs == nil {
			continue
		}
		i := slices.IndexFunc(runs, func(r run) bool { return r.id == e.ID })
		if i < 0 || !slices.Contains(runs[i].Times, e.First) || len(block.Times) != e.Count {
			t.Errorf("series %d at %d came out of damage", e.ID, e.First)
		}
	}
	return damaged
}

func FuzzFile(f *testing.F) {
	f.Add(write(f, numbers(1, 0, 100)))
	f.Add(write(f, numbers(1, 0, 1), numbers(2, 3, 2)))
	f.Fuzz(func(t *testing.T, b []byte) { visit(t, b, nil) })
}

// TestRandomRuns reads random ranges back.
func TestRandomRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		var runs []run
		id := ID(0)
		for range 1 + r.IntN(40) {
			id += ID(1 + r.IntN(3))
			one, at := run{id: id}, core.Time(r.IntN(100))
			for range 1 + r.IntN(300) {
				one.Times, one.Values = append(one.Times, at), append(one.Values, math.Float64frombits(r.Uint64()))
				at += core.Time(1 + r.IntN(5))
			}
			runs = append(runs, one)
		}
		f := mustOpen(t, write(t, runs...))
		for _, one := range runs {
			if got, _ := read(t, f, one.id, core.AllTime); !equalBlocks(&got, &one.Block) {
				t.Fatalf("series %d reads differently", one.id)
			}
		}
	}
}
