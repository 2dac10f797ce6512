package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// fuzzed are the endpoints that read a JSON body; which one an input goes to is part of the input.
var fuzzed = []string{
	"/api/v1/series/insert", "/api/v1/series/query", "/api/v1/series/delete", "/api/v1/messages/insert", "/api/v1/messages/query",
	"/api/v1/properties/insert", "/api/v1/properties/query", "/api/v1/properties/delete", "/api/v1/alerts/query", "/api/v1/alerts/history/query",
	"/api/v1/alerts/update", "/api/v1/messages/webhook/x", "/api/v1/command", "/api/v1/series/csv/e",
}

// Whatever the body is, the answer is no fault of the server, and valid JSON when it says so.
func FuzzBodies(f *testing.F) {
	for i, seed := range []string{
		`[{"entity":"e","metric":"m","tags":{"a":"b"},"data":[{"t":1,"v":1.5,"x":"y","version":{"source":"s"}},{"d":"2030-01-01T00:00:00Z","v":"NaN"}]}]`,
		`[{"entity":"e","metric":"m","startDate":"now - 1 * day","endDate":"now","aggregate":{"types":["AVG","SUM"],"period":{"count":1,"unit":"HOUR"}}}]`,
		`[{"entity":"e","metric":"m","exactMatch":false}]`,
		`[{"entity":"e","type":"t","severity":5,"message":"m","tags":{"a":1},"date":"2030-01-01T00:00:00Z"}]`,
		`{"entity":"*","interval":{"count":1,"unit":"DAY"},"severities":["warn",1],"limit":"5","expression":"tags.a = 'b'"}`,
		`[{"entity":"e","type":"t","key":{"k":null},"tags":{"a":true}}]`,
		`[{"entity":"e","type":"t","startDate":"1970-01-01T00:00:00Z","endDate":"now","key":{"k":"v"},"last":"true","offset":1}]`,
		`[{"entity":"*","type":"t","exactMatch":false,"startTime":null}]`,
		`[{"entities":["e","p*"],"minSeverity":"FATAL","acknowledged":false}]`, `[{"rule":"*","metric":null}]`, `[{"id":1,"acknowledged":true},2]`,
		`{"a":{"b":[1,"2"]}}`, "series e:e m:m=1\nmessage e:e m:\"x\"", "time,m\n1,2\n",
	} {
		f.Add(uint8(i), seed)
	}
	w := newWorld(f, Limits{})
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		target := fuzzed[int(route)%len(fuzzed)]
		rec := w.do("admin", http.MethodPost, target, body)
		if rec.Code >= 500 && rec.Code != http.StatusNotImplemented {
			t.Fatalf("POST %s: %d %s\nbody %q\nlog %s", target, rec.Code, rec.Body, body, w.logged)
		}
		if strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") && !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("POST %s answers with invalid JSON: %s\nbody %q", target, rec.Body, body)
		}
	})
}
