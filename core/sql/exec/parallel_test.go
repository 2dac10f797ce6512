package exec

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// splitter reads a store with several goroutines, in pieces of any length, some with their statistics.
type splitter struct {
	core.Reader
	seed     uint64
	decimals int8
	failure  error         // of the second series
	refused  *atomic.Int64 // counts the pieces whose rows nobody asked for; nil = not counted
}

// chosen is what a splitter selected.
type chosen struct {
	splitter
	keys   []core.SeriesKey
	blocks [][]core.Block
}

func (s splitter) Select(ctx context.Context, q core.SeriesQuery) (core.Selection, error) {
	var keys []core.SeriesKey
	var blocks [][]core.Block
	for b, err := range s.Series(ctx, q) {
		if err != nil {
			return nil, err
		}
		if n := len(keys); n == 0 || keys[n-1].Compare(b.Key) != 0 {
			keys, blocks = append(keys, b.Key.Clone()), append(blocks, nil)
		}
		copied := core.Block{Times: slices.Clone(b.Times), Values: slices.Clone(b.Values), Texts: slices.Clone(b.Texts), Decimals: slices.Clone(b.Decimals)}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], copied)
	}
	return &chosen{s, keys, blocks}, nil
}

func (s *chosen) Close() {}

func (s *chosen) Keys() iter.Seq[core.SeriesKey] { return slices.Values(s.keys) }

func (s *chosen) Scan(ctx context.Context, visit core.Visit) error {
	keys, blocks := s.keys, s.blocks
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make([]error, 3)
	for w := range failed {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(keys) && failed[w] == nil && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if n == 1 && s.failure != nil {
					failed[w] = s.failure
					return
				}
				failed[w] = visit(n, keys[n], s.pieces(blocks[n], rand.New(rand.NewPCG(s.seed, uint64(n)))))
			}
		})
	}
	workers.Wait()
	return errors.Join(append(failed, ctx.Err())...)
}

// pieces cuts blocks where r says so. Rows are valid until the next piece: then they are overwritten.
func (s splitter) pieces(blocks []core.Block, r *rand.Rand) iter.Seq2[core.Piece, error] {
	return func(yield func(core.Piece, error) bool) {
		for _, b := range blocks {
			for from := 0; from < len(b.Times); {
				to := min(from+1+r.IntN(8), len(b.Times))
				run := span{from, to}
				part := &core.Block{Times: slices.Clone(b.Times[from:to]), Values: slices.Clone(b.Values[from:to]),
					Texts:    slices.Clone(sideOf(b.Texts, run, func(e *core.TextAt) *uint32 { return &e.Index })),
					Decimals: slices.Clone(sideOf(b.Decimals, run, func(e *core.DecimalAt) *uint32 { return &e.Index }))}
				asked := false
				p := core.Piece{Rows: func() (*core.Block, error) { asked = true; return part, nil }}
				if r.IntN(2) == 0 {
					p.Stats = statsOf(part, s.decimals)
					if r.IntN(2) == 0 {
						p.Values = func() ([]float64, error) { return part.Values, nil }
					}
				}
				more := yield(p, nil)
				if s.refused != nil && !asked {
					s.refused.Add(1)
				}
				for i := range part.Values {
					part.Values[i], part.Times[i] = -1e9, -1
				}
				if !more {
					return
				}
				from = to
			}
		}
	}
}

func statsOf(b *core.Block, decimals int8) *core.Stats {
	s := core.Stats{Rows: int64(len(b.Times)), Decimals: decimals}
	for i, v := range b.Values {
		if v != v {
			continue
		}
		t := b.Times[i]
		if s.Count == 0 {
			s.First, s.FirstTime, s.Min, s.Max, s.MinTime, s.MaxTime = v, t, v, v, t, t
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
	return &s
}

// split makes a query read through a splitter.
func split(seed uint64) func(*Config) {
	return func(c *Config) { c.Reader = splitter{Reader: c.Reader, seed: seed, decimals: 2} }
}

// fleet is some series with gaps, NaN and equal values.
func fleet(t testing.TB, r *rand.Rand) *memstore.Store {
	var l loader
	for _, k := range []core.SeriesKey{key("m", "a"), key("m", "b", "x", "1"), key("m", "b", "x", "2"), key("m", "c"), key("n", "a"), key("n", "d", "y", "3")} {
		clock := at("10:00")
		for range 20 + r.IntN(60) {
			clock += core.Time(1+r.IntN(4)) * 20_000
			v := float64(r.IntN(400)) / 100
			if r.IntN(10) == 0 {
				v = math.NaN()
			}
			var texts []string
			if r.IntN(12) == 0 {
				texts = append(texts, "note")
			}
			l.sample(k, clock, v, texts...)
		}
	}
	return l.store(t)
}

// What several series at once make of a group is what the ordinary way makes of it.
func TestGroupOfSeveralSeries(t *testing.T) {
	functions := []string{"count(*)", "count", "sum", "avg", "min", "max", "first", "last", "min_value_time", "max_value_time", "median", "stddev", "stddev_pop", "delta",
		"counter", "median_abs_dev", "product", "regr_slope"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := fleet(t, r)
		make := func() plan.Operator {
			r := rand.New(rand.NewPCG(seed, 2))
			scan := scanOf([][]string{{"m"}, {"n"}, {"n", "m"}}[r.IntN(3)]...)
			switch r.IntN(3) {
			case 0:
				within(scan, at("10:03"), at("10:40"))
			case 1:
				within(scan, at("10:03"), at("10:14"), at("10:20"), at("10:31"))
			}
			interval := more(scan, plan.SourceInterval, "", column.Bigint)
			keys := slices.Clone([][]int{nil, {plan.ScanEntity}, {plan.ScanEntity, plan.ScanTags}, {plan.ScanMetric}, {plan.ScanMetric, plan.ScanEntity, plan.ScanTags}}[r.IntN(5)])
			var chosen []string
			for range 1 + r.IntN(4) {
				chosen = append(chosen, functions[r.IntN(len(functions))])
			}
			period := r.IntN(3) > 0
			if period {
				keys = slices.Insert(keys, r.IntN(len(keys)+1), plan.ScanTime)
			}
			g := groupBy(scan, keys, chosen...)
			if period {
				by(g, []int64{1, 5, 10, 30}[r.IntN(4)], dates.Minute, filledBy([]ast.Fill{ast.FillNone, ast.FillPrevious, ast.FillLinear}[r.IntN(3)]))
				g.Period.Extend = r.IntN(2) == 0
				if len(scan.Intervals) > 1 {
					g.Period.Interval = interval
				}
			}
			switch r.IntN(4) {
			case 0:
				scan.Filter = valueAbove{valueColumn, 1.5}
			case 1:
				scan.Filter = compared([]string{"<", ">", ">=", "="}[r.IntN(4)], float64(r.IntN(4)))
			case 2:
				scan.Filter = expr.And(compared(">", 0.5), compared("<=", 2+float64(r.IntN(3))))
			}
			if r.IntN(3) == 0 {
				g.Carried = []expr.Node{expr.Input(plan.ScanEntity, column.String)}
			}
			return g
		}
		if got, rows := run1(t, s, make(), split(seed)), run1(t, s, make()); !slices.Equal(rounded(got), rounded(rows)) {
			t.Errorf("seed %d", seed)
			want(t, got, rows...)
		}
	}
}

// compared is a condition on the value.
func compared(op string, v float64) expr.Node {
	return expr.Compare(op, expr.Input(valueColumn, column.Double), expr.Const(column.FloatValue(column.Double, v)))
}

// Values are counted within a range without the rows of a piece, and without the values where the statistics tell.
func TestCountOfARange(t *testing.T) {
	s := fleet(t, rand.New(rand.NewPCG(1, 1)))
	for _, c := range []expr.Node{compared(">", 1.5), compared("<=", 3), compared("=", 2), compared("<", math.Inf(1)), compared(">", math.Inf(1))} {
		make := func() plan.Operator {
			scan := scanOf("m", "n")
			scan.Filter = c
			return groupBy(scan, []int{plan.ScanEntity}, "count(*)", "count")
		}
		rows := run1(t, s, make())
		var refused atomic.Int64
		want(t, run1(t, s, make(), func(c *Config) { c.Reader = splitter{Reader: c.Reader, seed: 5, refused: &refused} }), rows...)
		if refused.Load() == 0 {
			t.Error("every piece was read")
		}
	}
}

// rounded cuts numbers to nine digits: some functions round differently in pieces.
func rounded(rows []string) []string {
	var out []string
	for _, row := range rows {
		cells := strings.Fields(row)
		for i, c := range cells {
			if v, err := strconv.ParseFloat(c, 64); err == nil {
				cells[i] = strconv.FormatFloat(v, 'g', 9, 64)
			}
		}
		out = append(out, strings.Join(cells, " "))
	}
	return out
}

// A filter over several series at once yields the rows in the natural order.
func TestFilterOfSeveralSeries(t *testing.T) {
	for seed := range uint64(40) {
		s := fleet(t, rand.New(rand.NewPCG(seed, 3)))
		make := func() *plan.Scan {
			scan := within(scanOf("m", "n"), at("10:02"), at("10:15"), at("10:20"), at("10:50"))
			scan.Filter = valueAbove{valueColumn, float64(seed%5) / 2}
			return scan
		}
		rows := run1(t, s, make())
		if got := run1(t, s, make(), split(seed)); !slices.Equal(got, rows) {
			t.Errorf("seed %d", seed)
			want(t, got, rows...)
		}
		unordered := make()
		unordered.Unordered = true
		got := run1(t, s, unordered, split(seed))
		slices.Sort(got)
		slices.Sort(rows)
		want(t, got, rows...)
	}
}

// Pieces whose statistics exclude the condition are not read.
func TestSkippedPieces(t *testing.T) {
	s := fleet(t, rand.New(rand.NewPCG(1, 1)))
	for _, root := range []func(*plan.Scan) plan.Operator{
		func(s *plan.Scan) plan.Operator { return s },
		func(s *plan.Scan) plan.Operator { return groupBy(s, nil, "count(*)") },
	} {
		scan := scanOf("m", "n")
		scan.Filter = valueAbove{valueColumn, 5}
		var refused, read atomic.Int64
		want(t, run1(t, s, root(scan), func(c *Config) {
			c.Reader = splitter{Reader: c.Reader, refused: &refused}
			c.Fetched = &read
		}))
		if refused.Load() == 0 {
			t.Error("every piece was read")
		}
	}
}

// Sums come from statistics where that is exact.
func TestSumOfStatistics(t *testing.T) {
	var l loader
	for i := range 64 {
		l.sample(key("m", "a"), core.Time(i+1), float64(i)/10)
	}
	s := l.store(t)
	var refused atomic.Int64
	for _, decimals := range []int8{1, -1} {
		got := run1(t, s, groupBy(scanOf("m"), nil, "sum", "avg", "count", "max"), func(c *Config) {
			c.Reader = splitter{Reader: c.Reader, refused: &refused, decimals: decimals}
		})
		want(t, got, "201.6 3.15 64 6.3")
		if some := refused.Swap(0) > 0; some != (decimals >= 0) {
			t.Errorf("with %d decimals statistics were used: %t", decimals, some)
		}
	}
}

func TestFailureOfSeveralSeries(t *testing.T) {
	failure := core.Errorf(core.Unavailable, "the disk is gone")
	s := fleet(t, rand.New(rand.NewPCG(1, 1)))
	scan := scanOf("m")
	scan.Filter = valueAbove{valueColumn, 0}
	for _, root := range []plan.Operator{groupBy(scanOf("m"), nil, "sum"), scan} {
		_, err := tryRun(t.Context(), s, root, func(c *Config) { c.Reader = splitter{Reader: c.Reader, failure: failure} })
		if !errors.Is(err, failure) {
			t.Errorf("error is %v, want that of the reader", err)
		}
	}
}

// A consumer that has enough ends the workers.
func TestEnoughOfSeveralSeries(t *testing.T) {
	s := fleet(t, rand.New(rand.NewPCG(1, 1)))
	scan := scanOf("m")
	scan.Filter = valueAbove{valueColumn, -1}
	if rows := run1(t, s, &plan.Limit{In: scan, Count: 3}, split(1)); len(rows) != 3 {
		t.Errorf("%d rows, want 3", len(rows))
	}
}
