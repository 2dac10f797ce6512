package exec

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

func sortBy(in plan.Operator, keys ...plan.Key) *plan.Sort { return &plan.Sort{In: in, Keys: keys} }

func TestSort(t *testing.T) {
	s := example(t)
	byValue := plan.Key{Expr: place{valueColumn, column.Double}}
	want(t, run1(t, s, pick(sortBy(scanOf("flow"), byValue), valueColumn)), "3", "7.5", "8", "10", "14", "20", "NaN")
	byText := plan.Key{Expr: place{textColumn, column.String}, Desc: true}
	// Stable over the natural order, downwards too; NULL is lowest.
	want(t, run1(t, s, pick(sortBy(scanOf("flow"), byText), valueColumn)), "NaN", "10", "14", "20", "8", "3", "7.5")
	byEntity := plan.Key{Expr: place{plan.ScanEntity, column.String}, Desc: true}
	want(t, run1(t, s, pick(sortBy(scanOf("level"), byEntity, byValue), valueColumn)), "7", "55", "65", "90", "100")
	top := sortBy(scanOf("flow"), byValue)
	top.Keep = 3
	want(t, run1(t, s, pick(top, valueColumn)), "3", "7.5", "8")
}

// many is n rows of a value with few different ones, a text and the place of the row.
func many(n int) (*loader, []string) {
	var l loader
	r := rand.New(rand.NewPCG(1, 2))
	var rows []string
	for i := range n {
		v := float64(r.IntN(50)) / 4
		var texts []string
		if i%50 == 0 { // the oracle looks for the text of a sample from the first on
			texts = append(texts, strings.Repeat("x", r.IntN(20)))
		}
		l.sample(key("m", "a"), core.Time(i), v, texts...)
		rows = append(rows, fmt.Sprintf("%s %d", column.FloatValue(column.Double, v).Format(), i))
	}
	return &l, rows
}

// Rows that exceed the memory are sorted on disk; nothing of it is left.
func TestSortOnDisk(t *testing.T) {
	const n = 20_000
	l, rows := many(n)
	s := l.store(t)
	slices.SortStableFunc(rows, func(a, b string) int {
		x, _, _ := strings.Cut(a, " ")
		y, _, _ := strings.Cut(b, " ")
		return bytes.Compare(appendFloatKey(nil, column.ParseFloat(y)), appendFloatKey(nil, column.ParseFloat(x)))
	})
	dir := t.TempDir()
	small := func(c *Config) { c.Memory, c.SpillDir = NewMemory(600_000), dir }
	order := sortBy(scanOf("m"), plan.Key{Expr: place{valueColumn, column.Double}, Desc: true})
	order.In.(*plan.Scan).Columns[plan.ScanTime].Type = column.Bigint
	want(t, run1(t, s, pick(order, valueColumn, plan.ScanTime), small), rows...)
	order.Keep = 7000
	want(t, run1(t, s, pick(order, valueColumn, plan.ScanTime), small), rows[:7000]...)
	order.Keep = 0
	if got := run1(t, s, &plan.Limit{In: order, Count: 5}, small); len(got) != 5 {
		t.Errorf("%d rows, want 5", len(got))
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
	for setting, change := range map[string]func(*Config){
		"sql.memory": func(c *Config) { c.Memory = NewMemory(600_000) },
		"sql.spill":  func(c *Config) { c.Memory, c.SpillDir, c.Spill = NewMemory(600_000), dir, 100_000 },
	} {
		if _, err := tryRun(t.Context(), s, order, change); core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), setting) {
			t.Errorf("error is %v, want one that names %s", err, setting)
		}
	}
}

// The first rows need no more memory than they take.
func TestTopInLittleMemory(t *testing.T) {
	l, rows := many(30_000)
	slices.SortStableFunc(rows, func(a, b string) int {
		x, _, _ := strings.Cut(a, " ")
		y, _, _ := strings.Cut(b, " ")
		return bytes.Compare(appendFloatKey(nil, column.ParseFloat(x)), appendFloatKey(nil, column.ParseFloat(y)))
	})
	top := sortBy(scanOf("m"), plan.Key{Expr: place{valueColumn, column.Double}})
	top.In.(*plan.Scan).Columns[plan.ScanTime].Type = column.Bigint
	top.Keep = 10
	want(t, run1(t, l.store(t), pick(top, valueColumn, plan.ScanTime), func(c *Config) { c.Memory = NewMemory(1 << 20) }), rows[:10]...)
}

// The series of an entity are merged on disk where memory is short.
func TestMergeOnDisk(t *testing.T) {
	var l loader
	var rows []string
	for i := range 8000 {
		l.sample(key("m", "a", "x", fmt.Sprint(i%3)), core.Time(i/2), float64(i))
	}
	for i := range 8000 {
		rows = append(rows, fmt.Sprintf("%d %d", i/2, i%3))
	}
	slices.SortStableFunc(rows, func(a, b string) int {
		var x, y [2]int
		fmt.Sscan(a, &x[0], &x[1])
		fmt.Sscan(b, &y[0], &y[1])
		return slices.Compare(x[:], y[:])
	})
	scan := scanOf("m")
	scan.Columns[plan.ScanTime].Type = column.Bigint
	tag := more(scan, plan.SourceTag, "x", column.String)
	dir := t.TempDir()
	want(t, run1(t, l.store(t), pick(scan, plan.ScanTime, tag), func(c *Config) { c.Memory, c.SpillDir = NewMemory(400_000), dir }), rows...)
	want(t, run1(t, l.store(t), pick(scan, plan.ScanTime, tag)), rows...)
}

// Keys sort as SQL does.
func TestKeys(t *testing.T) {
	double := func(f float64) *column.Vector { return column.Constant(column.FloatValue(column.Double, f), 1) }
	whole := func(n int64) *column.Vector { return column.Constant(column.IntValue(column.Bigint, n), 1) }
	text := func(s string) *column.Vector { return column.Constant(column.TextValue(s), 1) }
	null := column.Constant(column.NullValue, 1)
	ascending := []*column.Vector{null, column.Constant(column.BoolValue(false), 1), column.Constant(column.BoolValue(true), 1), double(math.Inf(-1)), whole(math.MinInt64),
		whole(math.MinInt64 + 1), double(-1.5), whole(-1), double(-1e-300), double(0), double(5e-324), whole(1), double(1.5), whole(1<<53 - 1), whole(1 << 53), whole(1<<53 + 1),
		whole(math.MaxInt64 - 1), whole(math.MaxInt64), double(1 << 63), double(math.Inf(1)), double(math.NaN()), text(""), text("\x00"), text("\x00a"), text("A"), text("AB"),
		text("a"), text("é")}
	for i := range ascending[1:] {
		a, b := ascending[i], ascending[i+1]
		if bytes.Compare(appendKey(nil, a, 0), appendKey(nil, b, 0)) >= 0 {
			t.Errorf("%v does not sort before %v", a.Value(0), b.Value(0))
		}
		if bytes.Compare(appendDescKey(nil, a, 0), appendDescKey(nil, b, 0)) <= 0 {
			t.Errorf("%v does not sort after %v downwards", a.Value(0), b.Value(0))
		}
		if bytes.HasPrefix(appendKey(nil, b, 0), appendKey(nil, a, 0)) {
			t.Errorf("the key of %v begins with that of %v", b.Value(0), a.Value(0))
		}
	}
	for _, same := range [][2]*column.Vector{{double(0), double(math.Copysign(0, -1))}, {whole(7), double(7)}, {whole(-1 << 60), double(-1 << 60)}} {
		if !bytes.Equal(appendKey(nil, same[0], 0), appendKey(nil, same[1], 0)) {
			t.Errorf("%v and %v have different keys", same[0].Value(0), same[1].Value(0))
		}
	}
}

// Keys give the order of comparisons.
func FuzzKey(f *testing.F) {
	f.Add("a", "a\x00", 1.5, int64(1))
	f.Add("", "\x00\xff", float64(1<<63), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b string, number float64, whole int64) {
		pairs := [][2]column.Value{{column.TextValue(a), column.TextValue(b)}, {column.FloatValue(column.Double, number), column.IntValue(column.Bigint, whole)}}
		for _, p := range pairs {
			x, y := column.Constant(p[0], 1), column.Constant(p[1], 1)
			if got, want := bytes.Compare(appendKey(nil, x, 0), appendKey(nil, y, 0)), column.CompareValues(p[0], p[1]); got != want {
				t.Errorf("%v against %v: keys %d, values %d", p[0], p[1], got, want)
			}
		}
	})
}

// What is written to a run comes back.
func FuzzRun(f *testing.F) {
	f.Add([]byte("some rows"), int64(7))
	f.Add([]byte{0, 1, 255, 3}, int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, seed int64) {
		values := column.NewBuilder(column.Object)
		numbers, texts := column.NewBuilder(column.Double), column.NewBuilder(column.String)
		for i, c := range data {
			switch c % 4 {
			case 0:
				values.AppendNull()
				numbers.AppendNull()
				texts.AppendNull()
				continue
			case 1:
				values.Append(column.IntValue(column.Bigint, seed+int64(c)))
			case 2:
				values.Append(column.FloatValue(column.Double, float64(seed)/float64(i+1)))
			case 3:
				values.Append(column.TextValue(string(data[:i])))
			}
			numbers.AppendFloat(float64(seed) / float64(c))
			texts.AppendText(string(data[i:]))
		}
		b := &column.Batch{Len: len(data), Columns: []*column.Vector{values.Vector(), numbers.Vector(), texts.Vector()}}
		var space spillSpace
		defer space.close()
		r, err := space.create(t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		keys := make([][]byte, b.Len)
		if err := r.write(keys, b); err != nil {
			t.Fatal(err)
		}
		if err := r.rewind(); err != nil {
			t.Fatal(err)
		}
		if err := r.next(); err != nil {
			t.Fatal(err)
		}
		for j, v := range b.Columns {
			for i := range b.Len {
				if x, y := v.Value(i), r.batch.Columns[j].Value(i); x != y && !(x.IsNaN() && y.IsNaN()) {
					t.Fatalf("column %d row %d: %v, was %v", j, i, y, x)
				}
			}
		}
	})
}
