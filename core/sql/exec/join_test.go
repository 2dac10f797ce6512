package exec

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// joinOf joins scans of the columns of scanOf by time, entity and tags.
func joinOf(outer bool, ops ...plan.Operator) *plan.Join {
	j := &plan.Join{}
	for _, op := range ops {
		width := furtherColumn
		if s, ok := op.(*plan.Scan); ok {
			width = len(s.Columns)
		}
		j.Inputs = append(j.Inputs, plan.JoinInput{In: op, Width: width, Time: plan.ScanTime, Entity: plan.ScanEntity, Tags: plan.ScanTags,
			Value: valueColumn, Text: textColumn, Outer: outer, UseEntity: true, UseTags: true})
	}
	j.Inputs[0].Outer = false
	return j
}

// usingEntity ignores the tags.
func usingEntity(j *plan.Join) *plan.Join {
	for i := range j.Inputs {
		j.Inputs[i].UseTags = false
	}
	return j
}

// Columns of input n of joinOf, and those that follow two inputs.
func inputColumn(n, column int) int { return n*furtherColumn + column }

const coalescedOfTwo = 2 * furtherColumn

func TestJoinInner(t *testing.T) {
	// [A83]
	j := joinOf(false, of("pump-1", scanOf("flow")), of("pump-1", scanOf("temp")))
	want(t, run1(t, example(t), pick(j, inputColumn(0, plan.ScanEntity), inputColumn(0, plan.ScanTime), inputColumn(0, valueColumn), inputColumn(1, valueColumn))),
		"pump-1 @10:00 10 21.5", "pump-1 @10:05 20 22")
	// [A89]
	j = joinOf(false, of("pump-2", scanOf("flow")), of("pump-2", scanOf("temp")))
	want(t, run1(t, example(t), j), "@10:00 flow pump-2 - 3 - @10:00 temp pump-2 - 30 - 1709546400000 pump-2 -")
	// All entities: pump-1 before pump-2.
	j = joinOf(false, scanOf("flow"), scanOf("temp"))
	want(t, run1(t, example(t), pick(j, coalescedOfTwo+joinedEntity, inputColumn(0, plan.ScanTime), inputColumn(1, valueColumn))),
		"pump-1 @10:00 21.5", "pump-1 @10:05 22", "pump-2 @10:00 30")
}

func TestJoinOuter(t *testing.T) {
	// [A84]
	j := joinOf(true, of("pump-1", scanOf("flow")), of("pump-1", scanOf("temp")))
	want(t, run1(t, example(t), pick(j, coalescedOfTwo+joinedTime, inputColumn(0, valueColumn), inputColumn(1, valueColumn))),
		"1709546400000 10 21.5", "1709546520000 14 -", "1709546700000 20 22", "1709547000000 - 23", "1709547060000 8 -")
	// A side without any row is NULL, and typed.
	j = joinOf(true, of("pump-2", scanOf("temp")), of("pump-2", scanOf("level")))
	want(t, run1(t, example(t), j), "@10:00 temp pump-2 - 30 - - - - - - - 1709546400000 pump-2 -")
}

func TestJoinTags(t *testing.T) {
	// [A85]: rows of several series of an entity are ordered by their tags.
	j := usingEntity(joinOf(false, of("pump-1", scanOf("temp")), of("pump-1", scanOf("level"))))
	want(t, run1(t, example(t), pick(j, inputColumn(0, plan.ScanTime), inputColumn(0, valueColumn), inputColumn(1, valueColumn), inputColumn(1, plan.ScanTags))),
		"@10:00 21.5 55 side=left;tank=B", "@10:00 21.5 100 tank=A", "@10:05 22 65 side=left;tank=B", "@10:05 22 90 tank=A")
	// [A86]: without USING ENTITY tags must be equal.
	want(t, run1(t, example(t), joinOf(false, of("pump-1", scanOf("temp")), of("pump-1", scanOf("level")))))
	// An outer join of different tags: one-sided rows, the side that is missing first.
	j = joinOf(true, of("pump-1", scanOf("level")), within(of("pump-1", scanOf("temp")), at("10:00"), at("10:01")))
	want(t, run1(t, example(t), pick(j, coalescedOfTwo+joinedTime, coalescedOfTwo+joinedTags, inputColumn(0, valueColumn), inputColumn(1, valueColumn))),
		"1709546400000 - - 21.5", "1709546400000 side=left;tank=B 55 -", "1709546400000 tank=A 100 -", "1709546700000 side=left;tank=B 65 -", "1709546700000 tank=A 90 -")
}

func TestJoinByMetric(t *testing.T) {
	// [A90]
	j := joinOf(false, of("pump-1", scanOf("flow", "odo")), of("pump-1", scanOf("temp")))
	j.ByMetric = true
	want(t, run1(t, example(t), pick(j, inputColumn(0, plan.ScanMetric), inputColumn(0, plan.ScanTime), inputColumn(0, valueColumn), inputColumn(1, valueColumn))),
		"flow @10:00 10 21.5", "flow @10:05 20 22", "odo @10:00 5 21.5")
}

// A third table is joined on the key of whatever the first two have.
func TestJoinChain(t *testing.T) {
	j := joinOf(true, of("pump-1", scanOf("flow")), of("pump-1", scanOf("temp")), of("pump-1", scanOf("odo")))
	want(t, run1(t, example(t), pick(j, 3*furtherColumn+joinedTime, inputColumn(0, valueColumn), inputColumn(1, valueColumn), inputColumn(2, valueColumn))),
		"1709546400000 10 21.5 5", "1709546520000 14 - -", "1709546640000 - - 9", "1709546700000 20 22 -", "1709546760000 - - 2", "1709546940000 - - 6",
		"1709547000000 - 23 -", "1709547060000 8 - -")
	j.Inputs[2].Outer = false
	want(t, run1(t, example(t), pick(j, 3*furtherColumn+joinedTime, inputColumn(0, valueColumn), inputColumn(1, valueColumn), inputColumn(2, valueColumn))), "1709546400000 10 21.5 5")
}

// Without the entity rows of all entities pair; they are ordered by entity, time.
func TestJoinOnTimeAlone(t *testing.T) {
	j := joinOf(false, scanOf("temp"), within(scanOf("flow"), at("10:00"), at("10:06")))
	j.Inputs[1].UseEntity, j.Inputs[1].UseTags = false, false
	want(t, run1(t, example(t), pick(j, inputColumn(0, plan.ScanEntity), inputColumn(0, plan.ScanTime), inputColumn(1, plan.ScanEntity), inputColumn(1, valueColumn))),
		"pump-1 @10:00 pump-1 10", "pump-1 @10:00 pump-2 3", "pump-1 @10:05 pump-1 20", "pump-1 @10:05 pump-2 NaN", "pump-2 @10:00 pump-1 10", "pump-2 @10:00 pump-2 3")
}

// Views may come in any order; what they lack is NULL.
func TestJoinViews(t *testing.T) {
	view := func(metric string) *plan.View {
		inner := &plan.Sort{In: pick(of("pump-1", scanOf(metric)), plan.ScanTime, plan.ScanEntity, valueColumn), Keys: []plan.Key{{Expr: place{2, column.Double}, Desc: true}}}
		return &plan.View{Query: &plan.Query{Root: inner, Columns: []plan.Column{{Type: column.Timestamp}, {Type: column.String}, {Type: column.Double}}, Env: environment(example(t))},
			Time: 0, Value: 2, Text: -1, Metric: -1, Entity: 1, Tags: -1}
	}
	j := &plan.Join{}
	for _, metric := range []string{"flow", "temp"} {
		j.Inputs = append(j.Inputs, plan.JoinInput{In: view(metric), Width: 3, Time: 0, Entity: 1, Tags: -1, Value: 2, Text: -1, Outer: true, UseEntity: true, UseTags: true})
	}
	want(t, run1(t, example(t), pick(j, 0, 2, 3, 5)), "@10:00 10 @10:00 21.5", "@10:02 14 - -", "@10:05 20 @10:05 22", "- - @10:10 23", "@10:11 8 - -")
}

// random is a store of random series of the metrics a, b and c, and the samples as rows.
func randomSeries(t *testing.T, r *rand.Rand) (rows map[string][]sampleRow, root func(metric string) *plan.Scan, run func(plan.Operator) []string) {
	var l loader
	rows = map[string][]sampleRow{}
	for _, metric := range []string{"a", "b", "c"} {
		for e := range 3 {
			for tag := range 3 {
				k := key(metric, fmt.Sprint("e", e))
				text := ""
				if tag > 0 {
					k = key(metric, k.Entity, "t", fmt.Sprint(tag))
					text = fmt.Sprint("t=", tag)
				}
				for m := range 12 {
					if r.IntN(4) == 0 {
						v := r.IntN(1000)
						l.sample(k, at("10:00")+core.Time(m)*minute, float64(v))
						rows[metric] = append(rows[metric], sampleRow{k.Entity, m, text, v})
					}
				}
			}
		}
		slices.SortStableFunc(rows[metric], func(x, y sampleRow) int {
			return cmp.Or(cmp.Compare(x.entity, y.entity), cmp.Compare(x.time, y.time), cmp.Compare(x.tags, y.tags))
		})
	}
	s := l.store(t)
	return rows, func(metric string) *plan.Scan { return scanOf(metric) }, func(op plan.Operator) []string { return run1(t, s, op) }
}

type sampleRow struct {
	entity string
	time   int
	tags   string
	value  int
}

// naiveJoin compares each row with each.
func naiveJoin(left [][]*sampleRow, right []sampleRow, outer, tags bool) (out [][]*sampleRow) {
	used := map[*sampleRow]bool{}
	for _, l := range left {
		var k *sampleRow
		for _, r := range l {
			if k == nil {
				k = r
			}
		}
		found := false
		for i := range right {
			r := &right[i]
			if r.entity == k.entity && r.time == k.time && (!tags || r.tags == k.tags) {
				out = append(out, append(slices.Clone(l), r))
				found, used[r] = true, true
			}
		}
		if !found && outer {
			out = append(out, append(slices.Clone(l), nil))
		}
	}
	for i := range right {
		if outer && !used[&right[i]] {
			out = append(out, append(make([]*sampleRow, len(left[0])), &right[i]))
		}
	}
	return out
}

func TestJoinAgreesWithNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for n := range 60 {
		rows, scan, run := randomSeries(t, r)
		metrics := []string{"a", "b", "c"}[:2+r.IntN(2)]
		var ops []plan.Operator
		for _, m := range metrics {
			ops = append(ops, scan(m))
		}
		j := joinOf(false, ops...)
		var joined [][]*sampleRow
		for i := range rows["a"] {
			joined = append(joined, []*sampleRow{&rows["a"][i]})
		}
		for k := 1; k < len(metrics) && len(joined) > 0; k++ {
			outer, tags := r.IntN(2) == 0, r.IntN(2) == 0
			j.Inputs[k].Outer, j.Inputs[k].UseTags = outer, tags
			joined = naiveJoin(joined, rows[metrics[k]], outer, tags)
		}
		if len(joined) == 0 {
			continue
		}
		first := func(row []*sampleRow) *sampleRow {
			return row[slices.IndexFunc(row, func(s *sampleRow) bool { return s != nil })]
		}
		slices.SortStableFunc(joined, func(x, y []*sampleRow) int {
			c := cmp.Or(cmp.Compare(first(x).entity, first(y).entity), cmp.Compare(first(x).time, first(y).time))
			for i := 0; c == 0 && i < len(x); i++ {
				c = cmp.Compare(tagsOf(x[i]), tagsOf(y[i]))
			}
			return c
		})
		var expected []string
		for _, row := range joined {
			text := fmt.Sprint(first(row).entity, " ", int64(at("10:00"))+int64(first(row).time)*int64(minute), " ", dash(first(row).tags))
			for _, s := range row {
				if s == nil {
					text += " - -"
				} else {
					text += fmt.Sprint(" ", dash(s.tags), " ", s.value)
				}
			}
			expected = append(expected, text)
		}
		columns := []int{len(metrics)*furtherColumn + joinedEntity, len(metrics)*furtherColumn + joinedTime, len(metrics)*furtherColumn + joinedTags}
		for k := range metrics {
			columns = append(columns, inputColumn(k, plan.ScanTags), inputColumn(k, valueColumn))
		}
		if got := run(pick(j, columns...)); !slices.Equal(got, expected) {
			t.Fatalf("join %d of %d: got\n  %s\nwant\n  %s", n, len(metrics), strings.Join(got, "\n  "), strings.Join(expected, "\n  "))
		}
	}
}

// tagsOf is what tags sort by: a row that is not there and one without tags are equal.
func tagsOf(s *sampleRow) string {
	if s == nil {
		return ""
	}
	return s.tags
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// A group that lies in two batches is one group.
func TestJoinAcrossBatches(t *testing.T) {
	left := batches(2, [3]any{"e", 1, 10}, [3]any{"e", 1, 11}, [3]any{"e", 1, 12}, [3]any{"e", 2, 13})
	right := batches(1, [3]any{"e", 1, 20}, [3]any{"e", 1, 21}, [3]any{"e", 3, 22})
	x := &execution{Config: Config{Memory: NewMemory(0)}}
	inputs := []plan.JoinInput{{Width: 3, Time: 1, Entity: 0, Tags: -1, Value: -1}, {Width: 3, Time: 1, Entity: 0, Tags: -1, Value: -1, Outer: true, UseEntity: true}}
	var got []string
	m := merger{byEntity: true, match: (&execution{Config: Config{Memory: NewMemory(0)}}).newMatcher(t.Context(), inputs, true)}
	m.out = newJoined(&plan.Join{Inputs: inputs}, func(b *column.Batch, _ error) bool {
		for i := range b.Len {
			got = append(got, cell(b.Columns[6], i)+" "+cell(b.Columns[2], i)+" "+cell(b.Columns[5], i))
		}
		return true
	})
	for i, s := range []stream{left, right} {
		m.sides = append(m.sides, x.newSide(&inputs[i], true, s))
	}
	defer m.stop()
	for i := range m.sides {
		if err := m.sides[i].fetch(); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, got, "1 10 20", "1 10 21", "1 11 20", "1 11 21", "1 12 20", "1 12 21", "2 13 -", "3 - 22")
}

// batches yields rows of a text and two whole numbers, some in each batch.
func batches(size int, rows ...[3]any) stream {
	return func(yield func(*column.Batch, error) bool) {
		for part := range slices.Chunk(rows, size) {
			b := &column.Batch{Len: len(part), Columns: []*column.Vector{{Type: column.String, Len: len(part)}, {Type: column.Bigint, Len: len(part)}, {Type: column.Bigint, Len: len(part)}}}
			for _, row := range part {
				b.Columns[0].Strings = append(b.Columns[0].Strings, row[0].(string))
				b.Columns[1].Ints = append(b.Columns[1].Ints, int64(row[1].(int)))
				b.Columns[2].Ints = append(b.Columns[2].Ints, int64(row[2].(int)))
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}
