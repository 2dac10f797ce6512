package api

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core/selfmetrics"
)

// packedDo sends a body that is compressed, or says so.
func (w *world) packedDo(method, target string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	r.SetBasicAuth("admin", password)
	r.Header.Set("Content-Encoding", "gzip")
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// A body that is damaged anywhere is refused as a whole, on every way by which bodies are read.
func TestDamagedGzip(t *testing.T) {
	texts := map[string]string{
		"/api/v1/messages/insert":   `[{"entity":"e","message":"` + strings.Repeat("long enough to have blocks ", 20) + `"}]`,
		"/api/v1/series/csv/e":      "time,m\n1,1\n",
		"/api/v1/csv?config=blocks": "entity,metric,time,value\ne,m,1,1\n",
	}
	for target, text := range texts {
		good := gzipOf([]byte(text))
		wrongSum, wrongSize := slices.Clone(good), slices.Clone(good)
		wrongSum[len(good)-8] ^= 1
		wrongSize[len(good)-4] ^= 1
		for _, tt := range []struct {
			name string
			body []byte
			ok   bool
		}{
			{"whole", good, true},
			{"two members are one text", slices.Concat(gzipOf([]byte(text[:9])), gzipOf([]byte(text[9:]))), true},
			{"a wrong checksum", wrongSum, false},
			{"a wrong length", wrongSize, false},
			{"without its end", good[:len(good)-9], false},
			{"without its checksum", good[:len(good)-8], false},
			{"the header alone", good[:10], false},
			{"something behind it", append(slices.Clone(good), "something"...), false},
			{"packed twice", gzipOf(good), false},
		} {
			w := newWorld(t, Limits{})
			w.server.Parser = blockParser{}
			rec := w.packedDo("POST", target, tt.body)
			if tt.name == "packed twice" && strings.HasPrefix(target, "/api/v1/csv") {
				continue // a file may be a gzip file itself
			}
			if ok := rec.Code < 300; ok != tt.ok || !ok && rec.Code != http.StatusBadRequest {
				t.Errorf("%s, %s: %d %s", target, tt.name, rec.Code, rec.Body)
			}
			if !tt.ok && w.log.appends > 1 { // the first one is that of newWorld
				t.Errorf("%s, %s: a part of it was stored", target, tt.name)
			}
		}
	}
}

// Whatever route reads it, a bomb stops at its limit, brackets stop at theirs, and text that is no UTF-8 is refused.
func TestHostileBodiesOnEveryRoute(t *testing.T) {
	w := newWorld(t, Limits{Body: 1 << 20})
	bomb := gzipOf(bytes.Repeat([]byte(" "), 2<<20))
	deep := strings.Repeat("[", 1_000_000)
	for _, route := range fuzzedRoutes(w.server) {
		if route.kind != "application/json" {
			continue
		}
		if rec := w.packedDo(route.method, route.target, bomb); rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), "limits.body") {
			t.Errorf("%s %s takes a bomb: %d %s", route.method, route.path, rec.Code, rec.Body)
		}
		if rec := w.do("admin", route.method, route.target, deep); rec.Code != http.StatusBadRequest {
			t.Errorf("%s %s takes a million brackets: %d %s", route.method, route.path, rec.Code, rec.Body)
		}
		if strings.HasPrefix(route.path, webhookPath) {
			continue // which takes any text for what a foreign service says
		}
		if rec := w.do("admin", route.method, route.target, "[{\"entity\":\"a\xffb\",\"name\":\"a\xffb\"}]"); rec.Code != http.StatusBadRequest {
			t.Errorf("%s %s takes text that is no UTF-8: %d %s", route.method, route.path, rec.Code, rec.Body)
		}
	}
}

// A zip that is many times its size, by one file or by many, stops at limits.upload.
func TestZipBombs(t *testing.T) {
	file := bytes.Repeat([]byte(strings.Repeat("x", 1023)+"\n"), 1<<7)
	for _, files := range []int{1, 40} {
		var out bytes.Buffer
		zw := zip.NewWriter(&out)
		for i := range files {
			f, err := zw.Create(fmt.Sprintf("../../%d.csv", i))
			if err != nil {
				t.Fatal(err)
			}
			for range 80 / files {
				f.Write(file)
			}
		}
		zw.Close() // a buffer takes everything
		w := newWorld(t, Limits{Upload: 4 << 20})
		rec := w.do("admin", "POST", "/api/v1/csv?config=lines&filename=x.zip", out.String())
		if rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), "limits.upload") {
			t.Errorf("%d files: %d %s", files, rec.Code, rec.Body)
		}
	}
}

// No expression, pattern or query keeps the server busy for longer than limits.time, by far.
func TestExpressionsEnd(t *testing.T) {
	w := newWorld(t, Limits{Time: 200 * time.Millisecond})
	long := strings.Repeat("a", 20_000)
	for _, setup := range [][2]string{
		{"/api/v1/series/insert", `[{"entity":"` + long + `","metric":"m","tags":{"t":"` + long + `"},"data":[{"t":1,"v":1}]}]`},
		{"/api/v1/messages/insert", `[{"entity":"` + long + `","type":"t","tags":{"t":"` + long + `"},"message":"` + long + `","date":"2030-05-01T23:00:00Z"}]`},
	} {
		if rec := w.do("admin", "POST", setup[0], setup[1]); rec.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", setup[0], rec.Code, rec.Body)
		}
	}
	stars := strings.Repeat("*a", 5000) + "b"
	marks := strings.Repeat("?*", 5000) + "b"
	optional := strings.Repeat("a?", 2000) + strings.Repeat("a", 2000) + "b"
	nested := strings.Repeat("(", 500) + "a" + strings.Repeat("*)", 500) + "b"
	many := strings.Repeat("name != 'x' AND ", 5000) + "name = 'y'"
	nots := strings.Repeat("NOT ", 50_000) + "name = 'y'"
	brackets := strings.Repeat("(", 50_000) + "name = 'y'" + strings.Repeat(")", 50_000)
	var expressions []string
	for _, p := range []string{stars, marks} {
		expressions = append(expressions, "name LIKE '"+p+"'", "likeAny(name, ['"+p+"','"+p+"'])")
	}
	for _, p := range []string{optional, nested, "(a|aa)*b", "(a{1,1000}){1,1000}b", "(?:(?:a{1,100}){1,100}){1,100}"} {
		expressions = append(expressions, "regexAny(name, ['"+p+"'])", "name REGEX '"+p+"'")
	}
	expressions = append(expressions, many, nots, brackets)
	for _, x := range expressions {
		query := fmt.Sprintf(`"startDate":"1970-01-01T00:00:00Z","endDate":"now","entityExpression":%q`, x)
		tags := fmt.Sprintf(`"startDate":"1970-01-01T00:00:00Z","endDate":"now","entity":"*","tagExpression":%q`, strings.ReplaceAll(x, "name", "tags.t"))
		text := fmt.Sprintf(`"startDate":"1970-01-01T00:00:00Z","endDate":"now","entity":"*","expression":%q`, strings.ReplaceAll(x, "name", "message"))
		for target, body := range map[string]string{
			"/api/v1/series/query": `[{"metric":"m",` + query + `},{"metric":"m",` + tags + `}]`, "/api/v1/messages/query": `[{` + query + `},{` + text + `}]`,
			"/api/v1/entity-groups/g": fmt.Sprintf(`{"expression":%q}`, x),
		} {
			method := post
			if strings.HasSuffix(target, "/g") {
				method = put
			}
			begin := selfmetrics.ProcessorTime()
			rec := w.do("admin", method, target, body)
			if took := selfmetrics.ProcessorTime() - begin; took > 3*time.Second {
				t.Errorf("%s is busy for %s with %s", target, took, excerpt(x))
			}
			if rec.Code >= 500 && rec.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
			}
		}
	}
	for _, field := range []string{`"entity":"` + stars + `"`, `"entity":"*","tags":{"t":"` + stars + `"}`, `"entity":"*","tags":{"t":["` + marks + `","` + stars + `"]}`} {
		begin := selfmetrics.ProcessorTime()
		w.do("admin", "POST", "/api/v1/series/query", `[{"metric":"m","startDate":"1970-01-01T00:00:00Z","endDate":"now",`+field+`}]`)
		if took := selfmetrics.ProcessorTime() - begin; took > 3*time.Second {
			t.Errorf("a pattern keeps the server busy for %s: %s", took, excerpt(field))
		}
	}
}

// No parameter gets a line break into a header of the answer.
func TestHeadersStayWhole(t *testing.T) {
	w := newWorld(t, Limits{})
	const evil = "x%0d%0aX-Evil:%201%0d%0a%0d%0ax%00"
	for _, rt := range w.server.routes() {
		target := rt.path
		for segment := range strings.SplitSeq(rt.path, "/") {
			if segment != "" && strings.ContainsRune(":*", rune(segment[0])) && segment != ":format" {
				target = strings.Replace(target, segment, evil, 1)
			}
		}
		target = strings.Replace(target, ":format", "csv", 1) + "?"
		for _, name := range []string{"name", "user", "username", "userBean.username", "config", "filename", "f", "entity", "q", "query", "id", "v", "path", "tags", "t:" + evil, evil} {
			target += "&" + name + "=" + evil
		}
		target += "&settings=" + url.QueryEscape(`{"m":"a\r\nX-Evil: 1","e":"a\"\r\nX-Evil: 1","st":"now-1*day"}`)
		rec := w.do("admin", rt.method, target, `{"author":"a\r\nX-Evil: 1","name":"a\r\nX-Evil: 1"}`)
		for name, values := range rec.Header() {
			if strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
				t.Errorf("%s %s: header %q is %q", rt.method, rt.path, name, values)
			}
		}
		if rec.Code == http.StatusInternalServerError {
			t.Errorf("%s %s: %s\n%s", rt.method, rt.path, rec.Body, w.logged)
		}
	}
}

// exchange sends raw bytes on one connection and returns the answers to n requests.
func exchange(t *testing.T, address, raw string, n int) []*http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	var answers []*http.Response
	in := bufio.NewReader(conn)
	for range n {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		answers = append(answers, res)
	}
	return answers
}

func login(user string) string {
	return "Host: x\r\nAuthorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
}

func TestRawRequests(t *testing.T) {
	w := newWorld(t, Limits{})
	server := httptest.NewServer(w.server)
	defer server.Close()
	message := `[{"entity":"e","message":"m"}]`
	const insert = "POST /api/v1/messages/insert HTTP/1.1\r\n"
	sized := fmt.Sprintf("Content-Length: %d\r\n", len(message))
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n", len(message), message)
	for _, tt := range []struct {
		name, raw string
		statuses  []int
	}{
		{"chunks", insert + login("admin") + chunked + "\r\n", []int{200}},
		{"chunks with trailers", insert + login("admin") + "Trailer: X-Sum\r\n" + chunked + "X-Sum: 1\r\n\r\n", []int{200}},
		{"chunks that are damaged", insert + login("admin") + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", []int{400}},
		{"length and chunks at once: chunks count, as the standard says", insert + login("admin") + "Content-Length: 3\r\n" + chunked + "\r\n", []int{200}},
		{"two lengths", insert + login("admin") + sized + "Content-Length: 3\r\n\r\n" + message, []int{400}},
		{"a negative length", insert + login("admin") + "Content-Length: -1\r\n\r\n", []int{400}},
		{"no host", "GET /api/v1/ping HTTP/1.1\r\n\r\n", []int{400}},
		{"asks before it sends", insert + login("admin") + "Expect: 100-continue\r\n" + sized + "\r\n" + message, []int{100, 200}},
		{"asks before it sends, but may not", insert + login("reader") + "Expect: 100-continue\r\n" + sized + "\r\n", []int{403}},
		{"asks before it sends, with a bad password", insert + "Host: x\r\nAuthorization: Basic YWRtaW46d3Jvbmc=\r\nExpect: 100-continue\r\n" + sized + "\r\n", []int{401}},
		{"expects what nobody gives", insert + login("admin") + "Expect: tea\r\n" + sized + "\r\n" + message, []int{417}},
		{"three requests at once", strings.Repeat(insert+login("admin")+sized+"\r\n"+message, 3), []int{200, 200, 200}},
		{"a refused request leaves the next one whole", insert + login("reader") + sized + "\r\n" + message + "GET /api/v1/ping HTTP/1.1\r\n" + login("admin") + "\r\n", []int{403, 200}},
		{"a blank in a name of a header", "GET /api/v1/ping HTTP/1.1\r\nX Y: 1\r\n" + login("admin") + "\r\n", []int{400}},
		{"a header line that goes on is one value", "GET /api/v1/ping HTTP/1.1\r\n" + login("admin") + "X-Long: a\r\n b\r\n\r\n", []int{200}},
		{"a target that is no path", "GET api/v1/ping HTTP/1.1\r\n" + login("admin") + "\r\n", []int{400}},
		{"the target of a proxy", "GET http://other/api/v1/ping HTTP/1.1\r\n" + login("admin") + "\r\n", []int{200}},
		{"the target of OPTIONS for all", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", []int{200}},
		{"an old protocol", "GET /api/v1/ping HTTP/1.0\r\n" + login("admin") + "\r\n", []int{200}},
		{"control characters in a target", "GET /api/v1/p\x01ng HTTP/1.1\r\n" + login("admin") + "\r\n", []int{400}},
		{"a fragment is no part of a target", "GET /api/v1/ping%23x HTTP/1.1\r\n" + login("admin") + "\r\n", []int{404}},
	} {
		for i, res := range exchange(t, server.Listener.Addr().String(), tt.raw, len(tt.statuses)) {
			if res.StatusCode != tt.statuses[i] {
				body, _ := io.ReadAll(res.Body)
				t.Errorf("%s: answer %d is %d %s, want %d", tt.name, i, res.StatusCode, body, tt.statuses[i])
			}
		}
	}
}

// Clients that send slowly, or nothing, do not disturb others. TIDEMARK_SLOW_CLIENTS=full makes them 200 and 2,000.
func TestSlowClients(t *testing.T) {
	slow, idle := 20, 200
	if os.Getenv("TIDEMARK_SLOW_CLIENTS") == "full" {
		slow, idle = 200, 2000
	}
	w := newWorld(t, Limits{})
	server := httptest.NewServer(w.server)
	defer server.Close()
	address := server.Listener.Addr().String()
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	message := `[{"entity":"slow","message":"m"}]`
	head := fmt.Sprintf("POST /api/v1/messages/insert HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", login("admin"), len(message), message[:5])
	for i := range slow + idle {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		held = append(held, conn)
		if i < slow {
			if _, err := io.WriteString(conn, head); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 {
		begin := time.Now()
		quick := strings.ReplaceAll(message, "slow", "quick")
		raw := fmt.Sprintf("POST /api/v1/messages/insert HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", login("admin"), len(quick), quick)
		if res := exchange(t, address, raw, 1)[0]; res.StatusCode != http.StatusOK {
			t.Fatalf("a quick client gets %d", res.StatusCode)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("a quick client waits %s", took)
		}
	}
	for i, conn := range held[:slow] { // each of them is served in the end
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(conn, message[5:])
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("slow client %d: %v %v", i, res, err)
		}
	}
	if held := w.server.held.Load(); held != 0 {
		t.Errorf("%d bytes of bodies are still counted", held)
	}
}

// A bomb of bombs: what an upload unpacks is one level, the next one is data.
func TestNestedUpload(t *testing.T) {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	zw.Write(gzipOf(bytes.Repeat([]byte("x\n"), 1<<20)))
	zw.Close() // a buffer takes everything
	w := newWorld(t, Limits{Upload: 1 << 16})
	if rec := w.do("admin", "POST", "/api/v1/csv?config=lines&filename=x.csv.gz", out.String()); rec.Code >= 500 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
