package sql_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/core/sql/format"
)

// hostileWorld has two metrics, m and n, with 20 entities of 1,000 samples, one a second, and an engine with 8 MiB for each query.
func hostileWorld(t testing.TB) *world {
	w := newWorld(t, openStorage)
	for e := range 20 {
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		for _, metric := range []string{"m", "n"} {
			s := b.Ref(core.SeriesKey{Metric: metric, Entity: fmt.Sprintf("e%d", e)})
			for i := range 1000 {
				b.Add(s, origin+core.Time(i)*1000, float64(i*31%997))
			}
		}
		if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	w.engine.Memory = 8 << 20
	return w
}

// rows runs a query and counts its rows.
func (w *world) rows(ctx context.Context, text string) (n int, err error) {
	err = w.engine.Run(ctx, sql.Request{Text: text, ID: "q", Origin: core.SystemOrigin(0)}, func(a *sql.Answer) error {
		for b, err := range a.Rows {
			if err != nil {
				return err
			}
			n += b.Len
		}
		return nil
	})
	return n, err
}

func list(n int, separator, form string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(form, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, separator)
}

// nested wraps a text n times.
func nested(n int, before, text, after string) string {
	return strings.Repeat(before, n) + text + strings.Repeat(after, n)
}

// What asks for more than there is ends with an error that names what to change, or is answered.
func TestHostileStatements(t *testing.T) {
	w := hostileWorld(t)
	for _, test := range []struct{ name, text, want string }{
		{"parentheses", "SELECT " + nested(400_000, "(", "1", ")"), "more than 500 levels of nesting"},
		{"length", "SELECT '" + strings.Repeat("x", 10<<20) + "'", "sql.length"},
		{"names", "SELECT " + strings.Repeat("a.", 500_000) + "a FROM m", "a name has more than 100 parts"},
		{"tables", "SELECT * FROM m " + list(20_000, " ", "JOIN m t#"), "more than 64 tables in FROM"},
		{"columns", "SELECT " + list(2000, ",", "value+#") + " FROM m LIMIT 3", ""},
		{"terms", "SELECT count(*) FROM m WHERE " + list(2000, " OR ", "value=#"), ""},
		{"list", "SELECT count(*) FROM m WHERE entity = 'e1' AND value IN (" + list(100_000, ",", "#") + ")", ""},
		{"keys", "SELECT value FROM m WHERE entity = 'e1' ORDER BY " + list(500, ",", "value+#"), ""},
		{"doubled text", "SELECT " + nested(28, "replace(", "'a'", ",'a','aa')"), "sql.memory"},
		{"doubled texts", "SELECT " + nested(24, "replace(", "entity", ",'e','ee')") + " FROM m", "sql.memory"},
		{"joined text", "SELECT length(concat(value, " + list(200, ",", "'"+strings.Repeat("x", 4000)+"'") + ", entity)) FROM m", "sql.memory"},
		{"date pattern", "SELECT date_format(time, '" + strings.Repeat("HH:mm:ss ", 20_000) + "') FROM m", "Invalid date pattern"},
		{"regular expression", "SELECT value FROM m WHERE entity REGEX '(" + strings.Repeat("[a-b][c-d]", 900) + "){1000}'", "it is too large"},
		{"periods", "SELECT count(*) FROM m WHERE time >= 0 AND time < 9000000000000 GROUP BY PERIOD(1 MILLISECOND, VALUE 0, EXTEND)", "sql.memory"},
		{"product", "SELECT count(*) FROM m t1 " + list(8, " ", "JOIN USING ENTITY m x#"), ""},
		{"offset", "SELECT value FROM m ORDER BY value LIMIT 9223372036854775807, 9223372036854775807", ""},
		{"lag", "SELECT lag(value, 4611686018427387904) FROM m", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.engine.Memory = 8 << 20
			if test.name == "list" { // of a hundred thousand numbers, each of which takes some hundred bytes
				w.engine.Memory = 64 << 20
			}
			_, err := w.rows(t.Context(), test.text)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %.200v, want one with %q", err, test.want)
			case err != nil && core.CodeOf(err) == core.Internal:
				t.Errorf("internal error: %v", err)
			}
		})
	}
}

// A key that all rows of two inputs share makes a product, which is charged.
func TestJoinProductIsBounded(t *testing.T) {
	w := newWorld(t, openStorage)
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for i := range 1500 {
		for _, metric := range []string{"m", "n"} {
			b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: "e", Tags: core.Tags{{Name: "t", Value: fmt.Sprint(i)}}}), origin, 1)
		}
	}
	if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	const query = "SELECT count(*) FROM m t1 JOIN USING ENTITY n t2" // 1,500 times 1,500 rows of one entity and time
	w.engine.Memory = 8 << 20
	if _, err := w.rows(t.Context(), query); err == nil || !strings.Contains(err.Error(), "sql.memory") {
		t.Errorf("error %v, want one with sql.memory", err)
	}
}

// A join of many tables shares the memory between them, whatever its scans put by.
func TestJoinOfManyTables(t *testing.T) {
	w := newWorld(t, openStorage)
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	query := "SELECT x0.value FROM x0"
	for i := range 64 {
		metric := fmt.Sprintf("x%d", i)
		for tag := range 2 {
			b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: "e", Tags: core.Tags{{Name: "t", Value: fmt.Sprint(tag)}}}), origin+core.Time(tag), 1)
		}
		if i > 0 {
			query += " JOIN " + metric
		}
	}
	if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.engine.Memory = 8 << 20
	if n, err := w.rows(t.Context(), query); n != 2 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A query of any kind ends soon after it is cancelled, and leaves nothing.
func TestCancelEveryOperator(t *testing.T) {
	w := hostileWorld(t)
	w.engine.Spill = 4 << 30
	long := "SELECT %s FROM m WHERE time >= 0 AND time < 1900000000000 %s WITH INTERPOLATE(1 MILLISECOND, LINEAR, OUTER, VALUE 0)"
	for name, query := range map[string]string{
		"interpolate":       fmt.Sprintf(long, "count(*)", ""),
		"group":             fmt.Sprintf(long, "value, count(*)", "GROUP BY value"),
		"sort":              fmt.Sprintf(long, "time, value", "") + " ORDER BY value",
		"distinct":          "SELECT DISTINCT value FROM (" + fmt.Sprintf(long, "value", "") + ")",
		"group in files":    fmt.Sprintf(long, "time, count(*)", "") + " GROUP BY time",
		"distinct in files": "SELECT DISTINCT time FROM (" + fmt.Sprintf(long, "time", "") + ")",
		"window":            "SELECT max(x) FROM (" + fmt.Sprintf(long, "lag(value, 10) AS x", "") + ")",
		"number":            fmt.Sprintf(long, "value", "") + ", ROW_NUMBER(value ORDER BY time DESC) > 3",
		"period":            "SELECT count(*) FROM (" + fmt.Sprintf(long, "time, value", "") + ") GROUP BY PERIOD(1 DAY)",
		"like":              "SELECT '" + strings.Repeat("a", 400_000) + "' LIKE '%" + strings.Repeat("_a", 200_000) + "b%'",
		"regex":             "SELECT '" + strings.Repeat("a", 400_000) + "' REGEX '(" + strings.Repeat("a?", 1000) + ")*b'",
	} {
		t.Run(name, func(t *testing.T) {
			w.engine.Memory = 64 << 20
			if strings.HasSuffix(name, "in files") {
				w.engine.Memory = 1 << 20
			}
			ended := make(chan error, 1)
			go func() {
				_, err := w.rows(context.WithoutCancel(t.Context()), query)
				ended <- err
			}()
			timer := time.NewTimer(150 * time.Millisecond) // it runs for long
			defer timer.Stop()
			select {
			case err := <-ended:
				t.Fatalf("it ended by itself: %.300v", err)
			case <-timer.C:
			}
			if stopped := w.engine.Cancel("q", core.Origin{User: "other"}); len(stopped) != 0 {
				t.Fatal("another user has stopped it")
			}
			at, used := time.Now(), selfmetrics.ProcessorTime()
			for len(w.engine.Cancel("q", core.SystemOrigin(0))) == 0 && time.Since(at) < time.Second {
				runtime.Gosched()
			}
			if err := <-ended; err == nil || err.Error() != "Query cancelled" {
				t.Fatalf("error %v", err)
			}
			if late := selfmetrics.ProcessorTime() - used; late > 2*time.Second { // 200 ms are meant; the race detector is slower
				t.Errorf("it took %s of processor time to end", late)
			}
		})
	}
}

// The query after sql.queries waits, can be cancelled while it does, and runs when another one ends.
func TestQueriesWait(t *testing.T) {
	w := hostileWorld(t)
	hold, held := make(chan struct{}), make(chan struct{}, 8)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := w.engine.Run(t.Context(), sql.Request{Text: "SELECT 1", Origin: core.SystemOrigin(0)}, func(*sql.Answer) error {
				held <- struct{}{}
				<-hold
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 8 {
		<-held
	}
	for range 2 {
		ended := make(chan error, 1)
		go func() {
			_, err := w.rows(context.WithoutCancel(t.Context()), "SELECT 1")
			ended <- err
		}()
		for len(w.engine.Cancel("q", core.SystemOrigin(0))) == 0 {
			runtime.Gosched()
		}
		if err := <-ended; err == nil || err.Error() != "Query cancelled" {
			t.Errorf("a waiting query that is cancelled: %v", err)
		}
	}
	close(hold)
	all.Wait()
	if n, err := w.rows(t.Context(), "SELECT 1"); n != 1 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A thousand queries, whole, cut short and failing, leave no goroutine, no file and no memory.
func TestNothingIsLeft(t *testing.T) {
	w := hostileWorld(t)
	w.engine.Memory = 96 << 10 // too little for sorting and grouping without files
	before := runtime.NumGoroutine()
	stop := errors.New("enough")
	for i := range 1000 {
		query := []string{"SELECT time, value FROM m WHERE entity IN ('e1', 'e2', 'e3') ORDER BY value", "SELECT value FROM m WHERE entity LIKE 'e1%' AND value > 500",
			"SELECT entity, percentile(50, value) FROM m WHERE entity = 'e4' GROUP BY entity, PERIOD(1 MINUTE)", "SELECT count(*) FROM m t1 JOIN n t2 WHERE t1.entity = 'e7'",
			"SELECT value FROM m WHERE entity = 'e5' WITH ROW_NUMBER(entity ORDER BY value) <= 3", "SELECT nothing FROM m",
			"SELECT value, count(*) FROM m WHERE entity IN ('e1', 'e2') GROUP BY value", "SELECT DISTINCT entity, value FROM m WHERE entity IN ('e1', 'e2')"}[i%8]
		_ = w.engine.Run(t.Context(), sql.Request{Text: query, Origin: core.SystemOrigin(0)}, func(a *sql.Answer) error {
			for range a.Rows {
				if i%4 == 0 {
					return stop
				}
			}
			return nil
		})
	}
	if files, err := os.ReadDir(w.engine.SpillDir); err != nil || len(files) > 0 {
		t.Errorf("files %v, %v", files, err)
	}
	for deadline := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > before+2 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+2 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// FuzzEngine runs statements made of pieces of the grammar on both stores: no panic, no internal error, batches that are sound, and one result.
func FuzzEngine(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	worlds := [...]*world{newWorld(f, openOracle), newWorld(f, openStorage)}
	for _, w := range worlds {
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		for _, metric := range []string{"m", "n"} {
			for _, s := range randomData(rand.New(rand.NewPCG(3, uint64(len(metric)))), "a-1", "a-2", "b-1") {
				b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: s.entity, Tags: core.TagsOf(s.tags)}), s.time, s.value)
			}
		}
		if _, err := w.pipe.Ingest(f.Context(), b); err != nil {
			f.Fatal(err)
		}
		w.engine.Time = 2 * time.Second
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		text := grammar{rand.New(rand.NewPCG(seed, 5))}.statement()
		var results [2]string
		for i, w := range worlds {
			results[i] = w.sound(t, text)
		}
		if results[0] != results[1] && !strings.Contains(text, "random") {
			t.Errorf("%s\noracle:\n%.2000s\nstorage:\n%.2000s", text, results[0], results[1])
		}
	})
}

// sound runs a statement, checks its batches and returns what it gives.
func (w *world) sound(t *testing.T, text string) string {
	var out []byte
	err := w.engine.Run(t.Context(), sql.Request{Text: text, Origin: core.SystemOrigin(0), Limit: 500}, func(a *sql.Answer) error {
		rows := format.NewRows(format.Options{Width: len(a.Columns)})
		for b, err := range a.Rows {
			if err != nil {
				return err
			}
			for i, v := range b.Columns {
				held := max(len(v.Ints), len(v.Floats), len(v.Strings), len(v.Values))
				if v.Len != b.Len || !v.Const && held > 0 && held < v.Len || v.Nulls != nil && !v.Const && len(v.Nulls) < v.Len {
					t.Errorf("%s: column %d of %d rows holds %d values and %d marks", text, i, b.Len, held, len(v.Nulls))
				}
			}
			out = rows.Append(out, b, 0, b.Len)
		}
		return nil
	})
	if err == nil {
		return string(out)
	}
	if code := core.CodeOf(err); code != core.Invalid && code != core.TooLarge {
		t.Errorf("%s: %v", text, err)
	}
	return "error: " + err.Error()
}

// grammar makes statements up.
type grammar struct{ *rand.Rand }

func (g grammar) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g grammar) value(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.pick("value", "time", "datetime", "entity", "tags.site", "tags", "text", "1", "0", "-2.5", "'a'", "NULL", "NaN", "metric", "entity.label")
	}
	x, y := g.value(depth-1), g.value(depth-1)
	return g.pick(x+" + "+y, x+" * "+y, x+" - "+y, x+" / "+y, x+" % "+y, "-("+x+")", "("+x+")", "abs("+x+")", "round("+x+", "+g.pick("0", "2", "-1", "400")+")",
		"concat("+x+", "+y+")", "substr("+x+", "+y+")", "replace("+x+", 'a', "+y+")", "upper("+x+")", "length("+x+")", "coalesce("+x+", "+y+")", "isnull("+x+", "+y+")",
		"CAST("+x+" AS string)", "CAST("+x+" AS number)", "CASE WHEN "+g.condition(depth-1)+" THEN "+x+" ELSE "+y+" END", "date_format("+x+", 'yyyy-MM-dd HH:mm')",
		"extract(day FROM "+x+")", "power("+x+", "+y+")", "floor("+x+")", "locate('1', "+x+")", "dateadd(HOUR, 1, time)", "lag("+x+")", "is_weekday("+x+", 'usa')")
}

func (g grammar) condition(depth int) string {
	x, y := g.value(max(depth, 0)), g.value(max(depth, 0))
	c := g.pick(x+" = "+y, x+" > "+y, x+" <= "+y, x+" <> "+y, x+" IS NULL", x+" IS NOT NULL", x+" LIKE '%a_1%'", x+" REGEX 'a.*'", x+" IN ("+y+", 1, 'a-1')", x+" BETWEEN 1 AND 5",
		"time >= '2024-03-04T10:10:00Z'", "time BETWEEN '2024-03-04T10:05:00Z' AND '2024-03-04T11:00:00Z'", "entity = 'a-1'", "entity LIKE 'a%'", "tags.site IS NULL", "NOT value > 3")
	if depth > 0 {
		return g.pick(c, c+" AND "+g.condition(depth-1), c+" OR "+g.condition(depth-1), "("+c+")")
	}
	return c
}

func (g grammar) statement() string {
	var s strings.Builder
	from := g.pick("m", "n", "m", "atsd_series", "m t1 JOIN n t2", "m t1 OUTER JOIN n t2", "m t1 JOIN USING ENTITY n t2", "(SELECT * FROM m)", "atsd_entity", "(SELECT entity, time, value FROM n WHERE value > 0)")
	grouped := g.IntN(2) == 0
	var items []string
	for range 1 + g.IntN(3) {
		if grouped {
			items = append(items, g.pick("count(*)", "entity", "datetime", g.pick("sum", "avg", "min", "max", "first", "last", "percentile", "delta", "counter", "median", "stddev", "wtavg", "count", "min_value_time")+"("+g.value(1)+")"))
		} else {
			items = append(items, g.pick(g.value(2), g.value(1), "*", "row_number()"))
		}
	}
	s.WriteString(g.pick("SELECT ", "SELECT ", "SELECT DISTINCT ") + strings.Join(items, ", ") + " FROM " + from)
	if g.IntN(2) == 0 {
		s.WriteString(" WHERE " + g.condition(1))
	}
	if g.IntN(5) == 0 {
		s.WriteString(" WITH INTERPOLATE(" + g.pick("1 MINUTE", "5 MINUTE, PREVIOUS", "1 HOUR, LINEAR, OUTER, EXTEND", "10 MINUTE, AUTO, INNER, VALUE 3", "DETAIL") + ")")
	}
	if grouped {
		s.WriteString(g.pick("", " GROUP BY entity", " GROUP BY entity, PERIOD(10 MINUTE)", " GROUP BY PERIOD(1 HOUR, VALUE 0)", " GROUP BY entity, tags, PERIOD(5 MINUTE, LINEAR, EXTEND)", " GROUP BY value", " GROUP BY "+g.value(1)))
		s.WriteString(g.pick("", "", " HAVING count(*) > 1"))
	} else if g.IntN(5) == 0 {
		s.WriteString(" WITH ROW_NUMBER(" + g.pick("entity", "entity, tags", "value") + " ORDER BY " + g.pick("time", "value DESC", "time DESC") + ") " + g.pick("<= 2", "> 1", "= 3"))
	}
	s.WriteString(g.pick("", " ORDER BY 1", " ORDER BY "+g.value(1)+g.pick("", " DESC")))
	s.WriteString(g.pick("", "", " LIMIT 5", " LIMIT 3, 4", " LIMIT 9 OFFSET 2"))
	return s.String()
}
