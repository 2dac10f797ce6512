package exec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// over is an aggregate of the value of scanOf.
func over(name string, of column.Type) plan.Analytic {
	return plan.Analytic{Aggregate: plan.Aggregate{Func: name, Args: []expr.Node{valuePlace}, Time: timePlace, Type: of}}
}

func shifted(name string, offset int64, otherwise expr.Node) plan.Analytic {
	f := over(name, column.Double)
	f.Offset, f.Default = offset, otherwise
	return f
}

// windowOf computes functions of the flow of pump-1 after its numbering by time.
func windowOf(frame plan.Frame, functions ...plan.Analytic) *plan.Window {
	in := partitioned(of("pump-1", scanOf("flow")), ">", 0, []expr.Node{entityPlace}, plan.Key{Expr: timePlace})
	return &plan.Window{In: in, Partition: []expr.Node{entityPlace}, Functions: functions, Time: timePlace, Frame: frame}
}

// values projects the value and the functions of windowOf.
func values(w *plan.Window) *plan.Project {
	columns := []int{valueColumn}
	for i := range w.Functions {
		columns = append(columns, furtherColumn+3+i)
	}
	return pick(w, columns...)
}

func TestWindows(t *testing.T) {
	s := example(t)
	// [A69], [A70], [A71]
	want(t, run1(t, s, values(windowOf(plan.Frame{Rows: 2}, over("avg", column.Decimal), over("count", column.Bigint)))), "10 10 1", "14 12 2", "20 17 2", "8 14 2")
	five := &dates.Interval{Count: 5, Unit: dates.Minute}
	want(t, run1(t, s, values(windowOf(plan.Frame{Span: five}, over("avg", column.Decimal), over("count", column.Bigint)))), "10 10 1", "14 12 2", "20 17 2", "8 8 1")
	ema := over("ema", column.Double)
	ema.Factor = 0.5
	want(t, run1(t, s, values(windowOf(plan.Frame{}, over("sum", column.Decimal), ema))), "10 10 10", "14 24 12", "20 44 16", "8 52 12")
	// [A73]
	minusOne := function{column.Bigint, func(func(int) column.Value) column.Value { return column.IntValue(column.Bigint, -1) }}
	want(t, run1(t, s, values(windowOf(plan.Frame{}, shifted("lag", 1, nil), shifted("lead", 1, minusOne), over("first_value", column.Double)))),
		"10 - 14 10", "14 10 20 10", "20 14 8 10", "8 20 -1 10")
}

// By hand from the formulas of the reference, over 10, 14, 20, 8 at 0, 2, 5 and 11 minutes.
func TestWindowFunctions(t *testing.T) {
	deviation := over("stddev", column.Decimal)
	population := deviation
	population.Population = true
	all := []plan.Analytic{over("min", column.Decimal), over("max", column.Decimal), over("product", column.Double), over("first", column.Decimal), over("last", column.Decimal),
		over("delta", column.Double), over("counter", column.Double), over("wavg", column.Double)}
	want(t, run1(t, example(t), values(windowOf(plan.Frame{}, all...))),
		"10 10 10 10 10 10 NaN NaN 10",
		"14 10 14 140 10 14 4 4 12.666666666666666", // (10 + 28) / 3
		"20 10 20 2800 10 20 10 10 16.333333333333332",
		"8 8 20 22400 10 8 -2 18 13")
	want(t, run1(t, example(t), values(windowOf(plan.Frame{Rows: 3}, all...))),
		"10 10 10 10 10 10 NaN NaN 10",
		"14 10 14 140 10 14 4 4 12.666666666666666",
		"20 10 20 2800 10 20 10 10 16.333333333333332",
		"8 8 20 2240 14 8 -6 14 13") // (14 + 40 + 24) / 6
	want(t, run1(t, example(t), values(windowOf(plan.Frame{Rows: 2}, deviation, population))),
		"10 0 0", "14 2.8284271247461903 2", "20 4.242640687119285 3", "8 8.48528137423857 6")
	// Weights of seconds + 1: (10 + 121*14) / 122, and of the last two rows (20 + 361*8) / 362.
	want(t, run1(t, example(t), values(windowOf(plan.Frame{Rows: 2}, over("wtavg", column.Double)))),
		"10 10", "14 "+number(1704.0/122), "20 "+number((14+181*20.0)/182), "8 "+number((20+361*8.0)/362))
	minutes := function{column.Double, func(row func(int) column.Value) column.Value {
		return column.FloatValue(column.Double, float64(row(plan.ScanTime).Int-int64(at("10:00")))/60_000)
	}}
	slope, intercept := over("regr_slope", column.Double), over("regr_intercept", column.Double)
	slope.Args, intercept.Args = append(slope.Args, minutes), append(intercept.Args, minutes)
	// Through two points: (14-10)/2, (20-14)/3, (8-20)/6.
	want(t, run1(t, example(t), values(windowOf(plan.Frame{Rows: 2}, slope, intercept))), "10 NaN NaN", "14 2 10", "20 2 10", "8 -2 30")
	got := run1(t, example(t), values(windowOf(plan.Frame{}, slope)))
	if want := "8 -0.2608695652173913"; got[3] != want {
		t.Errorf("slope over all rows: got %s, want %s", got[3], want)
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// NaN and rows without a number count as rows of a frame, but not for functions; without a usable row the decimal ones are NULL, those of type double NaN.
func TestWindowWithoutNumbers(t *testing.T) {
	w := &plan.Window{In: of("pump-2", scanOf("flow")), Functions: []plan.Analytic{over("sum", column.Decimal), over("count", column.Bigint), over("wavg", column.Double), shifted("lag", 1, nil)},
		Frame: plan.Frame{Rows: 1}}
	rows := over("count", column.Bigint)
	rows.Args = nil
	w.Functions = append(w.Functions, rows)
	columns := []int{valueColumn}
	for i := range w.Functions {
		columns = append(columns, furtherColumn+i)
	}
	want(t, run1(t, example(t), pick(w, columns...)), "3 3 1 3 - 1", "NaN - 0 NaN 3 1", "7.5 7.5 1 7.5 NaN 1")
}

// Without partitions the whole result is one.
func TestWindowOverAll(t *testing.T) {
	w := &plan.Window{In: scanOf("flow"), Functions: []plan.Analytic{shifted("lag", 2, nil), shifted("lead", 2, nil), shifted("lag", -1, nil), over("first_value", column.Double)}}
	want(t, run1(t, example(t), pick(w, valueColumn, furtherColumn, furtherColumn+1, furtherColumn+2, furtherColumn+3)),
		"10 - 20 14 10", "14 - 8 20 10", "20 10 3 8 10", "8 14 NaN 3 10", "3 20 7.5 NaN 10", "NaN 8 - 7.5 10", "7.5 3 - - 10")
}

func TestWindowDistinct(t *testing.T) {
	rows := manyRows{size: 2, rows: [][3]int{{0, 5, 0}, {0, 5, 1}, {0, 7, 2}, {0, 5, 3}, {0, 7, 4}}}
	f := plan.Analytic{Aggregate: plan.Aggregate{Func: "sum", Args: []expr.Node{place{1, column.Bigint}}, Distinct: true, Type: column.Decimal}}
	n := f
	n.Func, n.Type = "count", column.Bigint
	got := windowTexts(t, rows, &plan.Window{Functions: []plan.Analytic{f, n}, Frame: plan.Frame{Rows: 2}}, 3, 4)
	want(t, got, "5 1", "5 1", "12 2", "12 2", "12 2")
	got = windowTexts(t, rows, &plan.Window{Functions: []plan.Analytic{f, n}}, 3, 4)
	want(t, got, "5 1", "5 1", "12 2", "12 2", "12 2")
	rows.rows = append(rows.rows, [3]int{1, 7, 5}) // another partition has seen nothing
	got = windowTexts(t, rows, &plan.Window{Partition: []expr.Node{place{0, column.Bigint}}, Functions: []plan.Analytic{f, n}}, 3, 4)
	want(t, got[5:], "7 1")
}

// given is an operator whose rows a test makes: a table of the columns of manyRows.
func windowTexts(t *testing.T, rows manyRows, w *plan.Window, columns ...int) (out []string) {
	t.Helper()
	x := &execution{Config: Config{Memory: NewMemory(0)}, env: &expr.Env{Zone: time.UTC}}
	for b, err := range x.windowOver(t.Context(), w, rows.stream()) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len {
			var cells []string
			for _, c := range columns {
				cells = append(cells, cell(b.Columns[c], i))
			}
			out = append(out, strings.Join(cells, " "))
		}
	}
	if used := x.Memory.Used(); used != 0 {
		t.Errorf("%d bytes were not given back", used)
	}
	return out
}

// naiveWindow computes sum, count, min, max, last minus first, lag and lead of each row from its frame alone.
func naiveWindow(rows [][3]int, size int, span int, offset int) (out []string) {
	for i, row := range rows {
		var frame []int
		for j := 0; j <= i; j++ {
			r := rows[j]
			if r[0] != row[0] || size > 0 && i-j >= size || span > 0 && r[2] <= row[2]-span {
				continue
			}
			frame = append(frame, r[1])
		}
		sum := 0
		for _, v := range frame {
			sum += v
		}
		delta := math.NaN()
		if len(frame) > 1 {
			delta = float64(frame[len(frame)-1] - frame[0])
		}
		near := func(j int) string {
			if j < 0 || j >= len(rows) || rows[j][0] != row[0] {
				return "-"
			}
			return fmt.Sprint(rows[j][1])
		}
		out = append(out, fmt.Sprint(sum, " ", len(frame), " ", slices.Min(frame), " ", slices.Max(frame), " ", number(delta), " ", near(i-offset), " ", near(i+offset)))
	}
	return out
}

func TestWindowAgreesWithNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	value := []expr.Node{place{1, column.Bigint}}
	aggregate := func(name string, of column.Type) plan.Analytic {
		return plan.Analytic{Aggregate: plan.Aggregate{Func: name, Args: value, Type: of}}
	}
	for n := range 300 {
		m := manyRows{size: 1 + r.IntN(40)}
		group, clock := 0, 0
		for range r.IntN(300) {
			if r.IntN(20) == 0 {
				group++
			}
			clock += r.IntN(5)
			m.rows = append(m.rows, [3]int{group, r.IntN(100) - 50, clock})
		}
		size, span, offset := 0, 0, r.IntN(60)
		switch r.IntN(3) {
		case 0:
			size = 1 + r.IntN(90)
		case 1:
			span = 1 + r.IntN(60)
		}
		w := &plan.Window{Partition: []expr.Node{place{0, column.Bigint}}, Time: place{2, column.Bigint}, Frame: plan.Frame{Rows: int64(size)}, Functions: []plan.Analytic{
			aggregate("sum", column.Decimal), aggregate("count", column.Bigint), aggregate("min", column.Decimal), aggregate("max", column.Decimal), aggregate("delta", column.Double),
			aggregate("lag", column.Bigint), aggregate("lead", column.Bigint)}}
		w.Functions[5].Offset, w.Functions[6].Offset = int64(offset), int64(offset)
		if span > 0 {
			w.Frame.Span = &dates.Interval{Count: int64(span), Unit: dates.Millisecond}
		}
		got := windowTexts(t, m, w, 3, 4, 5, 6, 7, 8, 9)
		if expected := naiveWindow(m.rows, size, span, offset); !slices.Equal(got, expected) {
			for i := range got {
				if got[i] != expected[i] {
					t.Fatalf("%d, frame of %d rows or %d ms, row %d: got %s, want %s", n, size, span, i, got[i], expected[i])
				}
			}
			t.Fatalf("%d: got %d rows, want %d", n, len(got), len(expected))
		}
	}
}

// A sum over a frame that slides has no rounding of values that have left it.
func TestWindowSumIsExact(t *testing.T) {
	var l loader
	for i, v := range []float64{1e18, 0.1, 0.2, 0.3, 0.4} {
		l.sample(key("m", "e"), at("10:00")+core.Time(i)*minute, v)
	}
	w := &plan.Window{In: scanOf("m"), Functions: []plan.Analytic{over("sum", column.Decimal), over("avg", column.Decimal)}, Frame: plan.Frame{Rows: 3}}
	got := run1(t, l.store(t), pick(w, furtherColumn, furtherColumn+1))
	want(t, got[3:], "0.6 0.2", "0.9 0.3")
}
