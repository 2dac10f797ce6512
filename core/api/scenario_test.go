package api

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The scenario files testdata/*.http hold requests with their expected answers. Each file runs against a server of its own, from top to bottom:
//
//	# comment, anywhere before the first case
//	=== name of the case
//	POST /api/v1/series/insert
//	User: tom                          optional; admin when absent, "none" for no credentials
//	Clock: 2030-05-01T08:00:00Z        optional; sets the clock of the server from here on
//	Gzip: yes                          optional; the body is sent compressed
//	Work: yes                          optional; the uploads that wait in the background are processed before
//	Any-Header: value                  optional
//
//	the body, until
//	---
//	200
//	Any-Header: value                  optional; must be in the answer; an empty value means that it must be absent
//
//	the expected body
//
// An expected body of JSON may be broken into lines: line breaks and the blanks after them are cut. An answer that ends with a line break is
// written with a last line `$`. The files named alerts* find what seedAlerts made. A body that ends with `...` is a prefix. Lines between cases that are empty do not count.
//
// go test ./core/api -run Scenarios -rewrite replaces the expectations by what the server says, except in files that start with "# fixed": their
// answers come from the contract or a calculation by hand.
var rewrite = flag.Bool("rewrite", false, "rewrite the scenario files with the answers of the server")

type scenario struct {
	name           string
	method, target string
	user, clock    string
	gzip, work     bool
	headers        [][2]string
	body           string
	status         string
	wantHeaders    [][2]string
	want           string
	head           string // the lines before the expectation, for -rewrite
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".http"), func(t *testing.T) {
			t.Parallel()
			runScenarios(t, file)
		})
	}
}

func runScenarios(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	intro, cases := parseScenarios(t, string(text))
	w := newWorld(t, Limits{})
	if strings.HasPrefix(filepath.Base(file), "alerts") {
		w.seedAlerts(t)
	}
	w.seedAuth(t, filepath.Base(file))
	if !strings.Contains(filepath.Base(file), "portal") {
		w.server.Portals = nil // as in the examples of the contract
	}
	out := intro
	for _, sc := range cases {
		rec := runScenario(t, w, sc)
		body := shownBody(t, rec)
		var fresh strings.Builder
		fmt.Fprintf(&fresh, "%s---\n%d\n", sc.head, rec.Code)
		for _, h := range sc.wantHeaders {
			got := rec.Header().Get(h[0])
			fmt.Fprintln(&fresh, strings.TrimRight(h[0]+": "+got, " "))
			if got != h[1] && !*rewrite {
				t.Errorf("%s: header %s is %q, want %q", sc.name, h[0], got, h[1])
			}
		}
		if body != "" {
			fmt.Fprintf(&fresh, "\n%s\n", body)
		}
		out += fresh.String() + "\n"
		if *rewrite {
			continue
		}
		if got := fmt.Sprint(rec.Code); got != sc.status {
			t.Errorf("%s: status %s, want %s; body %s", sc.name, got, sc.status, body)
		}
		if prefix, open := strings.CutSuffix(sc.want, "..."); open && strings.HasPrefix(body, prefix) {
			continue
		}
		if body != sc.want {
			t.Errorf("%s: body\n%s\nwant\n%s", sc.name, body, sc.want)
		}
	}
	if !*rewrite {
		return
	}
	if strings.HasPrefix(string(text), "# fixed") {
		t.Skip("the file is fixed")
	}
	if err := os.WriteFile(file, []byte(strings.TrimRight(out, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parseScenarios(t testing.TB, text string) (intro string, cases []scenario) {
	t.Helper()
	intro, rest, _ := strings.Cut(text, "=== ")
	for part := range strings.SplitSeq(rest, "\n=== ") {
		request, answer, ok := strings.Cut(part, "\n---\n")
		if !ok {
			t.Fatalf("case without ---: %s", part)
		}
		sc := scenario{user: "admin", head: "=== " + request + "\n"}
		lines := strings.Split(request, "\n")
		if len(lines) < 2 {
			t.Fatalf("case without request line: %s", part)
		}
		sc.name = lines[0]
		sc.method, sc.target, ok = strings.Cut(lines[1], " ")
		if !ok {
			t.Fatalf("%s: bad request line %q", sc.name, lines[1])
		}
		headers, body := splitHeaders(lines[2:])
		for _, h := range headers {
			switch h[0] {
			case "User":
				sc.user = h[1]
			case "Clock":
				sc.clock = h[1]
			case "Gzip":
				sc.gzip = true
			case "Work":
				sc.work = true
			default:
				sc.headers = append(sc.headers, h)
			}
		}
		sc.body = strings.Join(body, "\n")
		lines = strings.Split(strings.TrimRight(answer, "\n"), "\n")
		sc.status = lines[0]
		sc.wantHeaders, body = splitHeaders(lines[1:])
		sc.want = strings.Join(body, "\n")
		if strings.HasPrefix(sc.want, "{") || strings.HasPrefix(sc.want, "[") {
			for i := range body {
				body[i] = strings.TrimLeft(body[i], " ")
			}
			sc.want = strings.Join(body, "")
		}
		cases = append(cases, sc)
	}
	return intro, cases
}

// splitHeaders takes the lines before the first empty one.
func splitHeaders(lines []string) (headers [][2]string, body []string) {
	for i, line := range lines {
		if line == "" {
			return headers, lines[i+1:]
		}
		name, value, _ := strings.Cut(line, ":")
		headers = append(headers, [2]string{name, strings.TrimSpace(value)})
	}
	return headers, nil
}

func runScenario(t *testing.T, w *world, sc scenario) *httptest.ResponseRecorder {
	t.Helper()
	if sc.clock != "" {
		w.setClock(at(t, sc.clock))
	}
	if sc.work {
		w.server.workWaiting(t.Context(), everyone)
	}
	body := []byte(sc.body)
	if sc.gzip {
		var packed bytes.Buffer
		zw := gzip.NewWriter(&packed)
		zw.Write(body)
		zw.Close()
		body = packed.Bytes()
	}
	r := httptest.NewRequest(sc.method, sc.target, bytes.NewReader(body))
	r.RemoteAddr = "198.51.100.7:4711"
	if sc.user != "none" {
		r.SetBasicAuth(sc.user, password)
	}
	if sc.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	for _, h := range sc.headers {
		r.Header.Add(h[0], h[1])
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// shownBody is the body as scenario files write it.
func shownBody(t *testing.T, rec *httptest.ResponseRecorder) string {
	t.Helper()
	body := rec.Body.Bytes()
	if rec.Header().Get("Content-Encoding") == "gzip" {
		zr, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(zr); err != nil {
			t.Fatal(err)
		}
	}
	if text, ok := strings.CutSuffix(string(body), "\n"); ok {
		return text + "\n$"
	}
	return string(body)
}
