package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A body of JSON is read by every route whose operation says so: a new one is fuzzed from the day on which it is described, which TestEveryRouteIsDescribed
// asks for. Text commands and tables are read here, too; files are read by plugins, which have fuzzers of their own.
type fuzzedRoute struct {
	method, path string // of the route table
	target       string // with a name for each parameter
	kind         string // Content-Type
}

func fuzzedRoutes(s *Server) []fuzzedRoute {
	bodies := map[string]string{}
	for _, group := range operations() {
		for _, op := range group.operations {
			bodies[shape(op.method, op.path)] = op.body
		}
	}
	var all []fuzzedRoute
	for _, rt := range s.routes() {
		if body := bodies[shape(rt.method, rt.path)]; rt.method != get && body != "" && !strings.Contains(body, "multipart/") {
			f := fuzzedRoute{rt.method, rt.path, fuzzedTarget(rt.path), "application/json"}
			if kind, _, _ := strings.Cut(strings.Fields(body)[0], ":"); strings.Contains(kind, "/") {
				f.kind = kind
			}
			all = append(all, f)
		}
	}
	return all
}

// fuzzedTarget fills the parameters of a path with names that exist in the world of the fuzzer.
func fuzzedTarget(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		switch segment {
		case ":entity":
			segments[i] = "e"
		case ":metric":
			segments[i] = "m"
		case ":format":
			segments[i] = "json"
		default:
			if segment != "" && strings.ContainsRune(":*", rune(segment[0])) {
				segments[i] = "x"
			}
		}
	}
	return strings.Join(segments, "/")
}

// JSON alone makes the list worth its test.
func TestFuzzedRoutes(t *testing.T) {
	var paths []string
	for _, f := range fuzzedRoutes(newWorld(t, Limits{}).server) {
		if f.kind == "application/json" {
			paths = append(paths, f.method+" "+f.path)
		}
	}
	for _, want := range []string{"POST /api/v1/series/insert", "PATCH /api/v1/metrics/:metric", "PUT /api/v1/admin/users/:name", "POST /api/v1/messages/webhook/*path"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not among the fuzzed routes %q", want, paths)
		}
	}
}

// fuzzSeconds bounds one request, whatever the body is: limits.time of the fuzzed server is a fifth of it.
const fuzzSeconds = 10 * time.Second

// fuzzLimits are small enough for a body to reach them.
var fuzzLimits = Limits{Body: 1 << 20, Records: 1000, Samples: 100_000, Forecast: 1000, Response: 1 << 20, Time: fuzzSeconds / 5}

// FuzzBodies sends any bytes to any route that reads a body. Whatever they are, the answer comes in time, is no fault of the server, is JSON when it says so, and
// tells an error in the contract's form. TIDEMARK_FUZZ_ROUTE pins all inputs to the routes whose "METHOD path" holds it.
func FuzzBodies(f *testing.F) {
	w := fuzzWorld(f)
	routes := fuzzedRoutes(w.server)
	if pinned := os.Getenv("TIDEMARK_FUZZ_ROUTE"); pinned != "" {
		routes = slices.DeleteFunc(routes, func(r fuzzedRoute) bool { return !strings.Contains(r.method+" "+r.path, pinned) })
		if len(routes) == 0 {
			f.Fatalf("no route that reads a body holds %q", pinned)
		}
	}
	seedBodies(f, routes, w.server)
	inputs := 0
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		if inputs++; inputs%2000 == 0 {
			w = fuzzWorld(t) // what was stored before would make queries slower and slower, and a changed account locks everybody out
		}
		fuzzRoute(t, w, routes[int(route)%len(routes)], body)
	})
}

// fuzzWorld has an object for each name in the targets.
func fuzzWorld(t testing.TB) *world {
	w := newWorld(t, fuzzLimits)
	for _, setup := range [][3]string{
		{post, "/api/v1/series/insert", `[{"entity":"e","metric":"m","tags":{"a":"b"},"data":[{"t":1903910300000,"v":1},{"t":1903910360000,"v":2}]}]`},
		{post, "/api/v1/properties/insert", `[{"entity":"e","type":"t","key":{"k":"1"},"tags":{"a":"b"}}]`},
		{post, "/api/v1/messages/insert", `[{"entity":"e","type":"t","message":"m"}]`},
		{put, "/api/v1/entity-groups/x", `{}`}, {put, "/api/v1/replacement-tables/x", `{"keys":{"a":"b"}}`}, {put, adminPath + "users/x", `{"password":"long-enough-1"}`}, {put, adminPath + "user-groups/x", `{}`},
	} {
		if rec := w.do("admin", setup[0], setup[1], setup[2]); rec.Code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", setup[0], setup[1], rec.Code, rec.Body)
		}
	}
	return w
}

// seedBodies takes the bodies of the scenario files, a few of each route and the short ones of them: the fuzzer mixes better what it can hold.
func seedBodies(f *testing.F, routes []fuzzedRoute, s *Server) {
	files, err := filepath.Glob("testdata/*.http")
	if err != nil {
		f.Fatal(err)
	}
	const (
		most    = 12 // of a route
		longest = 2000
	)
	seeds := map[int]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		_, cases := parseScenarios(f, string(text))
		for _, sc := range cases {
			rt := routeOf(s, sc.method, sc.target)
			if rt == nil || sc.body == "" || len(sc.body) > longest {
				continue
			}
			i := slices.IndexFunc(routes, func(r fuzzedRoute) bool { return r.method == rt.method && r.path == rt.path })
			if i >= 0 && seeds[i] < most {
				seeds[i]++
				f.Add(uint8(i), sc.body)
			}
		}
	}
	for i := range routes {
		if seeds[i] == 0 {
			f.Add(uint8(i), `[{"a":{"b":[1,"2",null]}}]`)
		}
	}
}

func fuzzRoute(t *testing.T, w *world, route fuzzedRoute, body string) {
	r := httptest.NewRequest(route.method, route.target, strings.NewReader(body))
	r.SetBasicAuth("admin", password)
	r.Header.Set("Content-Type", route.kind)
	rec := httptest.NewRecorder()
	begin := time.Now()
	w.server.ServeHTTP(rec, r)
	if took := time.Since(begin); took > fuzzSeconds {
		t.Errorf("%s %s takes %s\nbody %q", route.method, route.target, took, body)
	}
	if rec.Code >= 500 && rec.Code != http.StatusNotImplemented && rec.Code != http.StatusServiceUnavailable {
		t.Fatalf("%s %s: %d %s\nbody %q\nlog %s", route.method, route.target, rec.Code, rec.Body, body, w.logged)
	}
	isJSON := strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json")
	if isJSON && !json.Valid(rec.Body.Bytes()) {
		t.Fatalf("%s %s answers with invalid JSON: %s\nbody %q", route.method, route.target, rec.Body, body)
	}
	if rec.Code < 400 {
		return
	}
	var answer struct {
		Error  any   `json:"error"`
		Code   any   `json:"code"`   // of InfluxDB
		Errors []any `json:"errors"` // of SQL, whose CSV has them as a comment
	}
	text := rec.Body.Bytes()
	if commented, ok := bytes.CutPrefix(text, []byte("#")); ok && strings.HasPrefix(route.target, "/api/sql") {
		text, isJSON = commented, true
	}
	if err := json.Unmarshal(text, &answer); !isJSON || err != nil && text[0] == '{' || answer.Error == nil && answer.Code == nil && answer.Errors == nil {
		t.Fatalf("%s %s: an error without its text: %d %s\nbody %q", route.method, route.target, rec.Code, rec.Body, body)
	}
}
