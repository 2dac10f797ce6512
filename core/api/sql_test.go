package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// brokenSQL gives rows of one column, `rows` times the text "x...", and then fails.
type brokenSQL struct {
	SQL
	rows int
	err  error
}

const brokenCell = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

func (b brokenSQL) Run(_ context.Context, _ sql.Request, answer func(*sql.Answer) error) error {
	return answer(&sql.Answer{
		Columns: []sql.Column{{Label: "a", Name: "a", Type: column.String}},
		Rows: func(yield func(*column.Batch, error) bool) {
			texts := make([]string, b.rows)
			for i := range texts {
				texts[i] = brokenCell
			}
			if b.rows == 0 || yield(&column.Batch{Len: b.rows, Columns: []*column.Vector{{Type: column.String, Len: b.rows, Strings: texts}}}, nil) {
				yield(nil, b.err)
			}
		},
	})
}

// An error after rows were sent stands behind them, in the place where clients look for it; before that it has a status of its own.
func TestSQLErrorBehindRows(t *testing.T) {
	fault := &sql.Fault{Text: `it "broke"`}
	const message = `"errors":[{"state":"42","exception":[],"message":"it \"broke\""}]`
	line := `"` + brokenCell + `"` + "\n"
	w := newWorld(t, Limits{})
	for _, tt := range []struct {
		name, format string
		rows, status int
		want         string
	}{
		{"CSV, nothing was sent", "csv", 0, 400, `#{` + message + `}`},
		{"CSV, what there was was not sent yet", "csv", 10, 400, `#{` + message + `}`},
		{"CSV, rows were sent", "csv", 2000, 200, `"a"` + "\n" + strings.Repeat(line, 2000) + `#{` + message + "}\n"},
		{"JSON, nothing was sent", "json", 0, 400, `{` + message + `}`},
		{"JSON, rows were sent", "json", 2000, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.server.SQL = brokenSQL{rows: tt.rows, err: fault}
			rec := w.do("admin", "GET", "/api/sql?metadataFormat=NONE&q=x&outputFormat="+tt.format, "")
			if rec.Code != tt.status {
				t.Fatalf("status %d, want %d", rec.Code, tt.status)
			}
			if tt.want != "" {
				if diff := cmp.Diff(tt.want, rec.Body.String()); diff != "" {
					t.Error(diff)
				}
				return
			}
			var answer struct {
				Metadata json.RawMessage
				Data     [][]string
				Errors   []struct{ Message string }
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			if len(answer.Data) != tt.rows || len(answer.Errors) != 1 || answer.Errors[0].Message != fault.Text {
				t.Errorf("%d rows, errors %v", len(answer.Data), answer.Errors)
			}
			if !strings.HasSuffix(rec.Body.String(), `],`+message+`}`) {
				t.Error("the errors do not stand behind the rows")
			}
		})
	}
}

// What is no fault of the statement is not told: 500 in the form of all routes, or a number to look for in the log.
func TestSQLInternalError(t *testing.T) {
	w := newWorld(t, Limits{})
	w.server.SQL = brokenSQL{err: errors.New("secret detail")}
	rec := w.do("admin", "GET", "/api/sql?q=x", "")
	var answer struct{ Error string }
	if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || rec.Code != 500 || answer.Error == "" || strings.Contains(rec.Body.String(), "secret") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.server.SQL = brokenSQL{rows: 2000, err: errors.New("secret detail")}
	if rec = w.do("admin", "GET", "/api/sql?q=x", ""); rec.Code != 200 || !strings.Contains(rec.Body.String(), "\n"+`#{"errors":[{"state":"42","exception":[],"message":"`) || strings.Contains(rec.Body.String(), "secret") {
		t.Errorf("%d ...%s", rec.Code, rec.Body.String()[rec.Body.Len()-200:])
	}
}

// endlessReader gives what the store has, and then nothing until the query is stopped.
type endlessReader struct {
	core.Reader
	waiting chan struct{} // a token for each query that came to the end
}

func (r endlessReader) Series(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return func(yield func(core.Block, error) bool) {
		for b, err := range r.Reader.Series(ctx, q) {
			if !yield(b, err) {
				return
			}
		}
		r.waiting <- struct{}{}
		<-ctx.Done()
		yield(core.Block{}, ctx.Err())
	}
}

// A query is cancelled by its sender or an administrator, and by nobody else.
func TestSQLCancel(t *testing.T) {
	w := newWorld(t, Limits{})
	reader := endlessReader{w.store, make(chan struct{})}
	w.server.SQL = sql.New(sql.Options{Reader: reader, Catalog: w.store, Metadata: w.store, Clock: w.clock})
	if rec := w.do("admin", "POST", "/api/v1/command", "series e:a m:m=1\nseries e:b m:m=1"); rec.Code != 200 {
		t.Fatal(rec.Body)
	}
	type cancelled struct{ QueryID, AtsdQueryID, Status, User, SQL string }
	cancel := func(user, method, id string) (list []cancelled) {
		t.Helper()
		rec := w.do(user, method, "/api/sql/cancel?queryId="+id, "")
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != 200 {
			t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
		}
		return list
	}
	for _, tt := range []struct{ owner, other, by, method string }{
		{"reader", "tom", "reader", "GET"},
		{"reader", "tom", "admin", "POST"},
	} {
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- w.do(tt.owner, "GET", "/api/sql?queryId=q-1&q=SELECT+max(value)+FROM+m", "") }()
		<-reader.waiting
		if list := cancel(tt.other, tt.method, "q-1"); len(list) != 0 {
			t.Errorf("%s stopped a query of %s", tt.other, tt.owner)
		}
		if list := cancel(tt.by, tt.method, "q-2"); len(list) != 0 {
			t.Errorf("another id stopped it")
		}
		list := cancel(tt.by, tt.method, "q-1")
		if len(list) != 1 || list[0].AtsdQueryID == "" {
			t.Fatalf("%s stopped %v", tt.by, list)
		}
		list[0].AtsdQueryID = ""
		if diff := cmp.Diff(cancelled{"q-1", "", "Cancelled", tt.owner, "SELECT max(value) FROM m"}, list[0]); diff != "" {
			t.Error(diff)
		}
		rec := <-done
		if want := `#{"errors":[{"state":"42","exception":[],"message":"Query cancelled"}]}`; rec.Code != 400 || rec.Body.String() != want {
			t.Errorf("the query answers %d %s", rec.Code, rec.Body)
		}
		if list := cancel(tt.by, tt.method, "q-1"); len(list) != 0 {
			t.Errorf("a query that is over was stopped: %v", list)
		}
	}
}

// A query without an id is not found by an empty one.
func TestSQLCancelNeedsID(t *testing.T) {
	w := newWorld(t, Limits{})
	reader := endlessReader{w.store, make(chan struct{})}
	w.server.SQL = sql.New(sql.Options{Reader: reader, Catalog: w.store, Metadata: w.store, Clock: w.clock})
	w.do("admin", "POST", "/api/v1/command", "series e:a m:m=1")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		r := httptest.NewRequestWithContext(ctx, "GET", "/api/sql?q=SELECT+max(value)+FROM+m", nil)
		r.SetBasicAuth("admin", password)
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, r)
		done <- rec
	}()
	<-reader.waiting
	if rec := w.do("admin", "GET", "/api/sql/cancel?queryId=", ""); rec.Body.String() != "[]" {
		t.Errorf("an empty id stopped %s", rec.Body)
	}
	stop() // the client goes away, and the query with it
	<-done
}

// firstWrite keeps the first bytes that are sent at once.
type firstWrite struct {
	*httptest.ResponseRecorder
	first []byte
}

func (f *firstWrite) Write(p []byte) (int, error) {
	if f.first == nil {
		f.first = append([]byte{}, p...)
	}
	return f.ResponseRecorder.Write(p)
}

// The stock driver takes the first 17 bytes from one read.
func TestSQLEmbedInOneWrite(t *testing.T) {
	w := newWorld(t, Limits{})
	r := httptest.NewRequest("GET", "/api/sql?metadataFormat=EMBED&q=SELECT+1", nil)
	r.SetBasicAuth("admin", password)
	rec := &firstWrite{ResponseRecorder: httptest.NewRecorder()}
	w.server.ServeHTTP(rec, r)
	if !strings.HasPrefix(string(rec.first), "#eyJAY29udGV4dCI6") {
		t.Errorf("the first write is %q", rec.first)
	}
}

// Requests of unknown length are taken, and so are many rows without one.
func TestSQLChunked(t *testing.T) {
	w := newWorld(t, Limits{})
	var commands strings.Builder
	const samples = 20_000
	for i := range samples {
		fmt.Fprintf(&commands, "series e:a m:long=%d ms:%d\n", i, 1_000_000+i)
	}
	if rec := w.do("admin", "POST", "/api/v1/command", commands.String()); rec.Code != 200 {
		t.Fatal(rec.Body)
	}
	server := httptest.NewServer(w.server)
	defer server.Close()
	body := io.MultiReader(strings.NewReader("SELECT value "), strings.NewReader("FROM long ORDER BY time"))
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/api/sql?metadataFormat=NONE", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/plain")
	r.SetBasicAuth("admin", password)
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if answer.StatusCode != 200 || len(lines) != samples+1 || lines[0] != `"value"` || lines[1] != "0" || lines[samples] != "19999" {
		t.Errorf("%d, %d lines, from %s to %s", answer.StatusCode, len(lines), lines[0], lines[len(lines)-1])
	}
}

// endlessSQL has rows without end, and says when nobody wants more.
type endlessSQL struct {
	SQL
	left chan struct{}
}

func (e endlessSQL) Run(_ context.Context, _ sql.Request, answer func(*sql.Answer) error) error {
	defer close(e.left)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = brokenCell
	}
	b := &column.Batch{Len: len(texts), Columns: []*column.Vector{{Type: column.String, Len: len(texts), Strings: texts}}}
	return answer(&sql.Answer{Columns: []sql.Column{{Label: "a", Name: "a", Type: column.String}}, Rows: func(yield func(*column.Batch, error) bool) {
		for yield(b, nil) {
		}
	}})
}

// A client that asks and does not read is cut off after limits.idle: it holds a place among the queries that run.
func TestSQLReaderThatDoesNotRead(t *testing.T) {
	w := newWorld(t, Limits{Idle: 50 * time.Millisecond})
	endless := endlessSQL{left: make(chan struct{})}
	w.server.SQL = endless
	web := httptest.NewUnstartedServer(w.server)
	web.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4096); err != nil { // what is under way is soon too much
			t.Error(err)
		}
		return ctx
	}
	web.Start()
	defer web.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/api/sql?q=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("admin", password)
	answer, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	select {
	case <-endless.left:
	case <-time.After(2 * time.Minute):
		t.Error("the query still runs")
	}
}
