package exec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// inLittle runs a plan with so much memory and temporary files, of which none may be left.
func inLittle(t testing.TB, bytes int64, change ...func(*Config)) func(*Config) {
	dir := t.TempDir()
	t.Cleanup(func() {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%d files are left", len(left))
		}
	})
	return func(c *Config) {
		c.Memory, c.SpillDir = NewMemory(bytes), dir
		for _, f := range change {
			f(c)
		}
	}
}

func noFiles(c *Config) { c.SpillDir = "" }

// throng is 120 series of 2 metrics with 30 samples each: equal values, NaN, texts, decimals, series that share tags. Of each metric an entity has so many series.
func throng(t testing.TB, r *rand.Rand, series int) *memstore.Store {
	var l loader
	for i := range 120 {
		k := key([]string{"m", "n"}[i%2], fmt.Sprintf("entity-%d", i/2/series))
		switch i % 3 {
		case 0:
			k = key(k.Metric, k.Entity, "site", fmt.Sprint(i%7), "row", fmt.Sprint(i/4))
		case 1:
			k = key(k.Metric, k.Entity, "site", fmt.Sprint(i%5))
		}
		clock := at("10:00") + core.Time(r.IntN(100))*1000
		for range 30 {
			clock += core.Time(1+r.IntN(40)) * 1000
			v := float64(r.IntN(40000)-2000) / []float64{1, 10, 1000}[r.IntN(3)]
			if r.IntN(10) == 0 {
				v = math.NaN()
			}
			var texts []string
			if r.IntN(4) == 0 {
				texts = append(texts, fmt.Sprint("note ", r.IntN(50)))
			}
			l.sample(k, clock, v, texts...)
		}
	}
	return l.store(t)
}

var allFunctions = []string{"count(*)", "count", "sum", "avg", "min", "max", "first", "last", "min_value_time", "max_value_time", "median", "percentile", "stddev", "stddev_pop", "delta",
	"counter", "median_abs_dev", "product", "regr_slope", "regr_intercept", "correl", "covar", "wavg", "wtavg"}

// throngGroup makes up a grouping of a throng.
func throngGroup(r *rand.Rand) plan.Operator {
	scan := scanOf([][]string{{"m"}, {"n", "m"}}[r.IntN(2)]...)
	switch r.IntN(4) {
	case 0:
		within(scan, at("10:01"), at("10:30"))
	case 1:
		within(scan, at("10:01"), at("10:04"), at("10:06"), at("10:13"))
	}
	interval := more(scan, plan.SourceInterval, "", column.Bigint)
	site := more(scan, plan.SourceTag, "site", column.String)
	keys := slices.Clone([][]int{{plan.ScanEntity}, {plan.ScanEntity, plan.ScanTags}, {plan.ScanMetric, valueColumn}, {valueColumn}, {textColumn, site, plan.ScanEntity},
		{plan.ScanMetric, plan.ScanEntity, plan.ScanTags}, {site, valueColumn}, {plan.ScanMetric}}[r.IntN(8)])
	var chosen []string
	for range 1 + r.IntN(4) {
		chosen = append(chosen, allFunctions[r.IntN(len(allFunctions))])
	}
	period := r.IntN(2) == 0
	if period {
		keys = slices.Insert(keys, r.IntN(len(keys)+1), plan.ScanTime)
	}
	g := groupBy(scan, keys, chosen...)
	for i := range g.Aggregates {
		g.Aggregates[i].Distinct = r.IntN(4) == 0
		g.Aggregates[i].Percent = 90
	}
	if period {
		by(g, []int64{1, 7, 30}[r.IntN(3)], []dates.Unit{dates.Second, dates.Minute}[r.IntN(2)], aligned([]ast.Align{ast.AlignCalendar, ast.AlignStart, ast.AlignFirst, ast.AlignEnd}[r.IntN(4)]))
		if r.IntN(3) == 0 {
			g.Period.Fill, g.Period.Number = []ast.Fill{ast.FillPrevious, ast.FillLinear, ast.FillValue, ast.FillNext}[r.IntN(4)], 7
			g.Period.Extend = r.IntN(2) == 0
		}
		if len(scan.Intervals) > 1 {
			g.Period.Interval = interval
		}
	}
	if r.IntN(3) == 0 {
		g.Carried = []expr.Node{expr.Input(plan.ScanEntity, column.String), value}
	}
	if r.IntN(3) == 0 {
		scan.Filter = compared(">", float64(r.IntN(4)))
	}
	if r.IntN(3) == 0 { // a key and an argument that are computed
		g.Keys = append(g.Keys, compared("<=", 3))
	}
	return g
}

// What is grouped in parts is what is grouped at once, whichever way the rows are read. Only a group that needs all the memory for itself is refused.
func TestGroupInParts(t *testing.T) {
	var stores [4]*memstore.Store
	for i := range stores {
		stores[i] = throng(t, rand.New(rand.NewPCG(uint64(i), 1)), 1+i%2)
	}
	parted, refused := 0, 0
	for seed := range uint64(48) {
		s := stores[seed%4]
		make := func() plan.Operator { return throngGroup(rand.New(rand.NewPCG(seed, 2))) }
		bytes := []int64{350 << 10, 150 << 10}[seed/4%2]
		if seed%2 == 1 {
			bytes += leastMerge // what the scan takes
		}
		if _, err := tryRun(t.Context(), s, make(), inLittle(t, bytes, noFiles)); err == nil {
			continue
		}
		rows := run1(t, s, make())
		little := inLittle(t, bytes)
		if seed/8%2 == 1 {
			little = inLittle(t, bytes, split(seed))
		}
		got, err := tryRun(t.Context(), s, make(), little)
		switch {
		case isShortage(err):
			refused++
		case err != nil:
			t.Errorf("seed %d: %v", seed, err)
		case !slices.Equal(rounded(got), rounded(rows)):
			t.Errorf("seed %d: %d rows differ from %d", seed, len(got), len(rows))
		default:
			parted++
		}
	}
	if parted < 20 || refused > parted/10 {
		t.Errorf("%d groupings were done in parts, %d were refused", parted, refused)
	}
}

// distinctOf is SELECT DISTINCT of columns.
func distinctOf(in plan.Operator, columns ...int) *plan.Distinct {
	return &plan.Distinct{In: pick(in, columns...), Width: len(columns)}
}

func TestDistinctInParts(t *testing.T) {
	s := throng(t, rand.New(rand.NewPCG(1, 1)), 1)
	for _, columns := range [][]int{{valueColumn}, {plan.ScanEntity, valueColumn}, {textColumn, valueColumn, plan.ScanEntity}, {plan.ScanMetric, plan.ScanTags, textColumn}} {
		make := func() plan.Operator { return distinctOf(scanOf("m", "n"), columns...) }
		rows := run1(t, s, make())
		var first []string // the meaning of DISTINCT, by a map
		seen := map[string]bool{}
		for _, row := range run1(t, s, pick(scanOf("m", "n"), columns...)) {
			if !seen[row] {
				seen[row] = true
				first = append(first, row)
			}
		}
		want(t, rows, first...)
		for _, bytes := range []int64{400 << 10, 200 << 10, 100 << 10} {
			if got := run1(t, s, make(), inLittle(t, bytes)); !slices.Equal(got, rows) {
				t.Errorf("%v in %d bytes: %d rows differ from %d", columns, bytes, len(got), len(rows))
			}
		}
		if _, err := tryRun(t.Context(), s, make(), inLittle(t, 100<<10, noFiles)); len(rows) > 2000 && !isShortage(err) {
			t.Errorf("%v without files: %v", columns, err)
		}
	}
}

func distinctNumbers(t testing.TB, n int) *memstore.Store {
	var l loader
	for i := range n {
		l.sample(key("m", "a"), core.Time(i+1), float64(i*7919%n))
	}
	return l.store(t)
}

// Files that are too large are dealt out again.
func TestPartsOfParts(t *testing.T) {
	const n = 30_000
	s := distinctNumbers(t, n)
	g := func() plan.Operator { return groupBy(scanOf("m"), []int{valueColumn}, "count(*)", "min_value_time") }
	if rows := run1(t, s, g()); len(rows) != n {
		t.Fatalf("%d groups", len(rows))
	} else if got := run1(t, s, g(), inLittle(t, 100_000)); !slices.Equal(got, rows) {
		t.Errorf("%d groups differ", len(got))
	}
	d := func() plan.Operator { return distinctOf(scanOf("m"), valueColumn) }
	if got := run1(t, s, d(), inLittle(t, 60_000)); !slices.Equal(got, run1(t, s, d())) {
		t.Errorf("%d distinct rows differ", len(got))
	}
}

// LIMIT ends a DISTINCT that has not come to files.
func TestDistinctEndsEarly(t *testing.T) {
	s := throng(t, rand.New(rand.NewPCG(1, 1)), 1)
	var read atomic.Int64
	first := &plan.Limit{Count: 100, In: distinctOf(scanOf("m"), valueColumn)}
	rows := run1(t, s, first, inLittle(t, 1<<20, func(c *Config) { c.Fetched = &read }))
	if len(rows) != 100 || read.Load() > 500 {
		t.Errorf("%d rows of %d that were read", len(rows), read.Load())
	}
}

// One group that does not fit is an error, soon.
func TestGroupThatDoesNotPart(t *testing.T) {
	s := distinctNumbers(t, 50_000)
	for name, op := range map[string]plan.Operator{
		"values": groupBy(scanOf("m"), []int{plan.ScanEntity}, "median"),
		"whole":  groupBy(scanOf("m"), nil, "median"),
		"distinct": func() plan.Operator {
			g := groupBy(scanOf("m"), []int{plan.ScanEntity}, "count")
			g.Aggregates[0].Distinct = true
			return g
		}(),
		"periods": by(groupBy(within(scanOf("m"), 0, 50_000_000), periodOnly, "count"), 1, dates.Second, valued(0), extended, func(p *plan.Period) { p.Step.Unit = dates.Millisecond }),
		"base":    by(groupBy(scanOf("m"), []int{plan.ScanEntity, plan.ScanTime}, "delta"), 1, dates.Millisecond),
	} {
		for _, change := range []func(*Config){inLittle(t, 200_000), inLittle(t, 200_000, split(1))} {
			_, err := tryRun(t.Context(), s, op, change)
			if !isShortage(err) || core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), "sql.memory") {
				t.Errorf("%s: error %v, want one that names sql.memory", name, err)
			}
		}
	}
}

// Two groups in which values are kept do not fit together, but one after the other.
func TestKeptValuesInParts(t *testing.T) {
	var l loader
	for i := range 20_000 {
		for _, entity := range []string{"a", "b"} {
			l.sample(key("m", entity), core.Time(i+1), float64(i))
		}
	}
	s := l.store(t)
	for _, change := range []func(*Config){inLittle(t, 400_000), inLittle(t, 400_000, split(3))} {
		want(t, run1(t, s, groupBy(scanOf("m"), []int{plan.ScanEntity}, "median"), change), "a 9999.5", "b 9999.5")
	}
}

// A query that is cancelled while its rows are read, dealt out, grouped, sorted or yielded ends with that error, and leaves no file and no memory.
func TestCancelInParts(t *testing.T) {
	s := distinctNumbers(t, 5_000)
	for name, make := range map[string]func() plan.Operator{
		"group":    func() plan.Operator { return groupBy(scanOf("m"), []int{valueColumn}, "sum") },
		"distinct": func() plan.Operator { return distinctOf(scanOf("m"), valueColumn) },
	} {
		ended := false
		for after := int64(1); !ended; after += 1 + after/4 {
			ctx := &countingContext{Context: t.Context(), left: after}
			_, err := tryRun(ctx, s, make(), inLittle(t, 60_000, func(c *Config) { m := c.Memory; t.Cleanup(func() { checkReleased(t, m) }) }))
			switch ended = err == nil; {
			case err != nil && !errors.Is(err, context.Canceled):
				t.Fatalf("%s after %d questions: %v", name, after, err)
			case ended && after < 100:
				t.Errorf("%s asks only %d times whether it is to end", name, after)
			}
		}
	}
}

func checkReleased(t *testing.T, m *Memory) {
	if used := m.Used(); used != 0 {
		t.Errorf("%d bytes were not given back", used)
	}
}

// countingContext is cancelled when it was asked for its error so many times.
type countingContext struct {
	context.Context
	left int64
}

func (c *countingContext) Err() error {
	if c.left--; c.left <= 0 {
		return context.Canceled
	}
	return nil
}

func TestPartsExceedFiles(t *testing.T) {
	s := distinctNumbers(t, 50_000)
	for _, op := range []plan.Operator{groupBy(scanOf("m"), []int{valueColumn}, "sum"), distinctOf(scanOf("m"), valueColumn)} {
		_, err := tryRun(t.Context(), s, op, inLittle(t, 200_000, func(c *Config) { c.Spill = 100_000 }))
		if core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), "sql.spill") {
			t.Errorf("error %v, want one that names sql.spill", err)
		}
	}
}
