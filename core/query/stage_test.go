package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/query"
)

// minutes is a period of n minutes.
func minutes(n float64) *query.Period { return &query.Period{Count: n, Unit: "MINUTE"} }

func ptr[T any](v T) *T { return &v }

// values runs a query and returns time=value pairs of each result, one a line, with times as minutes and seconds.
func values(t *testing.T, src query.Source, q query.Series) string {
	t.Helper()
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatalf("Validate: %v", err)
	}
	var lines []string
	for r, err := range p.Run(t.Context(), src) {
		if err != nil {
			t.Fatalf("Run: %v", err)
		}
		line := r.Entity + ":"
		for i, at := range r.Samples.Times {
			line += fmt.Sprintf(" %s=%v", at.Std().UTC().Format("04:05"), r.Samples.Values[i])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func runError(t *testing.T, ctx context.Context, src query.Source, q query.Series) error {
	t.Helper()
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatalf("Validate: %v", err)
	}
	for _, err := range p.Run(ctx, src) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Samples next to the range come from reads of their own: several series, some with samples on one side alone, in pieces of any size.
func TestOuterBoundaries(t *testing.T) {
	s := newStore(t)
	for _, one := range []struct {
		series, at string
		v          float64
	}{
		{"flow a", "09:50:00", 0}, {"flow a", "10:30:00", 40}, {"flow b", "09:50:00", 10}, {"flow b", "09:55:00", 0}, {"flow c", "10:10:00", 7}, {"flow d", "10:05:00", 0},
		{"flow d", "10:20:00", 15}, {"flow d", "10:25:00", 99},
	} {
		s.sample(one.series, "2021-05-03T"+one.at+"Z", one.v)
	}
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: between("2021-05-03T10:00:00Z", "2021-05-03T10:20:00Z"),
		Interpolate: &query.Regularize{Period: minutes(10), Function: "LINEAR", Boundary: "OUTER"}}
	want := "a: 00:00=10 10:00=20\nc: 10:00=7\nd: 10:00=5"
	expect(t, "outer", values(t, s.source(), q), want)
	pieces := s.source()
	pieces.Reader = shredder{pieces.Reader}
	expect(t, "in pieces", values(t, pieces, q), want)
	q.Interpolate.Boundary = "inner"
	expect(t, "inner", values(t, s.source(), q), "c: 10:00=7")
	// Only the first stage sees the samples outside: a rate before it would start from one that was not asked for.
	q.Interpolate.Boundary, q.Rate, q.TransformationOrder = "OUTER", &query.Rate{}, []string{"RATE", "INTERPOLATE"}
	expect(t, "after another stage", values(t, s.source(), q), "*:")
}

func TestGroupOfEntitiesEqualsSum(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		s := newStore(t)
		sums := map[string]float64{}
		for range 40 {
			at := fmt.Sprintf("2021-05-03T10:%02d:%02dZ", rnd.IntN(10), rnd.IntN(60))
			entity, v := string(rune('a'+rnd.IntN(4))), float64(rnd.IntN(50))
			key := entity + at
			if _, taken := sums[key]; taken {
				continue
			}
			sums[key] = v
			s.sample("flow "+entity+" k="+string(rune('x'+rnd.IntN(2))), at, v)
		}
		total := 0.0
		for _, v := range sums {
			total += v
		}
		base := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes, Aggregate: &query.Aggregate{Types: []string{"SUM"}}}
		whole := base
		whole.Group = &query.Group{Types: []string{"SUM"}, Period: &query.Period{Count: 1, Unit: "MILLISECOND"}}
		expect(t, fmt.Sprint("seed ", seed), values(t, s.source(), whole), fmt.Sprintf("*: 00:00=%v", total))
		whole.Group.Period = minutes(1)
		expect(t, fmt.Sprint("by minute, seed ", seed), values(t, s.source(), whole), fmt.Sprintf("*: 00:00=%v", total))
	}
}

func TestRegularResults(t *testing.T) {
	s := pump(t)
	grid := func(change func(*query.Series)) []bool {
		t.Helper()
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes}
		change(&q)
		p, err := q.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		var regular []bool
		for r, err := range p.Run(t.Context(), s.source()) {
			if err != nil {
				t.Fatal(err)
			}
			regular = append(regular, r.Grid != nil)
			if r.Grid != nil && r.Grid.Period().Unit == nil {
				t.Error("a grid without period")
			}
		}
		return regular
	}
	for _, tt := range []struct {
		name   string
		change func(*query.Series)
		want   []bool
	}{
		{"as stored", func(*query.Series) {}, []bool{false}},
		{"interpolated", func(q *query.Series) { q.Interpolate = &query.Regularize{Period: minutes(1), Function: "LINEAR"} }, []bool{true}},
		{"aggregated without gaps", func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"SUM"}, Period: minutes(5)} }, []bool{true}},
		{"aggregated with gaps", func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"SUM"}, Period: minutes(1)} }, []bool{false}},
		{"aggregated with gaps filled", func(q *query.Series) {
			q.Aggregate = &query.Aggregate{Types: []string{"SUM"}, Period: minutes(1), Interpolate: &query.Interpolation{Type: "LINEAR"}}
		}, []bool{true}},
		{"DETAIL is as regular as its input", func(q *query.Series) {
			q.Aggregate = &query.Aggregate{Types: []string{"SUM", "DETAIL"}, Period: minutes(5)}
		}, []bool{true, false}},
		{"DETAIL of an interpolation", func(q *query.Series) {
			q.Interpolate = &query.Regularize{Period: minutes(1), Function: "LINEAR"}
			q.Aggregate = &query.Aggregate{Types: []string{"DETAIL"}}
		}, []bool{true}},
		{"without a period", func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"SUM"}} }, []bool{false}},
		{"grouped by periods", func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM", "DETAIL"}, Period: minutes(5)} }, []bool{true, false}},
		{"grouped by times", func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM"}} }, []bool{false}},
		{"smoothed after it", func(q *query.Series) {
			q.Aggregate, q.Smooth = &query.Aggregate{Types: []string{"SUM"}, Period: minutes(5)}, &query.Smooth{Type: "AVG"}
		}, []bool{true}},
		{"a rate leaves gaps", func(q *query.Series) {
			q.Interpolate, q.Rate = &query.Regularize{Period: minutes(1), Function: "LINEAR"}, &query.Rate{}
		}, []bool{false}},
		{"a signed rate does not", func(q *query.Series) {
			q.Interpolate, q.Rate = &query.Regularize{Period: minutes(1), Function: "LINEAR"}, &query.Rate{Counter: ptr(false)}
		}, []bool{true}},
	} {
		if got := grid(tt.change); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: regular %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestHeldSamplesAreBounded(t *testing.T) {
	s := pump(t)
	s.sample("flow pump-4", "2021-05-03T10:00:00Z", 1)
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes}
	src := s.source()
	for _, tt := range []struct {
		name   string
		change func(*query.Series)
		limit  int
		fits   bool
	}{
		{"series by series", func(*query.Series) {}, 6, true},
		{"one series", func(*query.Series) {}, 5, false},
		{"a group", func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM"}} }, 6, false},
		{"a group that fits", func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM"}} }, 7, true},
		{"groups by entity", func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM"}, By: &[]string{}} }, 6, true},
		{"an evaluation", func(q *query.Series) { q.Evaluate = &query.Evaluate{Expression: "A"} }, 6, false},
		{"copies", func(q *query.Series) { q.Evaluate = &query.Evaluate{Expression: "A.union(A)"} }, 13, false},
		{"copies that fit", func(q *query.Series) { q.Evaluate = &query.Evaluate{Expression: "A.union(A)"} }, 14, true},
	} {
		q := q
		tt.change(&q)
		src.Samples = tt.limit
		err := runError(t, t.Context(), src, q)
		if tt.fits && err != nil || !tt.fits && (core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), "limits.samples")) {
			t.Errorf("%s, limit %d: error %v", tt.name, tt.limit, err)
		}
	}
}

func TestStagesEndWithContext(t *testing.T) {
	s := pump(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes, Group: &query.Group{Types: []string{"SUM"}},
		Smooth: &query.Smooth{Type: "AVG"}, Rate: &query.Rate{}, Downsample: &query.Downsample{}}
	if err := runError(t, ctx, s.source(), q); err == nil {
		t.Error("a cancelled query answers")
	}
}

// Whoever leaves early ends all stages: nothing is yielded after.
func TestLeavingStagesEarly(t *testing.T) {
	s := pump(t)
	s.sample("flow pump-4", "2021-05-03T10:00:00Z", 1)
	for _, change := range []func(*query.Series){
		func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM", "DETAIL", "MAX"}} },
		func(q *query.Series) { q.Group = &query.Group{Types: []string{"DETAIL", "SUM"}, By: &[]string{}} },
		func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"SUM", "MAX"}} },
		func(q *query.Series) {
			q.Interpolate = &query.Regularize{Period: minutes(1), Function: "LINEAR", Boundary: "OUTER"}
		},
		func(q *query.Series) { q.Evaluate = &query.Evaluate{Expression: "A.union(A)"} },
	} {
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes}
		change(&q)
		p, err := q.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range p.Run(t.Context(), s.source()) {
			if n++; err != nil {
				t.Fatal(err)
			}
			break
		}
		if n != 1 {
			t.Errorf("%d results", n)
		}
	}
}

// No script makes the interpreter panic, hang or give something else than series.
func FuzzScript(f *testing.F) {
	for _, seed := range []string{
		"A.union(A)", "List l = new ArrayList(); l.add(A); return l;", "Series.of(new String[]{'2021-05-03T10:00:00Z'}, new double[]{1.5}, 'm', 'e', 't', 'v')",
		"List<Series> x = new ArrayList<>(); x.add(x); x.add(x); x", "/* c */ A // d", "return", "String[] t = new String[]{}; t", "((((A))))", "x = 1; x.add(A)", "'\\n", "-.5e+",
	} {
		f.Add(seed)
	}
	src := onePump(f)
	f.Fuzz(func(t *testing.T, text string) {
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes, Evaluate: &query.Evaluate{Expression: text}}
		p, err := q.Validate(moment)
		if err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatalf("Validate(%q): %v", text, err)
			}
			return
		}
		for _, err := range p.Run(t.Context(), src) {
			if err != nil && core.CodeOf(err) != core.Invalid && core.CodeOf(err) != core.TooLarge {
				t.Fatalf("Run(%q): %v", text, err)
			}
		}
	})
}

// A list that is added to itself grows to a limit.
func TestScriptListsAreBounded(t *testing.T) {
	s := pump(t)
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes}
	q.Evaluate = &query.Evaluate{Expression: "x = new ArrayList(); x.add(A);" + strings.Repeat("x.add(x);", 100)}
	if err := runError(t, t.Context(), s.source(), q); core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), "a list has more than 10000 series") {
		t.Errorf("doubling a list 100 times: %v", err)
	}
	q.Evaluate.Expression = strings.Repeat(" ", 16<<10) + "A"
	if _, err := q.Validate(moment); core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), "more than 16384") {
		t.Errorf("a long script: %v", err)
	}
}

// Stages that get samples beyond the range, as forecasts have them, continue the same periods.
func TestPeriodsContinuePastTheRange(t *testing.T) {
	s := pump(t)
	made := `Series.of(new String[]{'2021-05-03T10:00:00Z','2021-05-03T10:09:00Z','2021-05-03T10:11:00Z','2021-05-03T10:16:00Z'}, new double[]{1,2,4,8}, 'm', 'e')`
	for _, tt := range []struct {
		align     string
		aggregate string
		group     string
	}{
		{"CALENDAR", "e: 00:00=3 10:00=12", "e: 00:00=3 10:00=12"},
		{"START_TIME", "e: 00:00=3 10:00=12", "e: 00:00=3 10:00=12"},
		{"END_TIME", "e: 08:00=14", "e: 08:00=14"}, // periods end at 10:08 and 10:18; the first begins before the start
	} {
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes,
			Evaluate: &query.Evaluate{Expression: made}, TransformationOrder: []string{"EVALUATE"}}
		period := &query.Period{Count: 10, Unit: "MINUTE", Align: tt.align}
		if tt.align == "END_TIME" {
			q.Dates = between("2021-05-03T10:00:00Z", "2021-05-03T10:08:00Z")
		}
		q.Aggregate = &query.Aggregate{Types: []string{"SUM"}, Period: period}
		expect(t, "aggregate "+tt.align, values(t, s.source(), q), tt.aggregate)
		q.Aggregate, q.Group = nil, &query.Group{Types: []string{"SUM"}, Period: period, By: &[]string{}}
		expect(t, "group "+tt.align, values(t, s.source(), q), tt.group)
	}
}

// No text of a placement makes the server panic or hang.
func FuzzPlace(f *testing.F) {
	for _, seed := range []string{"max() < 8 AND NOT min() = 1", "sum(series.mem) < mem_limit", "-(1 + 2) * 3 / 4 || percentile(99.5) != avg()", "!!1", "((", "1e", "stdev( )"} {
		f.Add(seed)
	}
	src := onePump(f)
	f.Fuzz(func(t *testing.T, text string) {
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes,
			Group: &query.Group{Types: []string{"SUM"}, Place: &query.Place{Constraint: text, Minimize: text, Count: ptr(2.0)}}}
		p, err := q.Validate(moment)
		if err == nil {
			for _, err = range p.Run(t.Context(), src) {
				continue // the error is the last there is
			}
		}
		if err != nil && core.CodeOf(err) != core.Invalid {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// onePump holds one sample.
func onePump(f *testing.F) query.Source {
	m := memstore.New()
	var b core.Batch
	b.Add(b.Ref(seriesKey("flow pump-3")), 1620036030000, 4)
	b.Received, b.Origin = 1900000000000, core.SystemOrigin(0)
	if err := m.Apply(context.Background(), core.Entry{Position: 1, Batch: &b}); err != nil {
		f.Fatal(err)
	}
	return query.Source{Reader: m, Catalog: m, Scope: core.AllEntities}
}

// Downsampling keeps or drops a time with all its versions, and the latest decides; what computes sees the latest alone.
func TestVersionsThroughStages(t *testing.T) {
	s := newStore(t)
	s.document(core.DocMetric, "flow", `{"versioned":true}`)
	write := func(minute int, v float64, source string) {
		t.Helper()
		var b core.Batch
		i := b.Add(b.Ref(seriesKey("flow e")), at(t, "2021-05-03T10:00:00Z")+core.Time(minute)*60_000, v)
		b.Samples.Versions = append(b.Samples.Versions, core.VersionAt{Index: uint32(i), Source: source})
		s.apply(&b)
	}
	for _, one := range []struct {
		minute int
		v      float64
	}{{0, 5}, {1, 9}, {1, 5}, {2, 5}, {2, 7}, {3, 5}} {
		write(one.minute, one.v, "x")
	}
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "e"}, Dates: tenMinutes, Versioned: true}
	expect(t, "all versions", values(t, s.source(), q), "e: 00:00=5 01:00=9 01:00=5 02:00=5 02:00=7 03:00=5")
	q.Downsample = &query.Downsample{}
	expect(t, "minute 1 repeats its neighbour of the other side only", values(t, s.source(), q), "e: 00:00=5 01:00=9 01:00=5 02:00=5 02:00=7 03:00=5")
	q.Downsample.Difference = ptr(2.0)
	expect(t, "within 2 the latest versions are all the same", values(t, s.source(), q), "e: 00:00=5 03:00=5")
	q.Downsample, q.Aggregate = nil, &query.Aggregate{Types: []string{"SUM"}}
	expect(t, "the latest versions add up", values(t, s.source(), q), "e: 00:00=22")
}
