package api

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

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
