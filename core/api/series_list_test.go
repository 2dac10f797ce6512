package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// The series list is the one list that is bounded unless a limit is given: 5000 items, where the contract's reference has fewer.
func TestSeriesListLimits(t *testing.T) {
	w := newWorld(t, Limits{})
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for i := range defaultSeriesLimit + 7 {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e", Tags: core.Tags{{Name: "i", Value: fmt.Sprint(i)}}}), 1000, 1)
	}
	if _, err := w.log.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"": 5000, "?limit=": 5000, "?limit=3": 3, "?limit=5003": 5003, "?limit=0": 5007, "?limit=-1": 5007} {
		body := w.do("admin", get, "/api/v1/metrics/m/series"+query, "").Body.String()
		if got := strings.Count(body, `"entity":"e"`); got != want {
			t.Errorf("%q: %d series, want %d", query, got, want)
		}
	}
}

func TestInsertTimeDefault(t *testing.T) {
	w := newWorld(t, Limits{})
	w.do("admin", post, "/api/v1/series/insert", `[{"entity":"e","metric":"m","data":[{"t":1000,"v":1}]}]`)
	w.server.HideInsertTime = true
	for target, want := range map[string]bool{
		"/api/v1/entities": false, "/api/v1/entities/e": false, "/api/v1/metrics": false, "/api/v1/entities/e/metrics": false,
		"/api/v1/metrics/m?addInsertTime=true": true, "/api/v1/entities?addInsertTime=TRUE": true, "/api/v1/metrics/m/series": true,
	} {
		body := w.do("admin", get, target, "").Body.String()
		if got := strings.Contains(body, `"lastInsertDate":"1970-01-01T00:00:01.000Z"`); got != want {
			t.Errorf("%s: lastInsertDate %v, want %v: %s", target, got, want, body)
		}
	}
}
