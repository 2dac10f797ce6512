package storage

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
)

// scanned puts together what Scan gives, by place: with rows for every piece, or with stats where there are any.
func scanned(t *testing.T, db core.Parallel, q core.SeriesQuery) (rows, sums []string) {
	t.Helper()
	var mu sync.Mutex
	byPlace, sumByPlace := map[int][]string{}, map[int]string{}
	err := core.Scan(t.Context(), db, q, func(n int, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
		var lines []string
		var total core.Stats
		for p, err := range pieces {
			if err != nil {
				return err
			}
			b, err := p.Rows()
			if err != nil {
				return err
			}
			s := statsOf(b)
			if p.Stats != nil && *p.Stats != s {
				return fmt.Errorf("stats %+v of rows that have %+v", *p.Stats, s)
			}
			total.Count += s.Count
			total.Sum += s.Sum
			for i := range b.Times {
				lines = append(lines, fmt.Sprintf("%s %s %v %d=%v", key.Metric, key.Entity, key.Tags, b.Times[i], b.Values[i]))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		byPlace[n], sumByPlace[n] = lines, fmt.Sprint(total.Count)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(byPlace) {
		rows, sums = append(rows, byPlace[n]...), append(sums, sumByPlace[n])
	}
	return rows, sums
}

func statsOf(b *core.Block) (s core.Stats) {
	for i, v := range b.Values {
		if v != v {
			continue
		}
		t := b.Times[i]
		if s.Count == 0 {
			s = core.Stats{Min: v, Max: v, First: v, FirstTime: t, MinTime: t, MaxTime: t}
		}
		s.Count++
		s.Sum += v
		s.Last, s.LastTime = v, t
		if v < s.Min {
			s.Min, s.MinTime = v, t
		}
		if v > s.Max {
			s.Max, s.MaxTime = v, t
		}
	}
	return s
}

// TestScanEqualsSeries compares both readers on random histories in all layers.
func TestScanEqualsSeries(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := openMoving(t, func(m *moving) {
			switch r.IntN(10) {
			case 0:
				m.flush()
			case 1:
				m.compact()
			}
		})
		g := storetest.NewGenerator(seed)
		for range 80 {
			if _, err := m.Append(t.Context(), g.Next()); err != nil {
				var known *core.Error
				if !errors.As(err, &known) {
					t.Fatal(err)
				}
			}
		}
		for range 40 {
			start := core.Time(r.IntN(40_000))
			q := core.SeriesQuery{Scope: core.AllEntities, Range: core.Range{Start: start, End: start + core.Time(r.IntN(40_000))}}
			var want []string
			for b, err := range m.Series(t.Context(), q) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range b.Times {
					want = append(want, fmt.Sprintf("%s %s %v %d=%v", b.Key.Metric, b.Key.Entity, b.Key.Tags, b.Times[i], b.Values[i]))
				}
			}
			if got, _ := scanned(t, m.DB, q); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v:\n got %q\nwant %q", seed, q.Range, got, want)
			}
		}
	}
}

// A series that is added after the selection is neither among its keys nor visited: what a reader concludes from the keys holds for all that it is given.
func TestSelectionStaysAsItWas(t *testing.T) {
	m := openMoving(t, func(*moving) {})
	add := func(entity string) {
		b := &core.Batch{}
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: entity}), 1000, 1)
		if _, err := m.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	add("a")
	add("c")
	s, err := m.Select(t.Context(), core.SeriesQuery{Metric: "m", Scope: core.AllEntities, Range: core.AllTime})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add("b")
	m.compact()
	var keys []string
	for k := range s.Keys() {
		keys = append(keys, k.Entity)
	}
	visited := make([]string, 3)
	err = s.Scan(t.Context(), func(n int, key core.SeriesKey, _ iter.Seq2[core.Piece, error]) error {
		visited[n] = key.Entity
		return nil
	})
	if err != nil || !slices.Equal(keys, []string{"a", "c"}) || !slices.Equal(visited, []string{"a", "c", ""}) {
		t.Errorf("keys %q, visited %q, %v; want a and c", keys, visited, err)
	}
}

// TestScanUsesStats reads nothing of blocks that lie in the range, and everything of those that something newer overlaps.
func TestScanUsesStats(t *testing.T) {
	m := openMoving(t, func(*moving) {})
	b := &core.Batch{Keys: []core.SeriesKey{{Metric: "m", Entity: "e"}}}
	add := func(at core.Time, v float64) {
		b.Samples.Series, b.Samples.Times = append(b.Samples.Series, 0), append(b.Samples.Times, at)
		b.Samples.Values, b.Samples.Flags = append(b.Samples.Values, v), append(b.Samples.Flags, core.Stored|core.HasValue)
	}
	for i := range 20_000 { // blocks of 8192, 8192 and 3616
		add(core.Time(i)*10, 1)
	}
	if _, err := m.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	m.compact()
	known := func() (n int) {
		q := core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}
		err := core.Scan(t.Context(), m, q, func(_ int, _ core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
			for p, err := range pieces {
				if err != nil {
					return err
				}
				if p.Stats != nil {
					n++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := known(); n != 3 {
		t.Errorf("%d of 3 blocks are known", n)
	}
	b = &core.Batch{Keys: []core.SeriesKey{{Metric: "m", Entity: "e"}}}
	add(100_000, 5) // overrides a sample of the second block
	add(300_000, 6) // behind all of them
	if _, err := m.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if n := known(); n != 2 {
		t.Errorf("%d blocks are known beside one that is overlapped, want 2", n)
	}
}
