package api

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// seedSecret makes the groups of tom, who reads pumps and writes valves, and an entity that is in none of them.
func (w *world) seedSecret(t *testing.T) {
	t.Helper()
	for _, c := range [][2]string{
		{"/api/v1/entity-groups/pumps", `{}`}, {"/api/v1/entity-groups/valves", `{}`},
		{"/api/v1/entities/secret", `{"tags":{"pin":"1234"}}`},
	} {
		if rec := w.do("admin", "PUT", c[0], c[1]); rec.Code != 200 {
			t.Fatalf("%s: %d %s", c[0], rec.Code, rec.Body)
		}
	}
	for _, c := range [][2]string{
		{"/api/v1/entity-groups/pumps/entities/add", `["p1"]`}, {"/api/v1/entity-groups/valves/entities/add", `["v1"]`},
		{"/api/v1/messages/insert", `[{"entity":"p1","date":"2030-05-01T00:00:00Z","message":"seen"}]`},
		{"/api/v1/series/insert", `[{"entity":"p1","metric":"m","tags":{"k":"v"},"data":[{"d":"2030-05-01T00:00:00Z","v":1}]}]`},
		{"/api/v1/properties/insert", `[{"entity":"secret","type":"vault","tags":{"pin":"1234"},"date":"2030-05-01T00:00:00Z"},{"entity":"p1","type":"shown","tags":{"k":"v"},"date":"2030-05-01T00:00:00Z"}]`},
	} {
		if rec := w.do("admin", "POST", c[0], c[1]); rec.Code != 200 {
			t.Fatalf("%s: %d %s", c[0], rec.Code, rec.Body)
		}
	}
}

// TestExpressionsAreNoOracle: whether records of p1 are found must not tell what a record of another entity holds.
func TestExpressionsAreNoOracle(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedSecret(t)
	const dates = `"startDate":"2030-04-30T00:00:00Z","endDate":"2030-05-02T00:00:00Z"`
	requests := map[string][2]string{
		"messages":        {"/api/v1/messages/query", `[{"entity":"*","entityExpression":"EXPR",` + dates + `}]`},
		"message text":    {"/api/v1/messages/query", `[{"entity":"*","expression":"EXPR",` + dates + `}]`},
		"message counts":  {"/api/v1/messages/stats/query", `[{"entity":"*","metric":"message-count","entityExpression":"EXPR",` + dates + `}]`},
		"series":          {"/api/v1/series/query", `[{"entity":"*","metric":"m","entityExpression":"EXPR",` + dates + `}]`},
		"grouped series":  {"/api/v1/series/query", `[{"entity":"*","metric":"m","entityExpression":"EXPR","group":{"type":"SUM"},` + dates + `}]`},
		"properties":      {"/api/v1/properties/query", `[{"entity":"*","type":"shown","entityExpression":"EXPR",` + dates + `}]`},
		"alert history":   {"/api/v1/alerts/history/query", `[{"entity":"*","entityExpression":"EXPR",` + dates + `}]`},
		"property values": {"/api/v1/properties/query", `[{"entity":"*","type":"shown","keyTagExpression":"EXPR",` + dates + `}]`},
	}
	for name, r := range requests {
		for _, pair := range [][2]string{
			{`property('secret','vault::pin') = '1234'`, `property('secret','vault::pin') = '9999'`},
			{`property_values('secret','vault::pin').size() = 1`, `property_values('secret','vault::pin').size() = 2`},
			{`entity_tags('secret').pin = '1234'`, `entity_tags('secret').pin = '9999'`},
		} {
			right := w.do("tom", "POST", r[0], strings.ReplaceAll(r[1], "EXPR", pair[0]))
			wrong := w.do("tom", "POST", r[0], strings.ReplaceAll(r[1], "EXPR", pair[1]))
			if right.Body.String() != wrong.Body.String() || right.Code != wrong.Code {
				t.Errorf("%s: %s tells a right guess (%d %s) from a wrong one (%d %s)", name, pair[0], right.Code, right.Body, wrong.Code, wrong.Body)
			}
		}
	}
	// The lists of metadata are for every entity, but the values of property records are data.
	right := w.do("viewer", "GET", "/api/v1/entities?expression=property('vault::pin')%3D'1234'", "")
	if right.Code != 200 || right.Body.String() != "[]" {
		t.Errorf("the role for metadata reads properties: %d %s", right.Code, right.Body)
	}
	if all := w.do("eva", "GET", "/api/v1/entities?expression=property('vault::pin')%3D'1234'", ""); !strings.Contains(all.Body.String(), "secret") {
		t.Errorf("who may read everything finds nothing: %d %s", all.Code, all.Body)
	}
}

// TestRememberedPasswords: a browser sends a password that its user typed once with every request to this server, also those that another site makes it send.
func TestRememberedPasswords(t *testing.T) {
	w := newWorld(t, Limits{})
	for _, c := range []struct {
		method, target, site, mode string
		want                       int
	}{
		{"POST", "/api/v1/command", "cross-site", "navigate", 403}, // a form of type text/plain
		{"POST", "/api/v1/command", "cross-site", "cors", 200},     // a script with credentials of its own
		{"POST", "/api/v1/command", "", "", 200},
		{"GET", "/api/v1/messages/webhook/e?message=x", "cross-site", "no-cors", 403}, // an image
		{"GET", "/api/v1/messages/webhook/e?message=x", "none", "navigate", 200},
		{"POST", "/admin/users/tokens/new?user=eva&method=GET&urls=/x", "cross-site", "navigate", 403},
		{"GET", "/api/v1/permissions", "cross-site", "navigate", 200},
	} {
		r := httptest.NewRequest(c.method, c.target, strings.NewReader("series e:a m:b=1\n"))
		r.SetBasicAuth("admin", password)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
			r.Header.Set("Sec-Fetch-Mode", c.mode)
		}
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, r)
		if rec.Code != c.want {
			t.Errorf("%s %s, %s %s: %d %s, want %d", c.method, c.target, c.site, c.mode, rec.Code, rec.Body, c.want)
		}
	}
}

// TestOpenStreamsLoseTheirRights: a stream of commands may be open for hours; what its user may not do any more it may not either.
func TestOpenStreamsLoseTheirRights(t *testing.T) {
	w := newWorld(t, Limits{})
	body, out := io.Pipe()
	r := httptest.NewRequest("POST", "/api/v1/command", body)
	r.ContentLength = -1
	r.SetBasicAuth("writer", password)
	rec, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		w.server.ServeHTTP(rec, r)
	}()
	send := func(text string) {
		if _, err := io.WriteString(out, text); err != nil {
			t.Error(err)
		}
	}
	send("series e:before m:b=1\n")
	send("# \n") // is read only after what came before is stored
	_, err := w.server.Users.ChangeUser(t.Context(), auth.System, "writer", auth.UserChange{Apply: func(u *auth.User) error {
		u.Enabled = false
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // the server may not read it to its end
		io.WriteString(out, "series e:after m:b=1\n")
		out.Close()
	}()
	<-done
	body.Close()
	if rec.Code != 401 || !strings.Contains(rec.Body.String(), "code 07") {
		t.Errorf("the stream of a disabled user ends with %d %s", rec.Code, rec.Body)
	}
	if _, ok := w.store.Entity("before"); !ok {
		t.Error("what came before is not stored")
	}
	if _, ok := w.store.Entity("after"); ok {
		t.Error("a disabled user has written")
	}
}

// TestDirectoriesOfArchives: a small body must not make a directory in memory that is larger than what counts against the limits.
func TestDirectoriesOfArchives(t *testing.T) {
	const files = 400_000 // 22 MB of directory, which packs to 100 KB, and 200 MB of objects
	var entry bytes.Buffer
	archive := zip.NewWriter(&entry)
	if _, err := archive.Create("a"); err != nil {
		t.Fatal(err)
	}
	archive.Close()
	one := entry.Bytes()
	begin, end := bytes.Index(one, []byte("PK\x01\x02")), bytes.Index(one, []byte("PK\x05\x06"))
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	zw.Write(one[:begin])
	for range files {
		zw.Write(one[begin:end])
	}
	zw.Write(one[end:])
	zw.Close()
	w := newWorld(t, Limits{})
	r := httptest.NewRequest("POST", "/api/v1/csv?config=lines&filename=a.zip", &packed)
	r.Header.Set("Content-Encoding", "gzip")
	r.SetBasicAuth("eva", password)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	runtime.ReadMemStats(&after)
	if rec.Code != 413 || !strings.Contains(rec.Body.String(), "limits.body") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 150 {
		t.Errorf("the request took %d MiB", took)
	}
}

// TestReplaysHaveTheRightsOfTheSender: an administrator who replays a dead letter stores nothing that its sender could not have stored.
func TestReplaysHaveTheRightsOfTheSender(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedSecret(t)
	// tom writes valves alone. What follows the line that the plugin loses is never offered with his rights before the replay.
	rec := w.do("tom", "POST", "/api/v1/csv?config=breaks", "v1,m,BOOM,1\nsecret,m,1903910300000,666\n")
	id := between(rec.Body.String(), `"deadLetters":[{"id":"`, `"`)
	if id == "" {
		t.Fatalf("no dead letter: %d %s", rec.Code, rec.Body)
	}
	w.setClock(1924992000000) // the plugin is repaired
	rec = w.do("admin", "POST", "/api/v1/admin/dead-letters/"+id+"/replay", "")
	if rec.Code != 403 {
		t.Errorf("replay: %d %s, want 403", rec.Code, rec.Body)
	}
	for range w.store.Keys(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{"secret"}}, Range: core.AllTime}) {
		t.Error("tom has written an entity that he may not write")
	}
	if err := w.server.Users.DeleteUser(t.Context(), auth.System, "tom"); err != nil {
		t.Fatal(err)
	}
	rec = w.do("admin", "POST", "/api/v1/admin/dead-letters/"+id+"/replay", "")
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "tom, who sent dead letter") {
		t.Errorf("replay of a letter of nobody: %d %s", rec.Code, rec.Body)
	}
}

// between returns the text between two others, "" when there is none.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	found, _, ok := strings.Cut(rest, end)
	if !ok {
		return ""
	}
	return found
}

// TestAnswersShareTheirMemory: many large answers at once are bounded together, not only each by itself.
func TestAnswersShareTheirMemory(t *testing.T) {
	w := newWorld(t, Limits{Bodies: 10 << 20, Response: 8 << 20})
	answer := func(bytes int) (*call, error) {
		c := &call{server: w.server}
		return c, c.fits(make([]byte, bytes))
	}
	first, err := answer(6 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.fits(make([]byte, 7<<20)); err != nil {
		t.Errorf("the answer grows: %v", err)
	}
	if _, err := answer(4 << 20); core.CodeOf(err) != core.Unavailable {
		t.Errorf("another one beside it: %v, want a request to try again", err)
	}
	if _, err := answer(1 << 20); err != nil {
		t.Errorf("a small one: %v", err)
	}
	if _, err := answer(9 << 20); core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), "limits.response") {
		t.Errorf("one that is too large by itself: %v", err)
	}
	w.server.held.Add(-first.held)
	if _, err := answer(4 << 20); err != nil {
		t.Errorf("after the first was sent: %v", err)
	}
}

// TestTokenMakesNoToken: a token for POST /api/v1/tokens must not become one for everything.
func TestTokenMakesNoToken(t *testing.T) {
	w := newWorld(t, Limits{})
	issue := func(send func(body string) *httptest.ResponseRecorder, body string) (int, string) {
		rec := send(body)
		return rec.Code, gjson.Get(rec.Body.String(), "token").String()
	}
	byPassword := func(body string) *httptest.ResponseRecorder { return w.do("admin", "POST", "/api/v1/tokens", body) }
	code, secret := issue(byPassword, `{"method":"POST","urls":["/api/v1/tokens"]}`)
	if code != 200 || secret == "" {
		t.Fatalf("issued with a password: %d %q", code, secret)
	}
	byToken := func(body string) *httptest.ResponseRecorder { return w.bearer(secret, "POST", "/api/v1/tokens", body) }
	if code, more := issue(byToken, `{"method":"GET","urls":["/api/v1/<>"]}`); code != 403 || more != "" {
		t.Errorf("issued with a token: %d %q, want 403", code, more)
	}
}

// pipeListener gives one connection without a network, which has deadlines.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (pipeListener) Close() error   { return nil }
func (pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// uploadAt serves an upload whose sender writes the pieces, each after its pause, and returns the answer with the time at which it came.
func uploadAt(t *testing.T, pause time.Duration, pieces []string) (answer *http.Response, body string, after time.Duration) {
	t.Helper()
	w := newWorld(t, Limits{})
	w.server.Clock = func() core.Time { return core.TimeOf(time.Now()) }
	l := pipeListener{make(chan net.Conn, 1)}
	server := &http.Server{Handler: w.server}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	client, conn := net.Pipe()
	l.conns <- conn
	begin := time.Now()
	stop := make(chan struct{})
	go func() {
		credentials := base64.StdEncoding.EncodeToString([]byte("eva:" + password))
		fmt.Fprintf(client, "POST /api/v1/csv?config=lines HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\nTransfer-Encoding: chunked\r\n\r\n", credentials)
		for _, piece := range append(pieces, "") { // the empty one ends the body
			select {
			case <-time.After(pause):
				fmt.Fprintf(client, "%x\r\n%s\r\n", len(piece), piece)
			case <-stop:
				return
			}
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	after = time.Since(begin)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	close(stop)
	client.Close()
	close(l.conns)
	<-served
	server.Close()
	synctest.Wait()
	return answer, string(text), after
}

// TestSlowUploads: who sends nothing, or a trickle, must not keep an instance of a plugin for days.
func TestSlowUploads(t *testing.T) {
	lines := "entity,metric,time,value\na,m,1,1\nb,m,2,2\n" // of which the stand-in for a plugin stores each at once
	trickle := strings.Split(strings.Repeat("x", 200), "")
	for _, c := range []struct {
		name   string
		pause  time.Duration
		pieces []string
		status int
		after  time.Duration
		want   []string
	}{
		// The first piece gives all patience back, so that there are 30 s for the two pauses behind it.
		{"a slow line", 14 * time.Second, []string{lines + strings.Repeat("c,m,3,3\n", 4096), "d,m,4,4\n"}, 200, 42 * time.Second, []string{`"samples":4099,`}},
		{"nothing at all", time.Hour, nil, 408, 30 * time.Second, []string{"upload.idle (30s)", `"processed":0,`, `"taskStatus":"FAILED"`}},
		{"nothing more", 20 * time.Second, []string{lines}, 408, 30 * time.Second, []string{`"processed":3,`, `"samples":2,`, "upload.idle (30s)"}},
		// Each byte comes after 200 ms and gives back 1/1024 s: the patience is for 151 of them.
		{"a trickle", 200 * time.Millisecond, trickle, 408, 30 * time.Second, []string{"upload.rate (1024 bytes/s)"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			answer, body, after := uploadAt(t, c.pause, c.pieces)
			if answer.StatusCode != c.status || (after-c.after).Abs() > time.Second {
				t.Errorf("%s: %d after %s, want %d after %s: %s", c.name, answer.StatusCode, after, c.status, c.after, body)
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("%s: %s lacks %s", c.name, body, want)
				}
			}
		})
	}
}

// stalled is a body of which nothing comes until the test says so.
type stalled struct{ read, end chan struct{} }

func (s stalled) Read([]byte) (int, error) {
	s.read <- struct{}{}
	<-s.end
	return 0, io.EOF
}

// TestAnnouncedBodies: who announces large bodies and sends nothing of them must not take the memory of all others.
func TestAnnouncedBodies(t *testing.T) {
	w := newWorld(t, Limits{Bodies: 1 << 20, Body: 1 << 20})
	body := stalled{make(chan struct{}), make(chan struct{})}
	const requests = 30
	done := make(chan int)
	for range requests {
		go func() {
			r := httptest.NewRequest("POST", "/api/v1/series/insert", body)
			r.ContentLength = 1 << 20
			r.SetBasicAuth("writer", password)
			rec := httptest.NewRecorder()
			w.server.ServeHTTP(rec, r)
			done <- rec.Code
		}()
	}
	for range requests {
		<-body.read
	}
	if held := w.server.held.Load(); held != requests*onTrust {
		t.Errorf("%d bytes are reserved for bodies of which nothing came", held)
	}
	text := `[{"entity":"e","metric":"m","data":[{"d":"2030-05-01T00:00:00Z","v":1}` + strings.Repeat(" ", 200_000) + `]}]`
	if rec := w.do("eva", "POST", "/api/v1/series/insert", text); rec.Code != 200 {
		t.Errorf("a large body beside them: %d %s", rec.Code, rec.Body)
	}
	close(body.end)
	for range requests {
		if code := <-done; code != 400 {
			t.Errorf("an empty body: %d", code)
		}
	}
	if held := w.server.held.Load(); held != 0 {
		t.Errorf("%d bytes are reserved after all", held)
	}
}

// TestBodiesOfAnySize: however a body is announced and cut into reads, it is read whole.
func TestBodiesOfAnySize(t *testing.T) {
	w := newWorld(t, Limits{Body: 1 << 20})
	for _, size := range []int{0, 1, 511, 512, onTrust - 1, onTrust, onTrust + 1, 3*onTrust - 1, 100_000, 1<<20 - 1, 1 << 20} {
		for _, announced := range []int64{-1, 0, int64(size) - 1, int64(size)} {
			want := strings.Repeat("x", size)
			r := httptest.NewRequest("POST", "/", iotest.HalfReader(strings.NewReader(want)))
			r.ContentLength = announced
			c := &call{server: w.server, r: r}
			got, err := c.body()
			if err != nil || got != want {
				t.Errorf("%d bytes, %d announced: %d, %v", size, announced, len(got), err)
			}
			if c.held > max(2*int64(size), onTrust) {
				t.Errorf("%d bytes, %d announced: %d are reserved", size, announced, c.held)
			}
		}
	}
}

// TestPortalsAtOnce: drawing keeps a processor busy, so that only so many portals are drawn at one time.
func TestPortalsAtOnce(t *testing.T) {
	if n := cap(newWorld(t, Limits{}).server.drawing); n != runtime.GOMAXPROCS(0) {
		t.Errorf("%d portals at once unless it is set", n)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Limits{Portals: 2})
		target := "/api/v1/portal/export?id=" + fmt.Sprint(testPortals()[0].ID)
		for range 2 {
			w.server.drawing <- struct{}{} // two others are at it
		}
		begin := time.Now()
		rec := w.do("admin", "GET", target, "")
		if rec.Code != 503 || rec.Header().Get("Retry-After") != "2" || !strings.Contains(rec.Body.String(), "limits.portals") {
			t.Errorf("no turn: %d %v %s", rec.Code, rec.Header(), rec.Body)
		}
		if took := time.Since(begin); took != portalWait {
			t.Errorf("refused after %s", took)
		}
		go func() {
			time.Sleep(time.Second)
			<-w.server.drawing
		}()
		if rec := w.do("admin", "GET", target, ""); rec.Code != 200 {
			t.Errorf("a turn after a second: %d %s", rec.Code, rec.Body)
		}
		if n := len(w.server.drawing); n != 1 {
			t.Errorf("%d turns are taken, want that of the other one", n)
		}
	})
}

// TestSearchesAreBounded: a page that reaches far must not keep all series in memory; one that does not is answered from as many.
func TestSearchesAreBounded(t *testing.T) {
	w := newWorld(t, Limits{Records: 3})
	for _, entity := range []string{"e", "d", "c", "b", "a"} {
		text := `[{"entity":"` + entity + `","metric":"m","tags":{"k":"v"},"data":[{"d":"2030-05-01T00:00:00Z","v":1}]}]`
		if rec := w.do("admin", "POST", "/api/v1/series/insert", text); rec.Code != 200 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	for _, c := range []struct {
		page   string
		status int
		found  string // entities in their order: that of creation, not of names
	}{
		{"&limit=2", 200, "ed"}, {"&limit=2&offset=1", 200, "dc"}, {"&limit=1&offset=9", 413, ""}, {"&limit=9", 413, ""}, {"", 413, ""},
		{"&limit=9223372036854775807&offset=9223372036854775807", 413, ""},
	} {
		rec := w.do("admin", "GET", "/api/v1/search?query=k:v"+c.page, "")
		found := ""
		for _, hit := range gjson.Get(rec.Body.String(), "data.#.4").Array() {
			found += hit.Str
		}
		if rec.Code != c.status || found != c.found || c.status == 200 && gjson.Get(rec.Body.String(), "recordsFiltered").Int() != 5 {
			t.Errorf("%s: %d %s, want %d with %s", c.page, rec.Code, rec.Body, c.status, c.found)
		}
		if c.status == 413 && !strings.Contains(rec.Body.String(), "limits.records") {
			t.Errorf("%s: %s", c.page, rec.Body)
		}
	}
}

// TestUnfinishedCommands: a command stream may stop in the middle of a line for hours. What all of them hold is bounded, and short lines go on.
func TestUnfinishedCommands(t *testing.T) {
	w := newWorld(t, Limits{Bodies: 1 << 20}) // 256 KiB for streams
	type ended struct {
		code int
		text string
	}
	open := func() (*io.PipeWriter, chan ended) {
		body, out := io.Pipe()
		r := httptest.NewRequest("POST", "/api/v1/command", body)
		r.ContentLength = -1
		r.SetBasicAuth("writer", password)
		done := make(chan ended, 1)
		go func() {
			rec := httptest.NewRecorder()
			w.server.ServeHTTP(rec, r)
			body.Close()
			done <- ended{rec.Code, rec.Body.String()}
		}()
		return out, done
	}
	half := "message e:a m:\"" + strings.Repeat("x", 60_000) // takes a buffer of 64 KiB or more
	var streams []*io.PipeWriter
	refused := 0
	for range 6 {
		out, done := open()
		if _, err := io.WriteString(out, half); err != nil {
			if end := <-done; end.code != 503 || !strings.Contains(end.text, "limits.bodies") {
				t.Errorf("refused: %d %s", end.code, end.text)
			}
			refused++
			continue
		}
		streams = append(streams, out)
	}
	if refused == 0 {
		t.Errorf("all streams with half a line of 60 KB find room, in %d bytes", w.server.unfinished.Load())
	}
	if held := w.server.unfinished.Load(); held > 1<<18+6*4096 {
		t.Errorf("the streams hold %d bytes", held)
	}
	out, done := open()
	io.WriteString(out, "series e:short m:b=1\n")
	out.Close()
	if end := <-done; end.code != 200 || !strings.Contains(end.text, `"success":1`) {
		t.Errorf("a stream with a short line: %d %s", end.code, end.text)
	}
	for _, out := range streams {
		out.Close()
	}
	for w.server.unfinished.Load() != 0 {
		runtime.Gosched()
	}
}

// TestManyFilesInAnArchive: a megabyte of archive holds millions of empty files, each of which the plugin opens.
func TestManyFilesInAnArchive(t *testing.T) {
	w := newWorld(t, Limits{UploadFiles: 2})
	send := func(archive []byte) *httptest.ResponseRecorder {
		return w.do("eva", "POST", "/api/v1/csv?config=lines&filename=a.tgz", string(gzipOf(archive)))
	}
	if rec := send(tarOf(t)); rec.Code != 200 {
		t.Errorf("two files: %d %s", rec.Code, rec.Body)
	}
	if rec := send(tarOf(t, "x\n")); rec.Code != 413 || !strings.Contains(rec.Body.String(), "upload.files (2)") {
		t.Errorf("three files: %d %s", rec.Code, rec.Body)
	}
}

// TestBodiesOfOneUser: who stops in the middle of large bodies takes a part of the memory alone, and small ones go on when all of it is taken.
func TestBodiesOfOneUser(t *testing.T) {
	w := newWorld(t, Limits{Bodies: 1 << 20, Body: 300 << 10})
	if n := w.server.Limits.UserBodies; n != 600<<10 {
		t.Errorf("one user may have %d bytes", n)
	}
	text := func(n int) string {
		return `[{"entity":"e","metric":"m","data":[{"d":"2030-05-01T00:00:00Z","v":1}` + strings.Repeat(" ", n) + `]}]`
	}
	begin := func(bytes int64) *call {
		c := &call{server: w.server}
		c.id.User.Name = "writer"
		if err := errors.Join(c.charge(bytes), c.hold(bytes)); err != nil { // as readAll does
			t.Fatal(err)
		}
		return c
	}
	stopped := []*call{begin(200 << 10), begin(200 << 10), begin(100 << 10)}
	if rec := w.do("writer", "POST", "/api/v1/series/insert", text(200<<10)); rec.Code != 503 || !strings.Contains(rec.Body.String(), "limits.bodies.user") {
		t.Errorf("another large body of the user: %d %s", rec.Code, rec.Body)
	}
	if rec := w.do("eva", "POST", "/api/v1/series/insert", text(200<<10)); rec.Code != 200 {
		t.Errorf("one of another user: %d %s", rec.Code, rec.Body)
	}
	w.server.held.Add(1<<20 - w.server.held.Load()) // answers take the rest
	if rec := w.do("eva", "POST", "/api/v1/series/insert", text(200<<10)); rec.Code != 503 || !strings.Contains(rec.Body.String(), "(limits.bodies)") {
		t.Errorf("a large body without room: %d %s", rec.Code, rec.Body)
	}
	if rec := w.do("writer", "POST", "/api/v1/series/insert", text(0)); rec.Code != 200 {
		t.Errorf("a small body without room: %d %s", rec.Code, rec.Body)
	}
	for _, c := range stopped {
		c.release()
	}
	if len(w.server.shares.by) != 0 {
		t.Errorf("left: %v", w.server.shares.by)
	}
}
