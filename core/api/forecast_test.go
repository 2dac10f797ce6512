package api

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Whatever a client sends as a forecast is read, judged and run without a panic; a fault is one of the request.
func FuzzForecast(f *testing.F) {
	for _, seed := range []string{
		`{"horizon":{"length":3},"hw":{}}`,
		`{"horizon":{"interval":{"count":1,"unit":"DAY"},"startDate":"now"},"arima":{"auto":false,"p":2,"d":1},"include":["HISTORY","RECONSTRUCTED"]}`,
		`{"horizon":{"endDate":"next_day"},"autoAggregate":true,"aggregationFunction":"PERCENTILE(5)","ssa":{"group":{"auto":{"count":2,"union":["A;B-"]}}}}`,
		`{"horizon":{"length":"2"},"ssa":{"decompose":{"eigentripleLimit":4,"method":"TRUNCATED","windowLength":10,"singularValueThreshold":-1},
		  "group":{"manual":{"groups":["1;3-","2"]}},"reconstruct":{"averagingFunction":"MEDIAN","fourier":false},"forecast":{"method":"VECTOR","base":"ORIGINAL"}}}`,
		`{"horizon":{"length":9},"baseline":{"period":"1-DAY","function":"max"},"range":{"min":0,"max":"NaN"},"timeFilter":{"from":"08:00","to":"18:00","calendar":{"name":"usa"}}}`,
		`{"horizon":{"length":9},"scoreInterval":"5-MINUTE","hw":{"alpha":1,"beta":0,"gamma":0.5,"period":{"count":1e300,"unit":"YEAR"}}}`,
		`[]`, `{"hw":7}`,
	} {
		f.Add(seed)
	}
	w := newWorld(f, Limits{Time: 5 * time.Second, Forecast: 300})
	var b core.Batch
	b.Origin = core.SystemOrigin(0)
	ref := b.Ref(core.SeriesKey{Metric: "m", Entity: "e"})
	for i := range 50 {
		b.Add(ref, core.Time(i)*60_000, float64(i*i%17))
	}
	if _, err := w.log.Append(f.Context(), &b); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !gjson.Valid(text) {
			t.Skip()
		}
		body := `{"entity":"e","metric":"m","startTime":0,"endTime":3000000,"aggregate":{"type":"AVG","period":{"count":1,"unit":"MINUTE"}},"forecast":` + text + `}`
		queries, err := decodeSeriesQuery(gjson.Parse(body))
		if err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatal(err)
			}
			return
		}
		if _, err := queries[0].Validate(dates.Moment{Now: 3_000_000, Zone: time.UTC}); err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatal(err)
			}
			return
		}
		rec := w.do("admin", "POST", "/api/v1/series/query", body)
		if rec.Code >= 500 || rec.Code == 200 && !gjson.ValidBytes(rec.Body.Bytes()) {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	})
}
