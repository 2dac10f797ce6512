package exec

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
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

// Parts between whose rows no others lie come out in the order of their rows, wherever they were kept.
func TestSortOfParts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	disk := 0 // runs of all rounds
	for round := range 200 {
		x := &execution{Config: Config{Memory: NewMemory([]int64{0, 20_000, 200_000}[round%3]), SpillDir: t.TempDir()}, env: &expr.Env{}, spill: &spillSpace{}}
		s := x.newSorter([]plan.Key{{Expr: place{0, column.Double}}}, 0)
		var want []float64
		for _, part := range r.Perm(1 + r.IntN(100)) {
			b := &column.Batch{Len: 1 + r.IntN(2*longPart)}
			for range 2 {
				b.Columns = append(b.Columns, &column.Vector{Type: column.Double, Len: b.Len})
			}
			for i := range b.Len {
				key := float64(part*1000 + i/2) // some are equal
				want = append(want, key+float64(i)/1000)
				b.Columns[0].Floats = append(b.Columns[0].Floats, key)
				b.Columns[1].Floats = append(b.Columns[1].Floats, key+float64(i)/1000)
			}
			if err := s.addPart(b); err != nil {
				t.Fatal(err)
			}
		}
		var got []float64
		for b, err := range s.rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Columns[1].Floats[:b.Len]...)
		}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
		onDisk := len(s.runs)
		s.close()
		disk += onDisk
		if x.Memory.Used() != 0 || len(x.spill.files) != len(x.spill.free) {
			t.Fatalf("round %d: %d bytes are held, and %d of %d files", round, x.Memory.Used(), len(x.spill.files)-len(x.spill.free), len(x.spill.files))
		}
		if round%3 == 0 && onDisk > 0 {
			t.Fatalf("round %d: %d runs on disk without a limit", round, onDisk)
		}
		x.spill.close()
	}
	if disk == 0 {
		t.Error("nothing was written to disk")
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
	for _, same := range [][2]*column.Vector{{double(0), double(math.Copysign(0, -1))}, {whole(7), double(7)}, {whole(-1 << 53), double(-1 << 53)},
		{whole(-1152921504606847000), double(-1 << 60)}} { // a double stands for its shortest text
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

// Many runs are merged in several passes, in the memory that there is: what of them is in memory counts.
func TestMergeInPasses(t *testing.T) {
	const n = 30_000
	l, rows := many(n)
	s := l.store(t)
	slices.SortStableFunc(rows, func(a, b string) int {
		x, _, _ := strings.Cut(a, " ")
		y, _, _ := strings.Cut(b, " ")
		return bytes.Compare(appendFloatKey(nil, column.ParseFloat(x)), appendFloatKey(nil, column.ParseFloat(y)))
	})
	x := &execution{Config: Config{Reader: s, Catalog: s, Metadata: s, Memory: NewMemory(200_000), SpillDir: t.TempDir()}, env: environment(s), spill: &spillSpace{}}
	defer x.spill.close()
	scan := scanOf("m")
	scan.Columns[plan.ScanTime].Type = column.Bigint
	sorting := x.newSorter([]plan.Key{{Expr: place{valueColumn, column.Double}}}, 0)
	for b, err := range x.scan(t.Context(), scan) {
		for part := range inSlices(b, 256) {
			if err == nil {
				err = sorting.add(part)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(sorting.runs) < 8 {
		t.Fatalf("%d runs are too few for this test", len(sorting.runs))
	}
	var got []string
	for b, err := range sorting.rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Memory.Used() == 0 {
			t.Fatal("what runs hold while they are merged is not counted")
		}
		for i := range b.Len {
			got = append(got, cell(b.Columns[valueColumn], i)+" "+cell(b.Columns[plan.ScanTime], i))
		}
	}
	want(t, got, rows...)
	if left := len(sorting.runs); left > 6 {
		t.Errorf("%d runs were merged at once in 200 KB", left)
	}
	if sorting.close(); x.Memory.Used() != 0 {
		t.Errorf("%d bytes were not given back", x.Memory.Used())
	}
}

// A sort that needs nearly all of the memory leaves some to the group above.
func TestSortLeavesMemory(t *testing.T) {
	l, _ := many(10_000)
	s := l.store(t)
	sorted := func() *plan.Sort { return sortBy(scanOf("m"), plan.Key{Expr: place{valueColumn, column.Double}}) }
	least := int64(sort.Search(8_000_000, func(limit int) bool { // in which it sorts without files
		_, err := tryRun(t.Context(), s, sorted(), func(c *Config) { c.Memory = NewMemory(int64(limit) + 1) })
		return err == nil
	})) + 1
	for more := range int64(20) {
		limit, dir := least+more*least/1000, t.TempDir()
		got, err := tryRun(t.Context(), s, groupBy(sorted(), []int{valueColumn}, "count"), func(c *Config) { c.Memory, c.SpillDir = NewMemory(limit), dir })
		if err != nil || len(got) != 50 {
			t.Fatalf("with %d bytes: %d groups, %v; want 50", limit, len(got), err)
		}
	}
}
