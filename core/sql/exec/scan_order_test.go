package exec

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// orderedRow is a row in the natural order.
type orderedRow struct {
	entity, tags string
	time         core.Time
	text         string
}

func (r orderedRow) String() string { return fmt.Sprintf("%s %d %s", r.entity, r.time, r.text) }

// crowd has entities with one series and with several, few samples and many, whose series differ in density, begin and end anywhere, have gaps, and samples
// without numbers. It returns the rows in the natural order as well.
func crowd(seed uint64) (*loader, []orderedRow) {
	r := rand.New(rand.NewPCG(seed, 11))
	var l loader
	var rows []orderedRow
	for e, sizes := range [][]int{{50}, {30, 40}, {9000, 300, 5, 4000}, {9000}, {1}, {5000, 5000}, {20, 20, 20}, {4000, 4500, 1}, {7}} {
		entity := fmt.Sprintf("e%d", e)
		for s, n := range sizes {
			k, tags := key("m", entity), "-"
			if s > 0 {
				tags = fmt.Sprintf("n=%d", s)
				k = key("m", entity, "n", fmt.Sprint(s))
			}
			at, step := core.Time(r.IntN(5000)), 1+r.IntN(1+20_000/n)
			for i := range n {
				if at += core.Time(1 + r.IntN(step)); r.IntN(3000) == 0 {
					at += core.Time(r.IntN(1 << 30))
				}
				v, text := float64(i), fmt.Sprint(i)
				if i == 0 && r.IntN(2) == 0 {
					v, text = math.NaN(), "NaN"
				}
				l.sample(k, at, v)
				rows = append(rows, orderedRow{entity, tags, at, text})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b orderedRow) int {
		if c := cmp.Or(cmp.Compare(a.entity, b.entity), cmp.Compare(a.time, b.time)); c != 0 || a.tags == b.tags {
			return c
		}
		if a.tags == "-" || b.tags != "-" && a.tags < b.tags { // no tags first
			return -1
		}
		return 1
	})
	return &l, rows
}

// numbered is the scan of the crowd, of whole numbers of milliseconds.
func numbered() *plan.Scan {
	s := scanOf("m")
	s.Columns[plan.ScanTime].Type = column.Bigint
	s.Needs.Text = false
	return s
}

// Rows come in the natural order however they are collected, and where the entities with several series exceed the memory: nothing is written to a disk.
func TestNaturalOrderInSlices(t *testing.T) {
	for seed := range uint64(2) {
		l, all := crowd(seed)
		s := l.store(t)
		var rows []string
		for _, r := range all {
			rows = append(rows, r.String())
		}
		for name, change := range map[string]func(*Config){
			"one by one":    func(*Config) {},
			"pieces":        split(seed),
			"little memory": func(c *Config) { split(seed)(c); c.Memory = NewMemory(700_000) },
		} {
			got := run1(t, s, pick(numbered(), plan.ScanEntity, plan.ScanTime, valueColumn), change)
			if !slices.Equal(got, rows) {
				t.Fatalf("seed %d, %s: %d rows, want %d; they differ at %s", seed, name, len(got), len(rows), difference(got, rows))
			}
		}
		// In intervals, with a filter that half of the rows pass.
		scan := within(numbered(), 2000, 9000, 10_000, 10_001, 1<<29, core.MaxTime)
		scan.Filter = valueAbove{valueColumn, 500}
		rows = rows[:0]
		for _, r := range all {
			if v := column.ParseFloat(r.text); v > 500 && (r.time >= 2000 && r.time < 9000 || r.time == 10_000 || r.time >= 1<<29) {
				rows = append(rows, r.String())
			}
		}
		if got := run1(t, s, pick(scan, plan.ScanEntity, plan.ScanTime, valueColumn), split(seed)); !slices.Equal(got, rows) {
			t.Fatalf("seed %d: %d rows in intervals, want %d; they differ at %s", seed, len(got), len(rows), difference(got, rows))
		}
	}
}

func difference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%d: %s, want %s", i, got[i], want[i])
		}
	}
	return "the end"
}

// The first rows of an entity with many samples in several series need few of them.
func TestFirstRowsReadLittle(t *testing.T) {
	var l loader
	for s := range 20 {
		for i := range 3000 {
			l.sample(key("m", "a", "n", fmt.Sprint(s)), core.Time(1+i*1000), float64(s))
		}
	}
	s := l.store(t)
	for name, change := range map[string]func(*Config){"one by one": func(*Config) {}, "pieces": split(1)} {
		var read atomic.Int64
		got := run1(t, s, pick(&plan.Limit{In: numbered(), Count: 3}, plan.ScanTime, valueColumn), change, func(c *Config) { c.Fetched = &read })
		want(t, got, "1 0", "1 1", "1 10") // tags are texts
		if n := read.Load(); n > 25_000 {
			t.Errorf("%s: %d samples of 60,000 were read", name, n)
		}
	}
}

// More rows at one time than fit the memory go to the disk, where there is one.
func TestManyRowsAtOneTime(t *testing.T) {
	const n = 6000
	var l loader
	for i := range n {
		l.sample(key("m", "a", "n", fmt.Sprintf("%05d", i)), 5, float64(i))
	}
	s := l.store(t)
	small := func(c *Config) { c.Memory, c.SpillDir = NewMemory(300_000), t.TempDir() }
	got := run1(t, s, pick(numbered(), valueColumn), small)
	if len(got) != n || !slices.IsSortedFunc(got, func(a, b string) int { return cmp.Compare(column.ParseFloat(a), column.ParseFloat(b)) }) {
		t.Errorf("%d rows, want %d in order", len(got), n)
	}
	_, err := tryRun(t.Context(), s, numbered(), func(c *Config) { c.Memory = NewMemory(300_000) })
	if core.CodeOf(err) != core.TooLarge {
		t.Errorf("without a disk: %v, want an error that names sql.memory", err)
	}
}
