package selfmetrics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

const tenOClock core.Time = 1620036000000 // 2021-05-03T10:00:00Z

// plant is a server with 450 samples received and 420 stored between two rounds 15 s apart: the worked example of the contract.
type plant struct {
	now    core.Time
	values []Value
}

func (p *plant) recorder(o Options) *Recorder {
	o.Now = func() core.Time { return p.now }
	o.Collect = func() []Value { return p.values }
	o.Entity, o.Host = "tsd", "db-1"
	return New(o)
}

func (p *plant) example(received, written, filtered float64) {
	p.values = []Value{
		{Name: "metric_received_per_second", Kind: PerSecond, N: received, Whole: true},
		{Name: "metric_writes_per_second", Kind: PerSecond, N: written},
		{Name: "filtered_metric_received_per_second", Kind: PerSecond, N: filtered},
		{Name: "table_size", Tags: core.Tags{{Name: "table", Value: "d"}}, N: 12.5},
	}
}

func TestWorkedExample(t *testing.T) {
	p := &plant{now: tenOClock}
	r := p.recorder(Options{})
	p.example(1000, 900, 10)
	r.Take()
	p.now += 15_000
	p.example(1450, 1320, 40)
	round := r.Take()

	want := "filtered_metric_received_per_second=2.0\nmetric_received_per_second=30.0\nmetric_writes_per_second=28.0\ntable_size__table=d=12.5\n"
	if diff := cmp.Diff(want, string(Text(round.Readings))); diff != "" {
		t.Error(diff)
	}
	bean := `{"beans":[{"name":"x.y:name=metrics","type":"metrics","MetricsMap":{"filtered_metric_received_per_second":2.0,"metric_received_per_second":30.0,` +
		`"metric_writes_per_second":28.0,"table_size__table=d":12.5}}]}`
	if diff := cmp.Diff(bean, string(Beans("x.y:name=metrics", round.Readings))); diff != "" {
		t.Error(diff)
	}
	b := r.Batch(round)
	host := core.Tag{Name: "host", Value: "db-1"}
	keys := []core.SeriesKey{
		{Metric: "filtered_metric_received_per_second", Entity: "tsd", Tags: core.Tags{host}},
		{Metric: "metric_received_per_second", Entity: "tsd", Tags: core.Tags{host}},
		{Metric: "metric_writes_per_second", Entity: "tsd", Tags: core.Tags{host}},
		{Metric: "table_size", Entity: "tsd", Tags: core.Tags{host, {Name: "table", Value: "d"}}},
	}
	if diff := cmp.Diff(keys, b.Keys); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{2, 30, 28, 12.5}, b.Samples.Values); diff != "" {
		t.Error(diff)
	}
	for _, at := range b.Samples.Times {
		if at != 1620036015000 {
			t.Errorf("sample at %d", at)
		}
	}
}

func TestRatesAreNeverNaN(t *testing.T) {
	p := &plant{now: tenOClock}
	r := p.recorder(Options{})
	p.example(5, 5, 5)
	for _, reading := range r.Take().Readings { // in the instant of New
		if reading.Name != "table_size" && reading.N != 0 {
			t.Errorf("%s = %v in a round of no length", reading.Name, reading.N)
		}
	}
	p.now += 1000
	p.example(1, 1, 1) // totals went back
	for _, reading := range r.Take().Readings {
		if reading.Name != "table_size" && reading.N != 0 {
			t.Errorf("%s = %v after the total went back", reading.Name, reading.N)
		}
	}
}

func TestPerMinute(t *testing.T) {
	p := &plant{now: tenOClock}
	r := p.recorder(Options{})
	p.now += 30_000
	p.values = []Value{{Name: "actions_per_minute", Kind: PerMinute, N: 7}}
	if got := r.Take().Readings[0].N; got != 14 { // 7 in half a minute
		t.Errorf("%v actions a minute, want 14", got)
	}
}

// What was counted before Run started took longer than the time since: it is no part of any rate.
func TestReadingsBeforeTheFirstRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := New(Options{Now: func() core.Time { return core.TimeOf(time.Now()) }, Collect: func() []Value {
			since := time.Since(began).Seconds()
			return []Value{{Name: "busy_percent", Kind: Percent, N: 60_000 + 50*since}, {Name: "runs_per_minute", Kind: PerMinute, N: 4000 + 2*since},
				{Name: "step_percent", Kind: Percent, N: 150 * since}}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		check := func(when string, want ...float64) {
			t.Helper()
			var got []float64
			for _, reading := range r.Readings() {
				got = append(got, reading.N)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got): %s", when, diff)
			}
		}
		check("at once", 0, 0, 0)
		time.Sleep(3 * time.Second)
		check("after 3 s", 50, 120, 100)
		time.Sleep(time.Second)
		check("after 4 s: asking moves no interval", 50, 120, 100)
		time.Sleep(12 * time.Second)
		check("the first round", 50, 120, 100)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestForms(t *testing.T) {
	for _, test := range []struct {
		name string
		tags core.Tags
		want string
	}{
		{"x", nil, "x"},
		{"cache.size", core.Tags{{Name: "cache", Value: "entity"}}, "cache.size__cache=entity"},
		{"jvm_memorypool_used", core.Tags{{Name: "name", Value: "a"}, {Name: "type", Value: "b"}}, "jvm_memorypool_used__name=a__type=b"},
		{"gc_time_percent", core.Tags{{Name: "collector", Value: "go"}}, "gc_time_percent_go"},
	} {
		if got := Flat(test.name, test.tags); got != test.want {
			t.Errorf("%s: %s", test.want, got)
		}
	}
	for _, test := range []struct {
		r    Reading
		want string
	}{{Reading{N: 0}, "0.0"}, {Reading{N: 0, Whole: true}, "0"}, {Reading{N: 1e21, Whole: true}, "1000000000000000000000"}, {Reading{N: 0.1}, "0.1"}, {Reading{N: 2.9, Whole: true}, "2"}, {Reading{N: 1e-7}, "0.0000001"}} {
		if got := string(AppendNumber(nil, test.r)); got != test.want {
			t.Errorf("%v: %s, want %s", test.r, got, test.want)
		}
	}
	for question, want := range map[string]string{"": `{"beans":[{"name":"tidemark:name=metrics","type":"metrics","MetricsMap":{}}]}`,
		"java.lang:type=Memory": `{"beans":[]}`, ":name=metrics": `{"beans":[]}`, "metrics": `{"beans":[]}`} {
		if got := string(Beans(question, nil)); got != want {
			t.Errorf("%q: %s", question, got)
		}
	}
}

// A tagged name sorts by its flat form: '.' comes before '_'.
func TestRoundsAreSortedByFlatName(t *testing.T) {
	p := &plant{now: tenOClock, values: []Value{{Name: "a", Tags: core.Tags{{Name: "x", Value: "1"}}}, {Name: "b"}, {Name: "a.b"}, {Name: "a"}}}
	want := "a=0.0\na.b=0.0\na__x=1=0.0\nb=0.0\n"
	if diff := cmp.Diff(want, string(Text(p.recorder(Options{}).Take().Readings))); diff != "" {
		t.Error(diff)
	}
}

// store keeps batches.
type store struct{ batches []*core.Batch }

func (s *store) Ingest(_ context.Context, b *core.Batch) (core.Receipt, error) {
	s.batches = append(s.batches, b)
	return core.Receipt{}, nil
}

func TestRunWritesEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		files := 0
		r := New(Options{Ingest: &s, Now: func() core.Time { return core.TimeOf(time.Now()) }, Entity: "tsd", Host: "h",
			Collect: func() []Value { return []Value{{Name: "a", N: 1}} }, File: func([]byte) error { files++; return nil }})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		start := core.TimeOf(time.Now())
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(s.batches) != 3 || files != 3 {
			t.Fatalf("%d batches and %d files in 50 s, want 3", len(s.batches), files)
		}
		if at := s.batches[0].Samples.Times[0]; at != start+15_000 {
			t.Errorf("first round after %d ms, want one interval", at-start)
		}
	})
}
