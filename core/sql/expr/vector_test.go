package expr_test

import (
	"archive/zip"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// table is a batch with columns of every kind, with what is special in each.
func table() *binder {
	object := column.NewBuilder(column.Object)
	for _, v := range []column.Value{column.TextValue("14"), column.FloatValue(column.Double, 14), column.NullValue, column.TimeValue(monday), column.BoolValue(true), column.FloatValue(column.Double, nan)} {
		object.Append(v)
	}
	b := &binder{columns: map[string]int{}}
	add := func(name string, v *column.Vector) {
		b.columns[name] = len(b.types)
		b.types = append(b.types, v.Type)
		v.Len = 6
		b.batch.Columns = append(b.batch.Columns, v)
	}
	add("f", &column.Vector{Type: column.Double, Floats: []float64{10, 14.5, nan, inf, -0.1, 0}})
	add("g", &column.Vector{Type: column.Float, Floats: []float64{1, 2, 3, 4, 5, 6}, Nulls: []bool{false, true, false, true, false, false}})
	add("i", &column.Vector{Type: column.Bigint, Ints: []int64{10, 20, 30, -40, math.MaxInt64, 0}})
	add("s", &column.Vector{Type: column.String, Strings: []string{"10", "10", "x", "", "B", "b"}, Nulls: []bool{false, false, false, false, false, true}})
	add("d", &column.Vector{Type: column.Timestamp, Ints: []int64{int64(monday), 0, -1, int64(monday), int64(monday), int64(monday)}})
	add("c", &column.Vector{Type: column.String, Const: true, Strings: []string{"const"}})
	add("z", &column.Vector{Type: column.String, Strings: []string{"Asia/Tokyo", "Asia/Tokyo", "", "UTC", "PST", ""}, Nulls: []bool{false, false, true, false, false, true}})
	add("groups", &column.Vector{Type: column.String, Strings: []string{"north;pumps", "pumps", "", "north", "northern", "a;north"}, Nulls: []bool{false, false, true, false, false, false}})
	add("o", object.Vector())
	add("n", &column.Vector{Type: column.Null})
	b.batch.Len = 6
	return b
}

// Expressions over columns of six rows.
func TestColumns(t *testing.T) {
	env := environment(t)
	for line := range strings.Lines(`
f > 5  => true true NULL true false false
5 < f  => true true NULL true false false
f = 14.5  => false true NULL false false false
f <> 10  => false true NULL true true true
f >= g  => true NULL NULL NULL false false
g < i  => true NULL true NULL true false
f + g  => 11 NULL NaN NULL 4.9 6
f * 3  => 30 43.5 NaN Infinity -0.3 0
i + 1  => 11 21 31 -39 9223372036854776000 1
i % 7  => 3 6 2 2 0 0
i - i  => 0 0 0 0 0 0
s + 1  => 11 11 NaN NaN NaN NULL
s = 10  => true true NULL NULL NULL NULL
s = '10'  => true true false false false NULL
s > 'A'  => false false true false true NULL
s IN ('10', 'B')  => true true false false true NULL
f IN (10, 14.5, NULL)  => true true NULL false false false
i IN (10, '20')  => true true false false false false
i IN (f, 20)  => true true false false false true
s IS NULL  => false false false false false true
f IS NOT NULL  => true true false true true true
f > 5 AND g > 2  => false NULL NULL NULL false false
f > 5 OR g > 2  => true true true true true true
f > 5 AND s = 'x'  => false false NULL false false false
f > 5 AND LOOKUP('codes', f) = 'peak'  => NULL NULL NULL NULL false false
i > 1000 AND LOOKUP('codes', s) = 'peak'  => false false false false NULL false
f > 1000000 AND LOOKUP('codes', i) = 'peak'  => false false NULL NULL false false
NOT f > 5  => false false NULL false true true
f BETWEEN 0 AND 14.5  => true true NULL false false true
f BETWEEN g AND 20  => true NULL NULL NULL false false
s LIKE '1%'  => true true false false false NULL
s LIKE s  => true true true true true NULL
c LIKE 'con%'  => true true true true true true
s REGEX '[a-z]|B'  => false false true false true NULL
CASE WHEN f > 5 THEN 'high' WHEN f IS NULL THEN 'none' ELSE s END  => high high none high B NULL
CASE WHEN f > 12 THEN f WHEN f > 5 THEN i END  => 10 14.5 NULL Infinity NULL NULL
CASE s WHEN 10 OR 'x' THEN i ELSE f END  => 10 20 30 Infinity -0.1 0
CASE WHEN i > 5 THEN d ELSE i END  => 2024-03-04T10:00:00.000Z 1970-01-01T00:00:00.000Z 1969-12-31T23:59:59.999Z -40 2024-03-04T10:00:00.000Z 0
CASE WHEN s = 'x' THEN LOOKUP('nosuch', NULL) ELSE 'ok' END  => ok ok NULL ok ok ok
CASE WHEN 1 = 1 THEN f END  => 10 14.5 NaN Infinity -0.1 0
ISNULL(g, f)  => 1 14.5 3 Infinity 5 6
ISNULL(f, g)  => 10 14.5 3 Infinity -0.1 0
ISNULL(s, f)  => 10 10 x  B 0
COALESCE(f, n, g)  => 10 14.5 3 Infinity -0.1 0
COALESCE(n, s)  => 10 10 x  B NULL
CAST(s AS NUMBER)  => 10 10 NaN NaN NaN NaN
CAST(f AS STRING)  => 10 14.5 NULL Infinity -0.1 0
CAST(g AS INTEGER)  => 1 NULL 3 NULL 5 6
CAST(i AS TIMESTAMP) = i  => true true true true true true
CAST(f AS TIMESTAMP)  => 1970-01-01T00:00:00.010Z 1970-01-01T00:00:00.014Z NULL 292278994-08-17T07:12:55.807Z 1970-01-01T00:00:00.000Z 1970-01-01T00:00:00.000Z
CONCAT(s, '-', f, '-', g)  => 10-10-1 10-14.5- x--3 -Infinity- B--0.1-5 -0-6
LENGTH(s)  => 2 2 1 0 1 0
UPPER(s)  => 10 10 X  B NULL
REPLACE(s, '1', g)  => 10 NULL x NULL B NULL
SQRT(s)  => 3.1622776601683795 3.1622776601683795 NaN NaN NaN NULL
ABS(i)  => 10 20 30 40 9223372036854776000 0
ROUND(f, 0)  => 10 15 NaN Infinity 0 0
POWER(g, 2)  => 1 NULL 9 NULL 25 36
date_format(d, 'HH:mm', z)  => 19:00 09:00 23:59 10:00 02:00 10:00
date_format(f, 'SSS')  => 010 014 NULL 807 000 000
HOUR(d, z)  => 19 9 23 10 2 10
ENDTIME('2024-03-04', z) / 3600000  => 474855 474855 474864 474864 474872 474864
DATEADD(HOUR, g, d) = d  => false NULL false NULL false false
d + 1000 > d  => true true true true true true
d > '2024-01-01'  => true false false true true true
d = s  => NULL NULL NULL NULL NULL NULL
o = 14  => true true NULL false NULL NULL
o = '14'  => true true NULL NULL false NULL
o = d  => NULL false NULL true NULL NULL
o + 1  => 15 15 NULL 1709546400001 NaN NaN
o IS NULL  => false false true false false true
o IN (14, 'true')  => true true NULL false true NULL
CONCAT(o, '')  => 14 14  2024-03-04T10:00:00.000Z true 
ISNULL(o, 'x')  => 14 14 x 2024-03-04T10:00:00.000Z true x
n = 1  => NULL NULL NULL NULL NULL NULL
n IS NULL  => true true true true true true
n + f  => NULL NULL NULL NULL NULL NULL
NOT n  => NULL NULL NULL NULL NULL NULL
n AND f > 5  => NULL NULL NULL NULL false false
f > 5 OR n  => true true NULL true NULL NULL
'north' IN groups  => true false false true false true
'north' NOT IN groups  => false true true false true false
LOOKUP('codes', f)  => NULL NULL NULL NULL NULL NULL
LOOKUP('codes', s)  => NULL NULL NULL NULL NULL NULL
-f  => -10 -14.5 NaN -Infinity 0.1 0
`) {
		text, want, ok := strings.Cut(strings.Trim(line, "\n"), "  =>")
		if !ok {
			continue
		}
		got, _, err := table().evaluate(t, env, text)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != strings.TrimPrefix(want, " ") {
			t.Errorf("%s is\n\t%s, want\n\t%s", text, got, strings.TrimPrefix(want, " "))
		}
	}
}

// What a batch with fewer rows, or none, leaves in the buffers must not show.
func TestBatchesOfAllSizes(t *testing.T) {
	env := environment(t)
	for _, text := range []string{"f + g > 3 AND s LIKE '1%'", "CASE WHEN f > 5 THEN s ELSE c END", "COALESCE(g, f, 1)", "CONCAT(s, f)", "date_format(d, 'HH', z)", "s IN ('10')", "LOOKUP('codes', i)", "i + 1", "c = 'const'"} {
		b := table()
		n, err := b.node(expression(t, text))
		if err != nil {
			t.Fatal(err)
		}
		all, err := n.Clone().Eval(env, &b.batch)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(show(all), " ")
		for _, span := range [][2]int{{0, 6}, {2, 5}, {5, 6}, {0, 0}, {1, 6}} {
			part := b.batch.Slice(span[0], span[1])
			got, err := n.Eval(env, part)
			if err != nil {
				t.Fatal(err)
			}
			if got.Len != part.Len || show(got) != strings.Join(want[span[0]:span[1]], " ") {
				t.Errorf("%s over rows %v is %s, want %s", text, span, show(got), want[span[0]:span[1]])
			}
		}
	}
}

// A right side that asks the database is evaluated on the rows that need it, and on those alone.
func TestOnlyUndecidedRowsAreReached(t *testing.T) {
	env := environment(t)
	asked := &world{}
	env.Facts = asked
	if _, _, err := table().evaluate(t, env, "i < 15 OR LOOKUP('codes', i) = 'x'"); err != nil {
		t.Fatal(err)
	}
	want := "codes/20 codes/30 codes/9223372036854775807"
	if got := strings.Join(asked.asked[:3], " "); got != want || len(asked.asked) != 9 { // evaluate runs it three times
		t.Errorf("asked for %s (%d), want %s", got, len(asked.asked), want)
	}
}

// Clones work at the same time over the same batch, each with memory of its own.
func TestClonesAreIndependent(t *testing.T) {
	env := environment(t)
	for _, text := range []string{"CASE WHEN f > 5 AND s LIKE '1%' THEN CONCAT(s, f) ELSE date_format(d, 'HH:mm', z) END", "s REGEX '[0-9]+' OR i IN (10, 20)", "COALESCE(g, f, 1) * 3 + i",
		"UPPER(s)", "IS_WORKDAY(d, 'demo', z) OR f > 1", "ISNULL(o, ROUND(f, 1))", "s IN collection('skip')", "ENDTIME(current_day, z)"} {
		b := table()
		b.batch = *b.batch.Slice(0, 6)
		if strings.HasPrefix(text, "IS_WORKDAY") {
			b.batch.Columns[b.columns["d"]] = column.Constant(column.TimeValue(monday), 6)
		}
		n, err := b.node(expression(t, text))
		if err != nil {
			t.Fatal(err)
		}
		v, err := n.Clone().Eval(env, &b.batch)
		if err != nil {
			t.Fatal(err)
		}
		want := show(v)
		var group sync.WaitGroup
		for range 4 {
			clone := n.Clone()
			group.Go(func() {
				for range 20 {
					v, err := clone.Eval(env, &b.batch)
					if err != nil || show(v) != want {
						t.Errorf("%s is %v, %v, want %s", text, v, err, want)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

func TestConstant(t *testing.T) {
	env := environment(t)
	for text, want := range map[string]string{"now - 1*day": "1709467200000", "1 + 1": "2", "date_format(0)": "1970-01-01T00:00:00.000Z", "f + 1": "", "random()": ""} {
		n, err := table().node(expression(t, text))
		if err != nil {
			t.Fatal(err)
		}
		v, ok, err := expr.Constant(n, env)
		if err != nil || ok != (want != "") || ok && v.Format() != want {
			t.Errorf("%s is %v %v %v, want %q", text, v, ok, err, want)
		}
	}
	n, _ := table().node(expression(t, "CASE WHEN f > 1 THEN CONCAT(s, i) END"))
	if got := expr.Columns(n); len(got) != 3 || got[0] != 0 || got[1] != 2 || got[2] != 3 {
		t.Errorf("columns are %v, want 0, 2 and 3", got)
	}
}

func TestOrderKey(t *testing.T) {
	b := table()
	n, err := b.node(expression(t, "COALESCE(f, n)"))
	if err != nil {
		t.Fatal(err)
	}
	shown, _ := n.Eval(nil, &b.batch)
	key, _ := expr.OrderKey(n).Eval(nil, &b.batch)
	if show(shown) != "10 14.5 NULL Infinity -0.1 0" || show(key) != "10 14.5 NaN Infinity -0.1 0" {
		t.Errorf("shown as %s, ordered as %s", show(shown), show(key))
	}
}

func TestBounds(t *testing.T) {
	for text, want := range map[string][2]float64{
		"f > 5": {5, inf}, "5 >= f": {-inf, 5}, "f = '7'": {7, 7}, "f <> 3": {-inf, inf}, "f BETWEEN 1 AND 2": {1, 2}, "f > 1 AND f < 9 AND s = 'x'": {1, 9},
		"f < 1 OR f = 5": {-inf, 5}, "f IN (3, 1, '8')": {1, 8}, "f > NaN": {inf, -inf}, "f BETWEEN 1 AND g": {1, inf},
		"f < 1 OR s = 'x'": {}, "NOT f > 1": {}, "g > 5": {}, "f + 1 > 5": {}, "f > g": {},
	} {
		n, err := table().node(expression(t, text))
		if err != nil {
			t.Fatal(err)
		}
		var low, high float64
		ok := false
		if b, is := n.(interface {
			Bounds(int) (float64, float64, bool)
		}); is {
			low, high, ok = b.Bounds(0)
		}
		if ok != (want != [2]float64{}) || ok && [2]float64{low, high} != want {
			t.Errorf("%s has bounds %v %v %v, want %v", text, low, high, ok, want)
		}
	}
}

// A condition that only asks for numbers within bounds says so, and is true of no others.
func TestBetweenBounds(t *testing.T) {
	for text, want := range map[string][2]float64{
		"f >= 5": {5, inf}, "f > 5": {math.Nextafter(5, 6), inf}, "5 > f": {-inf, math.Nextafter(5, 4)}, "f = '7'": {7, 7}, "f BETWEEN 1 AND 2": {1, 2},
		"f >= 1 AND f <= 9": {1, 9}, "f > 0": {5e-324, inf}, "f < 0 AND f > 1": {math.Nextafter(1, 2), -5e-324}, "f > NaN": {inf, -inf},
		"f BETWEEN 1 AND g": {}, "f <> 3": {}, "f >= 1 AND s = 'x'": {}, "f < 1 OR f = 5": {}, "f IN (3, 1)": {}, "NOT f > 1": {}, "g > 5": {},
	} {
		n, err := table().node(expression(t, text))
		if err != nil {
			t.Fatal(err)
		}
		var low, high float64
		ok := false
		if b, is := n.(interface {
			Between(int) (float64, float64, bool)
		}); is {
			low, high, ok = b.Between(0)
		}
		if ok != (want != [2]float64{}) || ok && [2]float64{low, high} != want {
			t.Errorf("%s is %v to %v %v, want %v", text, low, high, ok, want)
		}
	}
}

// Every zone of the database is found in small letters.
func TestZonesInAnyCase(t *testing.T) {
	archive, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skip("no zoneinfo.zip in this installation:", err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") || f.Name == "Factory" || strings.HasPrefix(f.Name, "posix") {
			continue
		}
		zone, err := expr.LoadZone(strings.ToLower(f.Name))
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if len(f.Name) > 5 && zone.String() != f.Name { // GMT+0 is UTC
			t.Errorf("%s is %s", f.Name, zone)
		}
	}
	for id, offset := range map[string]int{"PST": -8, "edt": -5, "UTC+3": 3, "GMT-8": -8, "+01:00": 1, "utc": 0, "z": 0, "gmt0": 0, "GMT+05:00": 5, "MSK": 3} {
		zone, err := expr.LoadZone(id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if _, seconds := time.UnixMilli(int64(monday)).In(zone).Zone(); seconds != offset*3600 {
			t.Errorf("%s is %d seconds from UTC", id, seconds)
		}
	}
	for _, id := range []string{"", "nowhere", "XYZ", "+25:00", "../etc", "Local"} {
		if _, err := expr.LoadZone(id); err == nil {
			t.Errorf("%q is a zone", id)
		}
	}
}

// What is printed for a run of instants is what is printed for each alone, across changes of the clocks.
func TestFormattedRuns(t *testing.T) {
	env := environment(t)
	for _, pattern := range []string{"yyyy-MM-dd", "HH", "HH:mm z", "HH:mm:ss", "iso", "yyyy-MM-dd''HH'sm'", "S", "a h"} {
		b := &binder{columns: map[string]int{"d": 0}, types: []column.Type{column.Bigint}}
		var times []int64
		for at := int64(1710000000000); at < 1710100000000; at += 777_777 {
			times = append(times, at, at+1, at+61_234)
		}
		times = append(times, 0, 1, 59_999, 60_000, -1, 86_400_000, 253402300799999, 253402300799999-61_000)
		b.batch = column.Batch{Len: len(times), Columns: []*column.Vector{{Type: column.Bigint, Len: len(times), Ints: times}}}
		text := "date_format(d, '" + strings.ReplaceAll(pattern, "'", "''") + "', 'America/New_York')"
		n, err := b.node(expression(t, text))
		if err != nil {
			t.Fatal(err)
		}
		v, err := n.Eval(env, &b.batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range times {
			want, _, err := constant(t, env, strings.Replace(text, "(d,", "("+strconv.FormatInt(times[i], 10)+",", 1))
			if got, _ := v.AsText(i); err != nil || got != want {
				t.Fatalf("%s of %d is %s, want %s, %v", pattern, times[i], got, want, err)
			}
		}
	}
}

func benchmarkNode(b *testing.B, name, text string) {
	values, times, names := make([]float64, column.Size), make([]int64, column.Size), make([]string, column.Size)
	for i := range values {
		values[i], times[i], names[i] = float64(i*7919%10_000)/100, int64(monday)+int64(i)*1000, "pump-"+strconv.Itoa(i%16)
	}
	n := column.Size
	bind := &binder{columns: map[string]int{"f": 0, "d": 1, "s": 2}, types: []column.Type{column.Double, column.Bigint, column.String}}
	bind.batch = column.Batch{Len: n, Columns: []*column.Vector{{Type: column.Double, Len: n, Floats: values}, {Type: column.Bigint, Len: n, Ints: times}, {Type: column.String, Len: n, Strings: names}}}
	node, err := bind.node(expression(b, text))
	if err != nil {
		b.Fatal(err)
	}
	env := environment(b)
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := node.Eval(env, &bind.batch); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
	})
}

func BenchmarkNodes(b *testing.B) {
	benchmarkNode(b, "compare", "f > 50")
	benchmarkNode(b, "between", "f BETWEEN 10 AND 50")
	benchmarkNode(b, "and", "f > 10 AND f < 50")
	benchmarkNode(b, "plus", "f + 0.1")
	benchmarkNode(b, "times", "f * 60")
	benchmarkNode(b, "divide", "f / 3")
	benchmarkNode(b, "text equal", "s = 'pump-3'")
	benchmarkNode(b, "like", "s LIKE '%-3'")
	benchmarkNode(b, "in texts", "s IN ('pump-1', 'pump-3')")
	benchmarkNode(b, "case", "CASE WHEN f > 50 THEN 'high' ELSE 'low' END")
	benchmarkNode(b, "date_format", "date_format(d, 'yyyy-MM-dd HH:mm')")
	benchmarkNode(b, "date_format iso", "date_format(d)")
	benchmarkNode(b, "hour", "hour(d)")
	benchmarkNode(b, "concat", "concat(s, '/', f)")
	benchmarkNode(b, "round", "round(f, 1)")
}
