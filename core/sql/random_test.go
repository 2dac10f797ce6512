package sql_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/core/sql/format"
)

// TestRandomQueries compares queries made up at random with an evaluation that is slow and obvious: all samples in a list, loops, big numbers. TIDEMARK_SQL_ROUNDS
// says how many (2,000); a failure prints its seed and its query, and TIDEMARK_SQL_SEED runs that one alone.
func TestRandomQueries(t *testing.T) {
	rounds, first := setting(t, "TIDEMARK_SQL_ROUNDS", 2000), setting(t, "TIDEMARK_SQL_SEED", 0)
	if first > 0 {
		rounds = 1
	}
	const perWorld = 500
	for begin := 0; begin < rounds; begin += perWorld {
		t.Run(strconv.Itoa(begin), func(t *testing.T) {
			t.Parallel()
			seed := uint64(first)
			if first == 0 {
				seed = uint64(1 + begin)
			}
			data := randomData(rand.New(rand.NewPCG(7, (seed-1)/perWorld)), "a-1", "a-2", "b-1")
			worlds := [...]*world{newWorld(t, openOracle), newWorld(t, openStorage)}
			for _, w := range worlds {
				load(t, w, data)
			}
			for i := range uint64(min(perWorld, rounds-begin)) {
				r := rand.New(rand.NewPCG(seed+i, 1))
				q := randomQuery(r)
				want := q.evaluate(data)
				for n, w := range worlds {
					got := w.csv(t, q.text())
					if got != want {
						t.Fatalf("TIDEMARK_SQL_SEED=%d, store %d\n%s\ngot:\n%s\nwant:\n%s", seed+i, n, q.text(), got, want)
					}
				}
			}
		})
	}
}

// TestRandomQueriesInFiles does the same with so little memory that groups, DISTINCT and ORDER BY go to files.
func TestRandomQueriesInFiles(t *testing.T) {
	t.Parallel()
	var entities []string
	for i := range 60 {
		entities = append(entities, fmt.Sprintf("%c-%d", 'a'+i%3, i/3+1))
	}
	data := randomData(rand.New(rand.NewPCG(8, 1)), entities...)
	w := newWorld(t, openStorage)
	load(t, w, data)
	large := w.engine.Memory
	refused, rounds := 0, setting(t, "TIDEMARK_SQL_ROUNDS", 2000)/10
	for seed := range uint64(rounds) {
		q := randomQuery(rand.New(rand.NewPCG(seed, 2)))
		w.engine.Memory = 600 << 10 // of which the scan takes 512
		got, want := w.csv(t, q.text()), q.evaluate(data)
		if got != want && strings.Contains(got, "sql.memory") { // a group may need all of it
			refused++
			w.engine.Memory = large
			got = w.csv(t, q.text())
		}
		if got != want {
			t.Fatalf("seed %d\n%s\ngot:\n%s\nwant:\n%s", seed, q.text(), got, want)
		}
	}
	if refused > 3+rounds/20 { // how many depends on how the workers share the memory
		t.Errorf("%d of %d queries were refused", refused, rounds)
	}
}

func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// sample is a row of the only metric.
type sample struct {
	entity string
	tags   map[string]string
	time   core.Time
	value  float64
}

const origin = core.Time(1709546400000) // 2024-03-04T10:00:00Z

// randomData makes series of entities with and without tags, values of few decimals, some of them equal, some NaN.
func randomData(r *rand.Rand, entities ...string) (all []sample) {
	for _, entity := range entities {
		for range 1 + r.IntN(3) {
			tags := map[string]string{}
			if r.IntN(3) > 0 {
				tags["site"] = []string{"n", "s"}[r.IntN(2)]
			}
			if r.IntN(2) > 0 {
				tags["rack"] = []string{"1", "2", "10"}[r.IntN(3)]
			}
			if slices.ContainsFunc(all, func(s sample) bool { return s.entity == entity && tagText(s.tags) == tagText(tags) }) {
				continue
			}
			at := origin + core.Time(r.IntN(600))*1000
			for range 1 + r.IntN(40) {
				value := float64(r.IntN(2001)-1000) / []float64{1, 10, 100}[r.IntN(3)]
				if r.IntN(15) == 0 {
					value = math.NaN()
				}
				all = append(all, sample{entity, tags, at, value})
				at += core.Time(1+r.IntN(300)) * 1000
			}
		}
	}
	return all
}

func tagText(tags map[string]string) string {
	var parts []string
	for _, tag := range core.TagsOf(tags) {
		parts = append(parts, tag.Name+"="+tag.Value)
	}
	return strings.Join(parts, ";")
}

func load(t *testing.T, w *world, data []sample) {
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	b.Documents = append(b.Documents, core.DocChange{Kind: core.DocMetric, Key: "m", Op: core.DocPatch, Body: []byte(`{"dataType":"DOUBLE"}`)})
	for _, s := range data {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: s.entity, Tags: core.TagsOf(s.tags)}), s.time, s.value)
	}
	if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if f, ok := w.backend.(interface{ Compact(context.Context) error }); ok && len(data)%2 == 0 {
		if err := f.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) csv(t *testing.T, query string) string {
	var out []byte
	r := sql.Request{Text: query, Origin: core.SystemOrigin(0)}
	err := w.engine.Run(t.Context(), r, func(a *sql.Answer) error {
		rows := format.NewRows(format.Options{Width: len(a.Columns)})
		for b, err := range a.Rows {
			if err != nil {
				return err
			}
			out = rows.Append(out, b, 0, b.Len)
		}
		return nil
	})
	if err != nil {
		return "error: " + err.Error()
	}
	return string(out)
}

// query is a query as data, so that it can be written down and evaluated.
type query struct {
	filters    []condition
	from, to   core.Time // 0 = not given
	keys       []string  // entity, tags.site, tags.rack
	step       int64     // of the period in milliseconds; 0 = none
	stepText   string
	aggregates []string // none: a query of plain rows
	having     int      // least count of rows; 0 = no HAVING
	order      []orderKey
	skip, keep int // keep 0 = all
	distinct   bool
}

type condition struct {
	text string
	true func(s *sample) bool // NULL counts as false: conditions are joined by AND
}

type orderKey struct {
	column int
	desc   bool
}

var randomAggregates = []string{"count(*)", "count(value)", "sum(value)", "avg(value)", "min(value)", "max(value)", "first(value)", "last(value)", "min_value_time(value)", "max_value_time(value)",
	"sum(value * 2)", "max(value) - min(value)", "percentile(50, value)", "percentile(90, value)", "count(DISTINCT value)"}

func randomQuery(r *rand.Rand) query {
	var q query
	for range r.IntN(3) {
		q.filters = append(q.filters, randomCondition(r))
	}
	if r.IntN(2) == 0 {
		q.from = origin + core.Time(r.IntN(3000))*1000
	}
	if r.IntN(2) == 0 {
		q.to = max(q.from, origin) + core.Time(1+r.IntN(6000))*1000
	}
	if r.IntN(4) == 0 {
		q.distinct = r.IntN(3) == 0
		q.shape(r, 5)
		return q
	}
	for _, key := range []string{"entity", "tags.site", "tags.rack"} {
		if r.IntN(3) == 0 {
			q.keys = append(q.keys, key)
		}
	}
	if r.IntN(2) == 0 {
		i := r.IntN(5)
		q.step, q.stepText = []int64{60_000, 300_000, 900_000, 3_600_000, 1000}[i], []string{"1 MINUTE", "5 MINUTE", "15 MINUTE", "1 HOUR", "1 SECOND"}[i]
	}
	for range 1 + r.IntN(3) {
		q.aggregates = append(q.aggregates, randomAggregates[r.IntN(len(randomAggregates))])
	}
	if (len(q.keys) > 0 || q.step > 0) && r.IntN(4) == 0 {
		q.having = 2 + r.IntN(3)
	}
	q.shape(r, q.width())
	return q
}

// shape adds order and limit.
func (q *query) shape(r *rand.Rand, width int) {
	for range r.IntN(3) {
		q.order = append(q.order, orderKey{r.IntN(width), r.IntN(2) == 0})
	}
	if r.IntN(2) == 0 {
		q.keep, q.skip = 1+r.IntN(20), r.IntN(3)*r.IntN(10)
	}
}

func (q *query) width() int {
	n := len(q.keys) + len(q.aggregates)
	if q.step > 0 {
		n++
	}
	return n
}

func randomCondition(r *rand.Rand) condition {
	x := float64(r.IntN(1001)-500) / 10
	number := strconv.FormatFloat(x, 'f', -1, 64)
	switch r.IntN(9) {
	case 0:
		return condition{"value > " + number, func(s *sample) bool { return s.value > x }}
	case 1:
		return condition{"value <= " + number, func(s *sample) bool { return s.value <= x }}
	case 2:
		return condition{"entity = 'A-1'", func(s *sample) bool { return s.entity == "a-1" }}
	case 3:
		return condition{"entity IN ('a-2', 'b-1', 'none')", func(s *sample) bool { return s.entity == "a-2" || s.entity == "b-1" }}
	case 4:
		return condition{"entity LIKE 'a%'", func(s *sample) bool { return s.entity[0] == 'a' }}
	case 5:
		return condition{"tags.site = 'n'", func(s *sample) bool { return s.tags["site"] == "n" }}
	case 6:
		return condition{"tags.site IS NULL", func(s *sample) bool { return s.tags["site"] == "" }}
	case 7:
		return condition{"(tags.rack > 1 OR value < 0)", func(s *sample) bool { // a number: 10 is above 2
			n, err := strconv.Atoi(s.tags["rack"])
			return err == nil && n > 1 || s.value < 0
		}}
	}
	return condition{"NOT value BETWEEN -20 AND 20.5", func(s *sample) bool { return s.value < -20 || s.value > 20.5 }}
}

func (q *query) text() string {
	var items, where, group []string
	for _, f := range q.filters {
		where = append(where, f.text)
	}
	if q.from > 0 {
		where = append(where, fmt.Sprintf("datetime >= '%s'", dates.FormatISO(q.from)))
	}
	if q.to > 0 {
		where = append(where, fmt.Sprintf("time < %d", q.to))
	}
	group = append(group, q.keys...)
	items = append(items, q.keys...)
	if q.step > 0 {
		group, items = append(group, "PERIOD("+q.stepText+")"), append(items, "datetime")
	}
	items = append(items, q.aggregates...)
	if len(q.aggregates) == 0 {
		items = []string{"entity", "tags.site", "tags.rack", "datetime", "value"}
	}
	b := "SELECT "
	if q.distinct {
		b += "DISTINCT "
	}
	b += strings.Join(items, ", ") + " FROM m"
	if len(where) > 0 {
		b += " WHERE " + strings.Join(where, " AND ")
	}
	if len(group) > 0 {
		b += " GROUP BY " + strings.Join(group, ", ")
	}
	if q.having > 0 {
		b += fmt.Sprintf(" HAVING count(*) >= %d", q.having)
	}
	for i, o := range q.order {
		b += []string{" ORDER BY ", ", "}[min(i, 1)] + strconv.Itoa(o.column+1) + []string{"", " DESC"}[asInt(o.desc)]
	}
	if q.keep > 0 {
		b += fmt.Sprintf(" LIMIT %d OFFSET %d", q.keep, q.skip)
	}
	return b
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cell is a value of a result. It has the order of the dialect: NULL, numbers with NaN above all, texts.
type cell struct {
	null   bool
	text   string
	number float64
	kind   byte // n, t or d: a number, a text, a time
}

func (c cell) String() string {
	switch {
	case c.null:
		return ""
	case c.kind == 't':
		return `"` + c.text + `"`
	case c.kind == 'd':
		return `"` + dates.FormatISO(core.Time(c.number)) + `"`
	case math.IsNaN(c.number):
		return "NaN"
	}
	return strconv.FormatFloat(c.number, 'f', -1, 64)
}

func compareCells(a, b cell) int {
	switch {
	case a.null || b.null:
		return asInt(b.null)*-1 + asInt(a.null)*-1 + 2*asInt(b.null) // NULL lowest
	case a.kind == 't':
		return cmp.Compare(a.text, b.text)
	case math.IsNaN(a.number) || math.IsNaN(b.number):
		return asInt(math.IsNaN(a.number)) - asInt(math.IsNaN(b.number))
	}
	return cmp.Compare(a.number, b.number)
}

// evaluate is the meaning of the query.
func (q *query) evaluate(data []sample) string {
	var rows []sample
	for _, s := range data {
		keep := (q.from == 0 || s.time >= q.from) && (q.to == 0 || s.time < q.to)
		for _, f := range q.filters {
			keep = keep && f.true(&s)
		}
		if keep {
			rows = append(rows, s)
		}
	}
	slices.SortStableFunc(rows, func(a, b sample) int { // the natural order
		return cmp.Or(cmp.Compare(a.entity, b.entity), cmp.Compare(a.time, b.time), cmp.Compare(tagText(a.tags), tagText(b.tags)))
	})
	var table [][]cell
	if len(q.aggregates) == 0 {
		for _, s := range rows {
			table = append(table, []cell{{kind: 't', text: s.entity}, tagCell(s, "site"), tagCell(s, "rack"), {kind: 'd', number: float64(s.time)}, {kind: 'n', number: s.value}})
		}
	} else {
		table = q.grouped(rows)
	}
	if q.distinct {
		table = distinct(table)
	}
	slices.SortStableFunc(table, func(a, b []cell) int {
		for _, o := range q.order {
			c := compareCells(a[o.column], b[o.column])
			if o.desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	if q.keep > 0 {
		table = table[min(q.skip, len(table)):]
		table = table[:min(q.keep, len(table))]
	}
	var b strings.Builder
	for _, row := range table {
		for i, c := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(c.String())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func tagCell(s sample, name string) cell {
	v, ok := s.tags[name]
	return cell{null: !ok, kind: 't', text: v}
}

func distinct(table [][]cell) (out [][]cell) {
	seen := map[string]bool{}
	for _, row := range table {
		if key := fmt.Sprint(row); !seen[key] {
			seen[key] = true
			out = append(out, row)
		}
	}
	return out
}

// grouped makes a row of the samples with equal keys, in ascending order of the keys.
func (q *query) grouped(rows []sample) (table [][]cell) {
	type group struct {
		keys []cell
		rows []sample
	}
	groups := map[string]*group{}
	var order []*group
	for _, s := range rows {
		var keys []cell
		for _, k := range q.keys {
			if k == "entity" {
				keys = append(keys, cell{kind: 't', text: s.entity})
			} else {
				keys = append(keys, tagCell(s, strings.TrimPrefix(k, "tags.")))
			}
		}
		if q.step > 0 {
			keys = append(keys, cell{kind: 'd', number: float64(int64(s.time) / q.step * q.step)})
		}
		id := fmt.Sprint(keys)
		if groups[id] == nil {
			groups[id] = &group{keys: keys}
			order = append(order, groups[id])
		}
		groups[id].rows = append(groups[id].rows, s)
	}
	slices.SortStableFunc(order, func(a, b *group) int {
		for i := range a.keys {
			if c := compareCells(a.keys[i], b.keys[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	for _, g := range order {
		if len(g.rows) < q.having {
			continue
		}
		slices.SortStableFunc(g.rows, func(a, b sample) int { return cmp.Compare(a.time, b.time) })
		row := slices.Clone(g.keys)
		for _, a := range q.aggregates {
			row = append(row, aggregate(a, g.rows))
		}
		table = append(table, row)
	}
	return table
}

// aggregate computes in exact numbers and rounds once, at the end.
func aggregate(name string, rows []sample) cell {
	var usable []sample
	for _, s := range rows {
		if !math.IsNaN(s.value) {
			usable = append(usable, s)
		}
	}
	number := func(v float64) cell { return cell{kind: 'n', number: v} }
	if name == "count(*)" {
		return number(float64(len(rows)))
	}
	if name == "count(value)" {
		return number(float64(len(usable)))
	}
	values := map[float64]bool{}
	sum, lowest, highest := new(big.Rat), 0, 0
	for i, s := range usable {
		values[s.value] = true
		sum.Add(sum, exact(s.value))
		if s.value < usable[lowest].value {
			lowest = i
		}
		if s.value > usable[highest].value {
			highest = i
		}
	}
	if name == "count(DISTINCT value)" {
		return number(float64(len(values)))
	}
	n := len(usable)
	if n == 0 {
		return cell{null: true}
	}
	switch name {
	case "sum(value)":
		return number(nearest(sum))
	case "sum(value * 2)":
		return number(nearest(sum.Mul(sum, big.NewRat(2, 1))))
	case "avg(value)":
		return number(nearest(sum.Quo(sum, big.NewRat(int64(n), 1))))
	case "min(value)":
		return number(usable[lowest].value)
	case "max(value)":
		return number(usable[highest].value)
	case "first(value)":
		return number(usable[0].value)
	case "last(value)":
		return number(usable[n-1].value)
	case "min_value_time(value)":
		return number(float64(usable[lowest].time))
	case "max_value_time(value)":
		return number(float64(usable[highest].time))
	case "max(value) - min(value)":
		d := exact(usable[highest].value)
		return number(nearest(d.Sub(d, exact(usable[lowest].value))))
	case "percentile(50, value)":
		return number(percentile(50, usable))
	case "percentile(90, value)":
		return number(percentile(90, usable))
	}
	panic(name)
}

// exact is the number that the shortest text of a double says.
func exact(v float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'f', -1, 64))
	return r
}

func nearest(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// percentile is the method R6: position p/100 * (N+1) of the sorted values, linear between neighbours.
func percentile(p int64, rows []sample) float64 {
	values := make([]float64, len(rows))
	for i, s := range rows {
		values[i] = s.value
	}
	slices.Sort(values)
	position := big.NewRat(p*int64(len(values)+1), 100)
	whole := new(big.Int).Quo(position.Num(), position.Denom())
	k := int(whole.Int64())
	if k < 1 {
		return values[0]
	}
	if k >= len(values) {
		return values[len(values)-1]
	}
	rest := position.Sub(position, new(big.Rat).SetInt(whole))
	low, high := exact(values[k-1]), exact(values[k])
	return nearest(low.Add(low, rest.Mul(rest, high.Sub(high, exact(values[k-1])))))
}
