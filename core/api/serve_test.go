package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// concrete makes a path of a route pattern.
func concrete(pattern string) string {
	return regexp.MustCompile(`[:*]\w+`).ReplaceAllString(pattern, "x")
}

// Every route but /health, the /ping of InfluxDB agents, and the description of the interface wants credentials, and exactly the roles of the table.
func TestRoleMatrix(t *testing.T) {
	w := newWorld(t, Limits{})
	for _, rt := range w.server.routes() {
		path := concrete(rt.path)
		rec := w.do("", rt.method, path, "")
		if rt.role == core.Public {
			if path != "/health" && path != "/ping" && path != openAPIPath || rec.Code/100 != 2 {
				t.Errorf("%s %s is public and answers %d", rt.method, path, rec.Code)
			}
			continue
		}
		if rec.Code != http.StatusUnauthorized || rec.Body.String() != `{"error":"code 03"}` {
			t.Errorf("%s %s without credentials: %d %s", rt.method, path, rec.Code, rec.Body)
		}
		for user, names := range userRoles {
			if user == "tom" {
				continue // lacks entity permissions, too, which would look the same
			}
			var roles core.Roles
			for _, name := range names {
				role, _ := core.ParseRole(name)
				roles |= role
			}
			allowed := roles.Expand().Has(rt.role)
			if path == "/api/v1/command" { // either of two roles
				allowed = roles.Expand()&(core.DataWrite|core.MetaWrite) != 0
			}
			rec := w.do(user, rt.method, path, "")
			if denied := rec.Code == http.StatusForbidden; denied == allowed {
				t.Errorf("%s %s as %s: %d %s", rt.method, path, user, rec.Code, rec.Body)
			}
			if !allowed && rec.Body.String() != `{"error":"code 15"}` {
				t.Errorf("%s %s as %s: body %s", rt.method, path, user, rec.Body)
			}
		}
	}
}

// No route of the table hides another one.
func TestRoutesAreReachable(t *testing.T) {
	w := newWorld(t, Limits{})
	for _, rt := range w.server.routes() {
		rec := w.do("admin", rt.method, concrete(rt.path), "")
		if rec.Code == http.StatusNotFound && strings.HasPrefix(rec.Body.String(), `{"error":"not found:`) || rec.Code == http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d %s", rt.method, rt.path, rec.Code, rec.Body)
		}
	}
}

func TestSession(t *testing.T) {
	w := newWorld(t, Limits{})
	rec := w.do("eva", "GET", "/api/v1/ping", "")
	cookies := rec.Result().Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "/" || cookies[0].Secure {
		t.Fatalf("cookies %v", cookies)
	}
	send := func(method, target string, headers ...string) int {
		r := httptest.NewRequest(method, target, strings.NewReader("[]"))
		r.AddCookie(cookies[0])
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, r)
		return rec.Code
	}
	const hook, insert = "/api/v1/messages/webhook/e", "/api/v1/messages/insert"
	for _, tt := range []struct {
		method, target string
		headers        []string
		want           int
	}{
		{"GET", "/api/v1/ping", nil, 200},
		{"GET", "/api/v1/ping", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{"POST", insert, nil, 200},
		{"POST", insert, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", insert, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", insert, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"POST", insert, []string{"Origin", "http://example.com"}, 200}, // httptest's host
		{"POST", insert, []string{"Origin", "http://evil.example"}, 403},
		{"POST", insert, []string{"Origin", "null"}, 403},
		{"GET", hook, []string{"Referer", "http://evil.example/page"}, 403},
		{"GET", hook, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", hook, []string{"Sec-Fetch-Site", "none"}, 200},
		// A wrong header is refused although the cookie is good.
		{"GET", "/api/v1/ping", []string{"Authorization", "Basic ZXZhOndyb25n"}, 401},
		{"GET", "/api/v1/ping", []string{"Authorization", "Bearer x"}, 401},
	} {
		if got := send(tt.method, tt.target, tt.headers...); got != tt.want {
			t.Errorf("%s %s %v: %d, want %d", tt.method, tt.target, tt.headers, got, tt.want)
		}
	}
	// With a password of its own a request may come from anywhere.
	r := httptest.NewRequest("POST", insert, strings.NewReader("[]"))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.SetBasicAuth("eva", password)
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, r)
	if answer.Code != 200 {
		t.Errorf("with credentials: %d", answer.Code)
	}
}

// A body of ten million brackets is a 400 that names the limit, whatever reads it.
func TestDeepJSON(t *testing.T) {
	w := newWorld(t, Limits{})
	deep := strings.Repeat("[", 10_000_000)
	for target, status := range map[string]int{
		"/api/v1/series/insert": 400, "/api/v1/series/query": 400, "/api/v1/messages/query": 400, "/api/v1/metrics/m/rename": 400,
		"/api/v1/messages/webhook/x": 400,
	} {
		rec := w.do("admin", "POST", target, deep)
		if rec.Code != status {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
	rec := w.do("admin", "POST", "/api/v1/series/insert", deep)
	if want := `{"error":"JSON is nested deeper than limits.depth (64 levels)"}`; rec.Body.String() != want {
		t.Errorf("body %s, want %s", rec.Body, want)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, Limits{Body: 1000, Upload: 2000, Records: 2, Depth: 5, Line: 100, Response: 300, Rejects: 1})
	sample := `[{"entity":"e","metric":"m","data":[{"t":1,"v":1},{"t":2,"v":2},{"t":3,"v":3}]}]`
	message := `{"entity":"e","message":"m"}`
	for _, tt := range []struct {
		name, method, target, body string
		status                     int
		text                       string
	}{
		{"body", "POST", "/api/v1/messages/insert", "[" + strings.Repeat(" ", 1000) + "]", 413, "limits.body"},
		{"body of the limit", "POST", "/api/v1/messages/insert", "[" + strings.Repeat(" ", 998) + "]", 200, ""},
		{"depth", "POST", "/api/v1/messages/insert", `[[[[[["x"]]]]]]`, 400, "limits.depth"},
		{"samples", "POST", "/api/v1/series/insert", sample, 413, "limits.records"},
		{"messages", "POST", "/api/v1/messages/insert", "[" + message + "," + message + "," + message + "]", 413, "limits.records"},
		{"rows", "POST", "/api/v1/series/csv/e", "time,m\n1,1\n2,2\n3,3\n", 413, "limits.records"},
		{"upload", "POST", "/api/v1/csv?config=lines", strings.Repeat("x\n", 1001), 413, "limits.upload"},
		{"line", "POST", "/api/v1/command", "message e:e m:" + strings.Repeat("x", 100), 200, `{"fail":1,"success":0,"total":1}`},
		{"response", "GET", "/api/v1/properties/e/types/t", "", 413, "limits.response"},
	} {
		if tt.name == "response" {
			big := fmt.Sprintf(`[{"type":"t","entity":"e","tags":{"a":"%s"}}]`, strings.Repeat("x", 300))
			if rec := w.do("admin", "POST", "/api/v1/properties/insert", big); rec.Code != 200 {
				t.Fatal(rec.Body)
			}
		}
		rec := w.do("admin", tt.method, tt.target, tt.body)
		if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.text) {
			t.Errorf("%s: %d %s, want %d with %q", tt.name, rec.Code, rec.Body, tt.status, tt.text)
		}
	}
}

// A compressed body is bounded by what comes out of it, while it comes out.
func TestGzipBomb(t *testing.T) {
	w := newWorld(t, Limits{Body: 1 << 20})
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	block := make([]byte, 1<<20)
	for range 64 {
		zw.Write(block)
	}
	zw.Close()
	r := httptest.NewRequest("POST", "/api/v1/series/insert", &packed)
	r.Header.Set("Content-Encoding", "gzip")
	r.SetBasicAuth("admin", password)
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	if rec.Code != 413 || !strings.Contains(rec.Body.String(), "limits.body") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if held := w.server.held.Load(); held != 0 {
		t.Errorf("%d bytes are still held after the request", held)
	}
}

// All bodies together are bounded: a request among too many is asked to come back, a small one only when an eighth more is taken, too.
func TestBodiesTogether(t *testing.T) {
	w := newWorld(t, Limits{Bodies: 1 << 20})
	w.server.held.Store(1<<20 - 10)
	if rec := w.do("admin", "POST", "/api/v1/messages/insert", "[]"); rec.Code != 200 {
		t.Errorf("a small one: %d %s", rec.Code, rec.Body)
	}
	w.server.held.Store(1<<20 + 1<<17 - 10)
	rec := w.do("admin", "POST", "/api/v1/messages/insert", "[]")
	if rec.Code != 503 || rec.Header().Get("Retry-After") != "1" || !strings.Contains(rec.Body.String(), "limits.bodies") {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

// Each code has its status; the cause of a fault goes to the log and not to the user.
func TestErrors(t *testing.T) {
	secret := errors.New("open /var/lib/secret: permission denied")
	for _, tt := range []struct {
		err    error
		status int
		text   string
	}{
		{secret, 500, "internal error"},
		{core.Wrap(core.Internal, secret, "text of an internal error"), 500, "internal error"},
		{core.Wrap(core.NoSpace, secret, "the disk is full"), 507, "the disk is full"},
		{core.Errorf(core.Unavailable, "starting"), 503, "starting"},
		{fmt.Errorf("append: %w", core.Errorf(core.TooLarge, "too large")), 413, "too large"},
		{core.Errorf(core.Forbidden, "no permission for e"), 403, "code 15"},
		{context.DeadlineExceeded, 503, "request canceled"},
	} {
		w := newWorld(t, Limits{})
		w.log.fail = tt.err
		rec := w.do("admin", "POST", "/api/v1/messages/insert", `[{"entity":"e","message":"m"}]`)
		if body := rec.Body.String(); rec.Code != tt.status || !strings.HasPrefix(body, `{"error":"`+tt.text) || strings.Contains(body, "secret") {
			t.Errorf("%v: %d %s, want %d %s", tt.err, rec.Code, body, tt.status, tt.text)
		}
		if errors.Is(tt.err, secret) && !strings.Contains(w.logged.String(), "permission denied") {
			t.Errorf("%v: the log does not name the cause: %s", tt.err, w.logged)
		}
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for code := core.Internal; code.String() != fmt.Sprintf("code %d", uint8(code)); code++ {
		if statuses[code] == 0 {
			t.Errorf("code %q has no status", code)
		}
	}
}

type panicking struct{ core.Reader }

// A panic ends its request only.
func TestPanic(t *testing.T) {
	w := newWorld(t, Limits{})
	w.server.Reader = panicking{}
	rec := w.do("admin", "GET", "/api/v1/entity-groups", "")
	if rec.Code != 500 || !strings.HasPrefix(rec.Body.String(), `{"error":"internal error, see the server log for request `) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if !strings.Contains(w.logged.String(), "panic in a request") {
		t.Errorf("log: %s", w.logged)
	}
	if rec := w.do("admin", "GET", "/api/v1/ping", ""); rec.Code != 200 {
		t.Errorf("after the panic: %d", rec.Code)
	}
}

func TestHealthStates(t *testing.T) {
	w := newWorld(t, Limits{})
	w.server.Health = func() Health { return Health{Status: "degraded", Problems: []string{"rules lag"}} }
	if rec := w.do("", "GET", "/health", ""); rec.Code != 200 || rec.Body.String() != `{"status":"degraded","problems":["rules lag"]}` {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.server.Health = func() Health { return Health{Status: "starting", Unready: true} }
	if rec := w.do("", "GET", "/health", ""); rec.Code != 503 || rec.Body.String() != `{"status":"starting"}` || rec.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestMetricsText(t *testing.T) {
	w := newWorld(t, Limits{})
	w.server.Metrics = func(out io.Writer) { fmt.Fprintln(out, "tidemark_more 1") }
	w.do("admin", "GET", "/api/v1/entities/x", "")
	w.do("admin", "GET", "/api/v1/entities/y", "")
	text := w.do("admin", "GET", "/metrics", "").Body.String()
	for _, want := range []string{
		"tidemark_http_requests_total{method=\"GET\",route=\"/api/v1/entities/:entity\",code=\"404\"} 2\n",
		"tidemark_more 1\n", "tidemark_http_body_bytes 0\n", "tidemark_http_request_duration_seconds_count{route=\"/api/v1/entities/:entity\"} 2\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// An endless request of commands is stored line by line, and its markers can be asked for while it runs.
func TestCommandStream(t *testing.T) {
	w := newWorld(t, Limits{})
	in, out := io.Pipe()
	r := httptest.NewRequest("POST", "/api/v1/command", in)
	r.ContentLength = -1
	r.SetBasicAuth("admin", password)
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.server.ServeHTTP(rec, r)
	}()
	io.WriteString(out, "marker m1\nseries e:s m:m=1 ms:1\nping\nbad\n")
	io.WriteString(out, "\n") // the server takes it when it asks for more, after it has stored what it had
	if got := w.do("admin", "GET", "/api/v1/command/marker?v=m1", "").Body.String(); got != `{"marker":"m1","count":3}` {
		t.Errorf("while the request is open: %s", got)
	}
	if got := w.do("admin", "GET", "/api/v1/series/csv/s/m?startTime=0&endTime=9&columns=value", "").Body.String(); got != "value\n1\n" {
		t.Errorf("the sample is not stored while the request is open: %q", got)
	}
	io.WriteString(out, "series e:s m:m=2 ms:2")
	out.Close()
	<-done
	if got := rec.Body.String(); rec.Code != 200 || got != `{"fail":1,"success":2,"total":3}` {
		t.Errorf("answer %d %s", rec.Code, got)
	}
	if got := w.do("admin", "GET", "/api/v1/command/marker?v=m1", "").Body.String(); got != `{"marker":"m1","count":4}` {
		t.Errorf("after the end: %s", got)
	}
}

// A client that goes away loses nothing that it sent in whole lines.
func TestCommandStreamBreaks(t *testing.T) {
	w := newWorld(t, Limits{})
	in, out := io.Pipe()
	r := httptest.NewRequest("POST", "/api/v1/command", in)
	r.SetBasicAuth("admin", password)
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.server.ServeHTTP(rec, r)
	}()
	io.WriteString(out, "series e:s m:m=1 ms:1\nseries e:s m:m=2")
	out.CloseWithError(io.ErrUnexpectedEOF)
	<-done
	if rec.Code != 400 {
		t.Errorf("answer %d %s", rec.Code, rec.Body)
	}
	if got := w.do("admin", "GET", "/api/v1/series/csv/s/m?startTime=0&endTime=9999999999999&columns=time,value", "").Body.String(); got != "time,value\n1,1\n" {
		t.Errorf("stored: %q", got)
	}
}

// A good group costs one append; a bad command among n some 2 log2 n.
func TestCommandGroups(t *testing.T) {
	w := newWorld(t, Limits{})
	var good strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&good, "series e:e m:m=%d ms:%d\n", i, i)
	}
	before := w.log.appends
	if rec := w.do("admin", "POST", "/api/v1/command", good.String()); rec.Body.String() != `{"fail":0,"success":1000,"total":1000}` {
		t.Fatal(rec.Body)
	}
	if n := w.log.appends - before; n != 1 {
		t.Errorf("%d appends for one group", n)
	}
	// What is not the fault of a command ends the request: the client must know that nothing was stored.
	w.log.fail = core.Errorf(core.NoSpace, "the disk is full")
	if rec := w.do("admin", "POST", "/api/v1/command", good.String()); rec.Code != 507 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// What a caller may not see or do does not depend on the method he came by.
func TestDeniedIsOneText(t *testing.T) {
	if err := auth.Denied(); core.CodeOf(err) != core.Forbidden || err.Error() != "code 15" {
		t.Error(err)
	}
}

func TestZoneName(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	summer := time.Date(2030, 7, 1, 12, 0, 0, 0, time.UTC)
	for want, zone := range map[string]*time.Location{
		"Europe/Berlin": berlin, "UTC": time.UTC, "GMT+05:30": time.FixedZone("Local", 19800), "GMT-03:00": time.FixedZone("Local", -10800),
	} {
		if got := zoneName(summer.In(zone)); got != want {
			t.Errorf("%v: %s, want %s", zone, got, want)
		}
	}
	if got := zoneName(summer.In(time.FixedZone("Local", 0))); got != "UTC" {
		t.Errorf("a local zone without offset: %s", got)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{"gzip": true, "deflate, gzip;q=0.5": true, "gzip;q=0": false, "br": false, "": false, "GZIP": true, "*": false} {
		if got := acceptsGzip(http.Header{"Accept-Encoding": {header}}); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

// TestNotUTF8: a body in another encoding is refused as a whole, or texts would read back as something else.
func TestNotUTF8(t *testing.T) {
	w := newWorld(t, Limits{})
	for path, body := range map[string]string{
		"/api/v1/series/insert":     "[{\"entity\":\"e\",\"metric\":\"m\",\"data\":[{\"t\":1,\"x\":\"\xff\"}]}]",
		"/api/v1/messages/insert":   "[{\"entity\":\"e\",\"message\":\"\xc3\"}]",
		"/api/v1/properties/insert": "[{\"entity\":\"e\",\"type\":\"t\",\"tags\":{\"a\":\"\xed\xa0\x80\"}}]",
	} {
		rec := w.do("admin", "POST", path, body)
		if want := `{"error":"JsonParseException: the body is not valid UTF-8"}`; rec.Code != 400 || rec.Body.String() != want {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}
