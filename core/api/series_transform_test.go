package api

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Whatever the transformations of a query are, the answer is valid JSON and no fault of the server.
func FuzzSeriesTransformations(f *testing.F) {
	w := newWorld(f, Limits{Samples: 100_000})
	if rec := w.do("admin", http.MethodPost, "/api/v1/series/insert",
		`[{"entity":"e","metric":"m","data":[{"t":1620036000000,"v":1},{"t":1620036060000,"v":4,"x":"n"},{"t":1620036120000,"v":null},{"t":1620036300000,"v":2}]},
		{"entity":"e2","metric":"m","tags":{"k":"v"},"data":[{"t":1620036030000,"v":1.5}]}]`); rec.Code != http.StatusOK {
		f.Fatal(rec.Body)
	}
	for _, seed := range []string{
		`"interpolate":{"period":{"count":1,"unit":"MINUTE"},"function":"LINEAR","boundary":"OUTER","fill":true}`,
		`"group":{"type":"SUM","period":{"count":1,"unit":"MINUTE","align":"END_TIME"},"interpolate":{"type":"LINEAR","extend":true},"truncate":true}`,
		`"group":{"types":["MEDIAN","DETAIL"],"groupByEntityAndTags":["k"]},"aggregate":{"types":["AVG","DELTA"],"period":{"count":2,"unit":"HOUR"}}`,
		`"rate":{"period":{"count":1,"unit":"NANOSECOND"},"counter":false,"order":-1},"smooth":{"type":"EMA","range":5,"incompleteValue":"NaN","minimumCount":2}`,
		`"downsample":{"algorithm":"INTERPOLATE","ratio":2,"gap":{"count":1,"unit":"YEAR"}},"transformationOrder":["DOWNSAMPLE","RATE"]`,
		`"name":"T","series":[{"name":"B","metric":"m","entity":"e2"}],"evaluate":{"expression":"T.union(B)","order":-1},"join":{"type":"MAX","interval":"1-DAY"}`,
		`"group":{"type":"SUM","place":{"count":2,"constraint":"max() < 8","minimize":"sum()"}}`,
		`"aggregate":{"type":"THRESHOLD_PERCENT","threshold":{"max":2},"workingMinutes":{"start":0,"end":1440},"interpolate":"PREVIOUS"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, members string) {
		body := `[{"metric":"m","entity":"*","startDate":"2021-05-03T09:59:00Z","endDate":"2021-05-03T10:10:00Z",` + members + `}]`
		rec := w.do("admin", http.MethodPost, "/api/v1/series/query", body)
		if rec.Code >= 500 && rec.Code != http.StatusNotImplemented {
			t.Fatalf("%d %s\nbody %s", rec.Code, rec.Body, body)
		}
		if rec.Code == http.StatusOK && !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("invalid JSON: %s\nbody %s", rec.Body, body)
		}
	})
}
