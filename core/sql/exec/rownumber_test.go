package exec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

var (
	timePlace   = expr.Input(plan.ScanTime, column.Timestamp)
	entityPlace = expr.Input(plan.ScanEntity, column.String)
	tagsPlace   = expr.Input(plan.ScanTags, column.String)
	valuePlace  = expr.Input(valueColumn, column.Double)
)

// The columns that follow those of scanOf.
const (
	numberColumn = furtherColumn + iota
	rankColumn
	denseColumn
)

func partitioned(in plan.Operator, op string, number int64, partition []expr.Node, order ...plan.Key) *plan.RowNumber {
	return &plan.RowNumber{In: in, Partition: partition, Order: order, Op: op, Number: number}
}

// [A67]
func TestLatestOfEachSeries(t *testing.T) {
	r := partitioned(scanOf("level"), "<=", 1, []expr.Node{entityPlace, tagsPlace}, plan.Key{Expr: timePlace, Desc: true})
	want(t, run1(t, example(t), pick(r, plan.ScanEntity, plan.ScanTags, plan.ScanTime, valueColumn, numberColumn)),
		"pump-1 side=left;tank=B @10:05 65 1", "pump-1 tank=A @10:05 90 1", "valve-9 - @10:05 7 1")
}

// [A68]: ROUND(value / 10) of 10, 14, 20, 8 is 1, 1, 2, 1.
func TestRanks(t *testing.T) {
	tenth := function{column.Double, func(row func(int) column.Value) column.Value {
		return column.FloatValue(column.Double, math.Round(row(valueColumn).Float/10))
	}}
	r := partitioned(of("pump-1", scanOf("flow")), ">", 0, []expr.Node{entityPlace}, plan.Key{Expr: tenth, Desc: true})
	want(t, run1(t, example(t), pick(r, valueColumn, numberColumn, rankColumn, denseColumn)), "20 1 1 1", "10 2 2 2", "14 3 2 2", "8 4 2 2")
	r.Order[0].Desc = false // rank leaves gaps, dense_rank does not
	want(t, run1(t, example(t), pick(r, valueColumn, numberColumn, rankColumn, denseColumn)), "10 1 1 1", "14 2 1 1", "8 3 1 1", "20 4 4 2")
}

func TestRowNumberConditions(t *testing.T) {
	for _, c := range []struct {
		op     string
		number int64
		want   []string
	}{
		{"", 0, []string{"20 1", "14 2", "10 3", "8 4"}},
		{"<=", 2, []string{"20 1", "14 2"}},
		{"<", 2, []string{"20 1"}},
		{"=", 2, []string{"14 2"}},
		{">", 3, []string{"8 4"}},
		{">=", 3, []string{"10 3", "8 4"}},
		{"<=", 0, nil},
		{"<", math.MinInt64, nil},
		{"=", -1, nil},
		{">", -5, []string{"20 1", "14 2", "10 3", "8 4"}},
		{"<=", math.MaxInt64, []string{"20 1", "14 2", "10 3", "8 4"}},
	} {
		r := partitioned(of("pump-1", scanOf("flow")), c.op, c.number, []expr.Node{entityPlace}, plan.Key{Expr: valuePlace, Desc: true})
		got := run1(t, example(t), pick(r, valueColumn, numberColumn))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %d: got %v, want %v", c.op, c.number, got, c.want)
		}
	}
}

// Partitions ascend, NULL first; rows that tie stay in order of time, also downwards.
func TestPartitionOrder(t *testing.T) {
	for _, op := range []string{"", "<="} {
		r := partitioned(scanOf("level"), op, 10, []expr.Node{tagsPlace}, plan.Key{Expr: entityPlace, Desc: true})
		want(t, run1(t, example(t), pick(r, plan.ScanTags, plan.ScanTime, numberColumn)),
			"- @10:05 1", "side=left;tank=B @10:00 1", "side=left;tank=B @10:05 2", "tank=A @10:00 1", "tank=A @10:05 2")
	}
}

// NaN sorts above all numbers.
func TestRowNumberNaN(t *testing.T) {
	r := partitioned(of("pump-2", scanOf("flow")), "<=", 3, nil, plan.Key{Expr: valuePlace, Desc: true})
	want(t, run1(t, example(t), pick(r, valueColumn, numberColumn)), "NaN 1", "7.5 2", "3 3")
}

// table yields rows of a text and two numbers in batches of a size.
type manyRows struct {
	size int
	rows [][3]int // group, key, id
}

func (m manyRows) stream() stream {
	return func(yield func(*column.Batch, error) bool) {
		for part := range slices.Chunk(m.rows, m.size) {
			b := &column.Batch{Len: len(part)}
			for c := range 3 {
				v := &column.Vector{Type: column.Bigint, Len: len(part)}
				for _, row := range part {
					v.Ints = append(v.Ints, int64(row[c]))
				}
				b.Columns = append(b.Columns, v)
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// naiveNumbers sorts partitions stably and numbers their rows.
func naiveNumbers(rows [][3]int, desc bool, keep func(n int) bool) (out []string) {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b [3]int) int {
		c := cmp.Compare(a[1], b[1])
		if desc {
			c = -c
		}
		return cmp.Or(cmp.Compare(a[0], b[0]), c)
	})
	n := 0
	for i, row := range sorted {
		if n++; i > 0 && sorted[i-1][0] != row[0] {
			n = 1
		}
		if keep(n) {
			out = append(out, fmt.Sprint(row[0], row[1], row[2], n))
		}
	}
	return out
}

func TestRowNumberAgreesWithNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		m := manyRows{size: 1 + r.IntN(50)}
		groups, keys := 1+r.IntN(20), 1+r.IntN(30)
		for id := range r.IntN(400) {
			m.rows = append(m.rows, [3]int{r.IntN(groups), r.IntN(keys), id})
		}
		most, desc := 1+r.IntN(5), r.IntN(2) == 0
		op := &plan.RowNumber{Partition: []expr.Node{place{0, column.Bigint}}, Order: []plan.Key{{Expr: place{1, column.Bigint}, Desc: desc}}, Op: "<=", Number: int64(most)}
		keep := func(n int) bool { return n <= most }
		expected := naiveNumbers(m.rows, desc, keep)
		x := &execution{Config: Config{Memory: NewMemory(0)}}
		check := func(how string, s stream) {
			if got := texts4(t, s); !slices.Equal(got, expected) {
				t.Fatalf("%d, %s: got %v\nwant %v", n, how, got, expected)
			}
		}
		check("held", x.firstRows(t.Context(), op, m.stream()))
		check("sorted", x.numbered(op, x.sorted(t.Context(), partitionKeys(op), 0, m.stream())))
		if used := x.Memory.Used(); used != 0 {
			t.Fatalf("%d bytes were not given back", used)
		}
	}
}

func texts4(t *testing.T, s stream) (out []string) {
	t.Helper()
	for b, err := range s {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len {
			out = append(out, fmt.Sprint(b.Columns[0].Ints[i], b.Columns[1].Ints[i], b.Columns[2].Ints[i], b.Columns[3].Ints[i]))
		}
	}
	return out
}

// With too little memory for all partitions the rows go to disk; without a disk the error names the setting.
func TestRowNumberSpills(t *testing.T) {
	m := manyRows{size: 500}
	for id := range 20_000 {
		m.rows = append(m.rows, [3]int{id % 7000, id * 7919 % 1000, id})
	}
	op := &plan.RowNumber{Partition: []expr.Node{place{0, column.Bigint}}, Order: []plan.Key{{Expr: place{1, column.Bigint}}}, Op: "<=", Number: 1}
	expected := naiveNumbers(m.rows, false, func(n int) bool { return n == 1 })
	x := &execution{Config: Config{Memory: NewMemory(800_000), SpillDir: t.TempDir()}, spill: &spillSpace{}}
	defer x.spill.close()
	if got := texts4(t, x.firstRows(t.Context(), op, m.stream())); !slices.Equal(got, expected) {
		t.Fatalf("got %d rows, want %d", len(got), len(expected))
	}
	x = &execution{Config: Config{Memory: NewMemory(800_000)}}
	for _, err := range x.firstRows(context.Background(), op, m.stream()) {
		if core.CodeOf(err) != core.TooLarge {
			t.Errorf("got %v, want the limit of memory", err)
		}
		return
	}
	t.Error("no error")
}

// Where partitions begin with the entity the rows of a scan are sorted entity by entity, or not at all: the result is the same.
func TestPartitionsOfEntities(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 20 {
		_, scan, run := randomSeries(t, r)
		for _, c := range []struct {
			partition []expr.Node
			order     []plan.Key
		}{
			{[]expr.Node{entityPlace}, []plan.Key{{Expr: timePlace}}},
			{[]expr.Node{expr.Input(plan.ScanMetric, column.String), entityPlace}, nil},
			{[]expr.Node{entityPlace}, []plan.Key{{Expr: timePlace, Desc: true}}},
			{[]expr.Node{entityPlace, tagsPlace}, []plan.Key{{Expr: timePlace}}},
			{[]expr.Node{entityPlace}, []plan.Key{{Expr: valuePlace}, {Expr: tagsPlace, Desc: true}}},
		} {
			quick := partitioned(scan("a"), ">", 1, c.partition, c.order...)
			slow := *quick
			slow.In = &plan.Project{In: quick.In, Exprs: []expr.Node{timePlace, place{plan.ScanMetric, column.String}, entityPlace, tagsPlace, valuePlace, place{textColumn, column.String}}}
			want(t, run(quick), run(&slow)...)
		}
	}
}
