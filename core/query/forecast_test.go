package query_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// regularStore holds series of one value an hour from 2021-05-01 on, each its function of the hour.
func regularStore(t *testing.T, n int, series map[string]func(i int) float64) *store {
	s := newStore(t)
	var b core.Batch
	start := at(t, "2021-05-01T00:00:00Z")
	for name, value := range series {
		ref := b.Ref(seriesKey(name))
		for i := range n {
			b.Add(ref, start+core.Time(i)*3_600_000, value(i))
		}
	}
	s.apply(&b)
	return s
}

func hourly(spec query.ForecastSpec) query.Series {
	return query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}, Dates: between("2021-05-01T00:00:00Z", "2021-09-01T00:00:00Z"),
		Aggregate: &query.Aggregate{Types: []string{"AVG"}, Period: &query.Period{Count: 1, Unit: "HOUR"}}, Forecast: &spec}
}

// outputs runs a query and returns its results.
func outputs(t *testing.T, s *store, q query.Series) []*query.Result {
	t.Helper()
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatalf("Validate: %v", err)
	}
	var all []*query.Result
	for r, err := range p.Run(t.Context(), s.source()) {
		if err != nil {
			t.Fatalf("Run: %v", err)
		}
		all = append(all, r)
	}
	return all
}

func length(n int64) *query.Horizon { return &query.Horizon{Length: &n} }

func ref[T any](v T) *T { return &v }

func TestForecastContinues(t *testing.T) {
	day := func(i int) float64 { return 40 + 0.125*float64(i) + 6*math.Sin(2*math.Pi*float64(i)/24) }
	s := regularStore(t, 240, map[string]func(int) float64{"m e": day})
	q := hourly(query.ForecastSpec{Horizon: length(48), Include: []string{"FORECAST", "RECONSTRUCTED"}, HW: &query.HoltWinters{}, ARIMA: &query.ARIMA{},
		SSA: &query.SSA{}})
	all := outputs(t, s, q)
	if len(all) != 6 {
		t.Fatalf("%d outputs, want 6", len(all))
	}
	start := at(t, "2021-05-01T00:00:00Z")
	for i, r := range all {
		from, n, kind := 240, 48, query.Forecast
		if i%2 == 1 {
			from, n, kind = 0, 240, query.Reconstructed
			if i == 1 { // hw leaves out its season
				from, n = 24, 216
			}
		}
		if r.Type != kind || r.Samples.Len() != n {
			t.Fatalf("output %d: %s of %d samples, want %s of %d", i, r.Type, r.Samples.Len(), kind, n)
		}
		for j, v := range r.Samples.Values {
			if want := start + core.Time(from+j)*3_600_000; r.Samples.Times[j] != want {
				t.Fatalf("output %d: time %d is %v, want %v", i, j, r.Samples.Times[j], want)
			}
			if math.Abs(v-day(from+j)) > 1e-5 {
				t.Fatalf("output %d: value %d is %v, want %v", i, j, v, day(from+j))
			}
		}
	}
	if text := string(all[0].AppendJSON(nil)); !strings.Contains(text, `"hw":{"auto":true,"period":{"count":1,"unit":"DAY"},`) {
		t.Errorf("the period is not echoed: %.300s", text)
	}
}

// Inputs times algorithms, history once for each input, and k groups for each kind.
func TestForecastSeriesCount(t *testing.T) {
	noise := func(i int) float64 { return float64(i * i * 7919 % 1013) }
	s := regularStore(t, 60, map[string]func(int) float64{"m a": noise, "m b": noise, "m b k=v": noise})
	all := []string{"HISTORY", "FORECAST", "RECONSTRUCTED"}
	for name, tt := range map[string]struct {
		spec query.ForecastSpec
		want int
	}{
		"forecast alone":        {query.ForecastSpec{ARIMA: &query.ARIMA{}}, 3},
		"two algorithms":        {query.ForecastSpec{ARIMA: &query.ARIMA{}, HW: &query.HoltWinters{}}, 6},
		"all kinds":             {query.ForecastSpec{Include: all, ARIMA: &query.ARIMA{}, HW: &query.HoltWinters{}}, 3 * (1 + 2*2)},
		"groups":                {query.ForecastSpec{Include: all, SSA: &query.SSA{Auto: &query.SSAGroups{Count: ref(int64(4))}}}, 3 * (1 + 2*4)},
		"groups and stack":      {query.ForecastSpec{SSA: &query.SSA{Auto: &query.SSAGroups{Count: ref(int64(2)), Stack: ref(true)}}}, 3 * 2},
		"united":                {query.ForecastSpec{SSA: &query.SSA{Auto: &query.SSAGroups{Count: ref(int64(5)), Union: []string{"A", "B-D", "E"}}}}, 3 * 3},
		"by hand":               {query.ForecastSpec{SSA: &query.SSA{Manual: []string{"1", "2;4", "3-"}}}, 3 * 3},
		"groups not there":      {query.ForecastSpec{SSA: &query.SSA{Limit: ref(int64(3)), Manual: []string{"1", "2-3", "9"}}}, 3 * 2},
		"history alone":         {query.ForecastSpec{Include: []string{"HISTORY"}, ARIMA: &query.ARIMA{}, HW: &query.HoltWinters{}}, 3},
		"limit of eigentriples": {query.ForecastSpec{SSA: &query.SSA{Limit: ref(int64(7)), Auto: &query.SSAGroups{Count: ref(int64(7))}}}, 3 * 7},
	} {
		tt.spec.Horizon = length(5)
		if got := len(outputs(t, s, hourly(tt.spec))); got != tt.want {
			t.Errorf("%s: %d series, want %d", name, got, tt.want)
		}
	}
}

// Months are of different lengths: the forecast stays on their firsts. A year has twelve of them.
func TestForecastMonths(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	r := b.Ref(seriesKey("m e"))
	for i := range 36 {
		b.Add(r, core.TimeOf(time.Date(2018, time.Month(1+i), 15, 0, 0, 0, 0, time.UTC)), float64(i%12))
	}
	s.apply(&b)
	q := hourly(query.ForecastSpec{Horizon: &query.Horizon{Interval: "1-YEAR"}, Include: []string{"FORECAST", "RECONSTRUCTED"}, HW: &query.HoltWinters{Period: "1-YEAR"}})
	q.Dates, q.Aggregate.Period.Unit = between("2018-01-01T00:00:00Z", "2021-01-01T00:00:00Z"), "MONTH"
	all := outputs(t, s, q)
	for i, v := range all[0].Samples.Values {
		if want := core.TimeOf(time.Date(2021, time.Month(1+i), 1, 0, 0, 0, 0, time.UTC)); all[0].Samples.Times[i] != want || math.Abs(v-float64(i)) > 1e-9 {
			t.Errorf("month %d: %v at %v", i, v, all[0].Samples.Times[i].Std())
		}
	}
	if all[0].Samples.Len() != 12 || all[1].Samples.Len() != 24 {
		t.Errorf("%d ahead, %d reconstructed", all[0].Samples.Len(), all[1].Samples.Len())
	}
	q.Forecast.HW = &query.HoltWinters{}
	if text := string(outputs(t, s, q)[0].AppendJSON(nil)); !strings.Contains(text, `"period":{"count":12,"unit":"MONTH"}`) {
		t.Errorf("twelve months are not found: %.300s", text)
	}
}

// Days in Berlin are 23 hours long on 2021-03-28; a baseline of a day meets the same hour of the clock.
func TestForecastLocalDays(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	r := b.Ref(seriesKey("m e"))
	start := at(t, "2021-03-25T23:00:00Z") // midnight of the 26th
	for i := range 48 {
		b.Add(r, start+core.Time(i)*3_600_000, float64(i%24))
	}
	s.apply(&b)
	q := hourly(query.ForecastSpec{Horizon: length(24), Baseline: &query.Baseline{Period: "1-DAY"}})
	q.Dates, q.Timezone = between("2021-03-25T23:00:00Z", "2021-03-27T23:00:00Z"), "Europe/Berlin"
	got := outputs(t, s, q)[0].Samples
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got.Values {
		if hour := got.Times[i].Std().In(berlin).Hour(); float64(hour) != v {
			t.Errorf("%v at %d o'clock", v, hour)
		}
	}
	if len(got.Values) != 24 {
		t.Errorf("%d values", len(got.Values))
	}
}

// A number that is none inside the input lies on the line of its neighbours: 0 1 2 - 4 5 is a line, and continues as one.
func TestForecastOverGap(t *testing.T) {
	s := regularStore(t, 8, map[string]func(int) float64{"m e": func(i int) float64 {
		if i == 3 {
			return nan()
		}
		return float64(i)
	}})
	q := hourly(query.ForecastSpec{Horizon: length(2), HW: &query.HoltWinters{Period: "1-HOUR"}})
	q.Aggregate.Interpolate = &query.Interpolation{Type: "PREVIOUS"}
	if got := outputs(t, s, q)[0].Samples.Values; math.Abs(got[0]-8) > 1 {
		t.Errorf("filled by the aggregation: %v", got)
	}
	q.Aggregate, q.Interpolate = nil, &query.Regularize{Period: &query.Period{Count: 1, Unit: "HOUR"}, Function: "LINEAR"}
	if got := outputs(t, s, q)[0].Samples.Values; math.Abs(got[0]-8) > 1e-9 || math.Abs(got[1]-9) > 1e-9 {
		t.Errorf("filled by the interpolation: %v", got)
	}
}

// Nothing but numbers that are none: there is no grid, and no forecast.
func TestForecastOfNothing(t *testing.T) {
	s := regularStore(t, 8, map[string]func(int) float64{"m e": func(int) float64 { return nan() }})
	q := hourly(query.ForecastSpec{Horizon: length(2), AutoAggregate: true, Include: []string{"HISTORY", "FORECAST"}, ScoreInterval: "1-HOUR",
		HW: &query.HoltWinters{Period: "2-HOUR"}, ARIMA: &query.ARIMA{Interval: "3-HOUR"}, SSA: &query.SSA{}, Baseline: &query.Baseline{Period: "1-DAY"}})
	q.Aggregate = nil
	all := outputs(t, s, q)
	if len(all) != 5 {
		t.Fatalf("%d series, want the history and four forecasts", len(all))
	}
	for _, r := range all {
		if r.Samples.Len() != 0 || r.Type == query.Forecast && !strings.Contains(r.Warning, "the input has 0 numbers, the least is 1") {
			t.Errorf("%s: %d samples, warning %q", r.Type, r.Samples.Len(), r.Warning)
		}
	}
}

func TestForecastOfGroup(t *testing.T) {
	five := func(int) float64 { return 5 }
	s := regularStore(t, 24, map[string]func(int) float64{"m a": five, "m b": five})
	q := hourly(query.ForecastSpec{Horizon: length(2), ARIMA: &query.ARIMA{}})
	q.Group = &query.Group{Types: []string{"SUM"}, Period: &query.Period{Count: 2, Unit: "HOUR"}}
	q.Aggregate = nil
	got := outputs(t, s, q)
	if len(got) != 1 || got[0].Samples.Len() != 2 || got[0].Samples.Values[0] != 20 || got[0].Samples.Times[1] != at(t, "2021-05-02T02:00:00Z") {
		t.Errorf("%+v", got)
	}
}

func TestForecastLimits(t *testing.T) {
	s := regularStore(t, 30, map[string]func(int) float64{"m e": func(i int) float64 { return float64(i % 7) }})
	src := s.source()
	src.ForecastSamples = 20
	for name, tt := range map[string]struct {
		spec query.ForecastSpec
		want string
	}{
		"input": {query.ForecastSpec{Horizon: length(1)}, "limits.forecast (20) samples of input"},
		"ahead": {query.ForecastSpec{Horizon: length(21), TimeFilter: &query.TimeFilter{From: "12:00"}}, "limits.forecast (20) samples"},
		"far":   {query.ForecastSpec{Horizon: &query.Horizon{EndDate: "9999-01-01T00:00:00Z"}}, "limits.forecast (20) samples"},
	} {
		tt.spec.ARIMA = &query.ARIMA{}
		q := hourly(tt.spec)
		if name != "input" {
			q.Dates = between("2021-05-01T10:00:00Z", "2021-05-02T00:00:00Z")
		}
		p, err := q.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range p.Run(t.Context(), src) {
			if err != nil {
				break
			}
		}
		if core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForecastCancelled(t *testing.T) {
	s := regularStore(t, 30, map[string]func(int) float64{"m e": func(i int) float64 { return float64(i % 7) }})
	p, err := hourly(query.ForecastSpec{Horizon: length(5), SSA: &query.SSA{}}).Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err = range p.Run(ctx, s.source()) {
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Output of one algorithm is grouped with that of the same algorithm only.
func TestForecastThenGroup(t *testing.T) {
	s := regularStore(t, 24, map[string]func(int) float64{"m a": func(int) float64 { return 5 }, "m b": func(int) float64 { return 7 }})
	q := hourly(query.ForecastSpec{Horizon: length(3), AutoAggregate: true, Include: []string{"HISTORY", "FORECAST"}, ARIMA: &query.ARIMA{}, HW: &query.HoltWinters{}})
	q.Aggregate = nil
	q.Group = &query.Group{Types: []string{"SUM"}}
	q.TransformationOrder = []string{"FORECAST", "GROUP"}
	all := outputs(t, s, q)
	if len(all) != 3 {
		t.Fatalf("%d series, want history and two forecasts", len(all))
	}
	for _, r := range all {
		want := 3
		if r.Type == query.History {
			want = 24
		}
		if r.Samples.Len() != want || r.Samples.Values[0] != 12 {
			t.Errorf("%s: %d samples, the first %v", r.Type, r.Samples.Len(), r.Samples.Values)
		}
	}
}
