package exec

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// How rows fall into batches shows nowhere: not in the results of aggregates, nor in those of windows, whatever the type of the argument.

// oddValues are values of each type that vectors may hold in more than one way: with and without NULL, more digits than a double has, no numbers at all.
var oddValues = map[string]struct {
	of     column.Type
	values []column.Value
}{
	"boolean":      {column.Boolean, []column.Value{column.BoolValue(true), column.BoolValue(false)}},
	"boolean-null": {column.Boolean, []column.Value{column.BoolValue(true), column.BoolValue(false), column.NullValue}},
	"timestamp": {column.Timestamp, []column.Value{column.TimeValue(1709546400000), column.TimeValue(0), column.TimeValue(1<<53 + 1), column.TimeValue(1 << 53),
		column.NullValue}},
	"bigint": {column.Bigint, []column.Value{column.IntValue(column.Bigint, 7), column.IntValue(column.Bigint, 1<<53+1), column.IntValue(column.Bigint, 1<<53),
		column.IntValue(column.Bigint, -1<<63), column.NullValue}},
	"decimal": {column.Decimal, []column.Value{column.FloatValue(column.Decimal, 0.1),
		column.DecimalValue(column.Decimal, 0.1, decimalAt(1_000_000_000_000_000_001, -19)),
		column.DecimalValue(column.Decimal, 1<<53, decimalAt(1<<53+1, 0)), column.FloatValue(column.Decimal, nan), column.NullValue}},
	"text": {column.String, []column.Value{column.TextValue("12.5"), column.TextValue("9007199254740993"), column.TextValue("fault"), column.TextValue(""),
		column.NullValue}},
	"object": {column.Object, []column.Value{column.BoolValue(true), column.IntValue(column.Bigint, 1<<53+1), column.TextValue("3"), column.TimeValue(5),
		column.FloatValue(column.Double, 0.1), column.NullValue}},
}

func decimalAt(significand int64, exponent int32) core.Decimal {
	return core.Decimal{Significand: significand, Exponent: exponent}
}

// oddAggregates are all functions over column 1, those of pairs also over column 2; times are in column 0.
func oddAggregates(of column.Type) (list []plan.Aggregate) {
	edge := column.Decimal
	if of == column.Timestamp || of == column.Bigint {
		edge = of
	}
	for _, f := range []struct {
		name string
		of   column.Type
	}{
		{"count", column.Bigint}, {"sum", column.Decimal}, {"avg", column.Decimal}, {"min", edge}, {"max", edge}, {"first", edge}, {"last", edge},
		{"min_value_time", column.Bigint}, {"max_value_time", column.Bigint}, {"product", column.Double}, {"median", column.Decimal},
		{"percentile", column.Decimal}, {"median_abs_dev", column.Double},
		{"stddev", column.Decimal}, {"delta", column.Double}, {"counter", column.Double}, {"wavg", column.Double}, {"wtavg", column.Double}, {"correl", column.Double},
		{"covar", column.Double}, {"regr_slope", column.Double}, {"regr_intercept", column.Double},
	} {
		a := plan.Aggregate{Func: f.name, Type: f.of, Percent: 30, Factor: 0.5, Time: place{0, column.Timestamp}, Args: []expr.Node{place{1, of}}}
		switch f.name {
		case "correl", "covar", "regr_slope", "regr_intercept":
			a.Args = append(a.Args, place{2, of})
		case "count", "sum", "avg":
			distinct := a
			distinct.Distinct = true
			list = append(list, distinct)
		}
		list = append(list, a)
	}
	return list
}

// oddRows returns rows of which x and y are picked from values.
func oddRows(r *rand.Rand, values []column.Value) (rows [][3]column.Value) {
	for i := range 1 + r.IntN(12) {
		rows = append(rows, [3]column.Value{column.TimeValue(at("10:00") + core.Time(i)*1000), values[r.IntN(len(values))], values[r.IntN(len(values))]})
	}
	return rows
}

// inBatches yields rows in batches of the given lengths, repeated. A column of equal values is Const.
func inBatches(of column.Type, rows [][3]column.Value, lengths ...int) stream {
	return func(yield func(*column.Batch, error) bool) {
		for n := 0; len(rows) > 0; n++ {
			part := rows[:min(len(rows), lengths[n%len(lengths)])]
			rows = rows[len(part):]
			b := &column.Batch{Len: len(part)}
			for c, of := range []column.Type{column.Timestamp, of, of} {
				same, builder := len(part) > 1, column.NewBuilder(of)
				for _, row := range part {
					builder.Append(row[c])
					same = same && row[c] == part[0][c]
				}
				v := builder.Vector()
				if same && of != column.Object && !part[0][c].IsNull() {
					v = column.Constant(part[0][c], len(part))
				}
				b.Columns = append(b.Columns, v)
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

var batchLengths = [][]int{{1}, {2}, {1, 3}, {4, 1, 2}}

func TestAggregatesOfBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	for _, name := range slices.Sorted(maps.Keys(oddValues)) {
		odd := oddValues[name]
		functions := oddAggregates(odd.of)
		for range 60 {
			rows := oddRows(r, odd.values)
			whole := aggregatesOf(t, functions, inBatches(odd.of, rows, len(rows)))
			for _, lengths := range batchLengths {
				for i, got := range aggregatesOf(t, functions, inBatches(odd.of, rows, lengths...)) {
					if got != whole[i] {
						t.Fatalf("%s of %s, distinct %t: %v in batches of %v rows, %v in one\n%v", functions[i].Func, name, functions[i].Distinct, got, lengths, whole[i], rows)
					}
				}
			}
			from := len(rows) / 3
			first, second := statesOf(t, functions, inBatches(odd.of, rows[:from], from)), statesOf(t, functions, inBatches(odd.of, rows[from:], len(rows)-from))
			if err := first.merge([]int32{0}, second); err != nil {
				t.Fatal(err)
			}
			for i, v := range first.columns([]int32{0}, nil) {
				f := functions[i]
				rounds := f.Func == "product" || f.Func == "stddev" || len(f.Args) > 1 // the last digit depends on the order
				if !rounds && !f.Distinct && cell(v, 0) != whole[i] {
					t.Fatalf("%s of %s: %v of two states, %v of one\n%v", f.Func, name, cell(v, 0), whole[i], rows)
				}
			}
		}
	}
}

// statesOf adds rows to one group.
func statesOf(t *testing.T, functions []plan.Aggregate, in stream) *aggregates {
	t.Helper()
	g, err := bare().newAggregates(functions)
	if err == nil {
		err = g.resize(1)
	}
	for b, e := range in {
		if err == nil {
			err = e
		}
		if err == nil {
			err = g.add(make([]int32, b.Len), b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func aggregatesOf(t *testing.T, functions []plan.Aggregate, in stream) (cells []string) {
	t.Helper()
	for _, v := range statesOf(t, functions, in).columns([]int32{0}, nil) {
		cells = append(cells, cell(v, 0))
	}
	return cells
}

func TestWindowsOfBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	frames := []plan.Frame{{}, {Rows: 3}, {Span: &dates.Interval{Count: 2, Unit: dates.Second}}}
	for _, name := range slices.Sorted(maps.Keys(oddValues)) {
		odd := oddValues[name]
		functions := []plan.Analytic{{Aggregate: plan.Aggregate{Func: "ema", Type: column.Double, Factor: 0.5, Args: []expr.Node{place{1, odd.of}}}}}
		for _, f := range oddAggregates(odd.of) {
			if !slices.Contains([]string{"min_value_time", "max_value_time", "median", "percentile", "median_abs_dev"}, f.Func) {
				functions = append(functions, plan.Analytic{Aggregate: f})
			}
		}
		for _, f := range []string{"lag", "lead", "first_value"} {
			functions = append(functions, plan.Analytic{Aggregate: plan.Aggregate{Func: f, Type: odd.of, Args: []expr.Node{place{1, odd.of}}}, Offset: 2})
		}
		for round := range 60 {
			rows := oddRows(r, odd.values)
			op := &plan.Window{Functions: functions, Time: place{0, column.Timestamp}, Frame: frames[round%len(frames)]}
			whole := windowsOf(t, op, inBatches(odd.of, rows, len(rows)))
			for _, lengths := range batchLengths {
				for i, got := range windowsOf(t, op, inBatches(odd.of, rows, lengths...)) {
					f := functions[i%len(functions)]
					if got != whole[i] {
						t.Fatalf("%s of %s, distinct %t, row %d: %v in batches of %v rows, %v in one\n%v", f.Func, name, f.Distinct, i/len(functions), got, lengths, whole[i], rows)
					}
				}
			}
		}
	}
}

// windowsOf returns the values of all functions, row by row.
func windowsOf(t *testing.T, op *plan.Window, in stream) (cells []string) {
	t.Helper()
	for b, err := range bare().windowOver(t.Context(), op, in) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len {
			for _, v := range b.Columns[3:] {
				cells = append(cells, cell(v, i))
			}
		}
	}
	return cells
}

// A boolean is no number: functions of numbers skip it, COUNT does not.
func TestAggregatesOfBooleans(t *testing.T) {
	rows := [][3]column.Value{}
	for i := range 3 {
		rows = append(rows, [3]column.Value{column.TimeValue(core.Time(i)), column.BoolValue(i > 0), column.BoolValue(true)})
	}
	var got []string
	functions := oddAggregates(column.Boolean)
	for i, c := range aggregatesOf(t, functions, inBatches(column.Boolean, rows, len(rows))) {
		if f := functions[i]; f.Func == "count" {
			got = append(got, fmt.Sprintf("count %t %s", f.Distinct, c))
		} else if empty := map[column.Type]string{column.Double: "NaN"}[f.Type]; c != empty && c != "-" {
			t.Errorf("%s of booleans is %s", f.Func, c)
		}
	}
	want(t, got, "count true 2", "count false 3")
}
