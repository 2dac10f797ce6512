package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// seedAuth makes what the scenario files of this subject need: tokens whose text is known, and a server with guests.
func (w *world) seedAuth(t testing.TB, file string) {
	t.Helper()
	switch {
	case strings.HasPrefix(file, "auth_guest"):
		w.server.Users = auth.New(w.store, w.server.Ingest, auth.Options{Clock: w.clock, Guest: true})
	case strings.HasPrefix(file, "tokens"), strings.HasPrefix(file, "admin_forms"):
		w.seedTokens(t)
	}
}

// document stores a document as the server itself.
func (w *world) document(t testing.TB, kind core.DocKind, key string, doc any) {
	t.Helper()
	body, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{{Kind: kind, Key: key, Body: body}}}
	if _, err := w.server.Ingest.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// seedTokens stores tokens with short texts, in the form that the package auth keeps them, and users in every state.
func (w *world) seedTokens(t testing.TB) {
	t.Helper()
	for _, u := range []auth.User{
		{Name: "far", Enabled: true, Addresses: "203.0.113.0/24"}, {Name: "off"}, {Name: "old", Enabled: true, Expires: 1}, {Name: "locked", Enabled: true, Locked: true},
	} {
		u.Hash = passwordHash
		w.document(t, core.DocUser, u.Name, u)
	}
	for _, row := range []struct {
		text, user, method, urls string
		expires                  string
		addresses                string
	}{
		{text: "tom-hook", user: "tom", method: "POST", urls: "/api/v1/messages/webhook/v1?type=<>"},
		{text: "tom-any", user: "tom", method: "POST", urls: "/api/v1/messages/webhook/x?entity=<>"},
		{text: "tom-metrics", user: "tom", method: "GET", urls: "/api/v1/metrics"},
		{text: "reader-insert", user: "reader", method: "POST", urls: "/api/v1/messages/insert"},
		{text: "writer-insert", user: "writer", method: "POST", urls: "/api/v1/messages/insert"},
		{text: "writer-csv", user: "writer", method: "POST", urls: "/api/v1/csv"},
		{text: "list", user: "admin", method: "GET", urls: "/api/v1/a\n/api/v1/b"},
		{text: "root", user: "lone", method: "GET", urls: "/"},
		{text: "empty", user: "writer", method: "POST", urls: "/api//csv"},
		{text: "post-ping", user: "lone", method: "POST", urls: "/api/v1/ping"},
		{text: "metrics", user: "admin", method: "GET", urls: "/api/v1/metrics/<>"},
		{text: "prefix", user: "admin", method: "GET", urls: "/api/v1/entities/srv-<>"},
		{text: "order", user: "admin", method: "GET", urls: "/api/v1/metrics?limit=1&tags=a"},
		{text: "health", user: "lone", method: "GET", urls: "/health"},
		{text: "expired", user: "admin", method: "GET", urls: "/api/v1/ping", expires: "2030-05-02T00:00:00Z"},
		{text: "soon", user: "admin", method: "GET", urls: "/api/v1/ping", expires: "2030-05-03T00:00:00Z"},
		{text: "elsewhere", user: "admin", method: "GET", urls: "/api/v1/ping", addresses: "203.0.113.0/24"},
		{text: "far-here", user: "far", method: "GET", urls: "/api/v1/ping", addresses: "198.51.100.7"},
		{text: "far", user: "far", method: "GET", urls: "/api/v1/ping"},
		{text: "off", user: "off", method: "GET", urls: "/api/v1/ping"},
		{text: "old", user: "old", method: "GET", urls: "/api/v1/ping"},
		{text: "locked", user: "locked", method: "GET", urls: "/api/v1/ping"},
		{text: "gone", user: "gone", method: "GET", urls: "/api/v1/ping"},
		{text: "lone", user: "lone", method: "GET", urls: "/api/v1/ping"},
		{text: "put", user: "curator", method: "PUT", urls: "/api/v1/metrics/m1"},
		{text: "patch", user: "curator", method: "PATCH", urls: "/api/v1/metrics/m1"},
		{text: "delete", user: "curator", method: "DELETE", urls: "/api/v1/metrics/m1"},
		{text: "unused", user: "tom", method: "GET", urls: "/unused"},
		{text: "form-token", user: "eva", method: "GET", urls: "/api/v1/ping"},
	} {
		sum := sha256.Sum256([]byte(row.text))
		hash := hex.EncodeToString(sum[:])
		token := auth.Token{ID: hash[:24], Hash: hash, User: row.user, IssuedBy: "admin", Issued: at(t, "2030-04-01T00:00:00Z"), Method: row.method,
			URLs: strings.Split(row.urls, "\n"), Addresses: row.addresses}
		if row.expires != "" {
			token.Expires = at(t, row.expires)
		}
		w.document(t, core.DocToken, token.ID, token)
	}
}

// bearer sends a request with a token.
func (w *world) bearer(token, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// The way of automation: a user by the form, a token by the form, for two URLs, valid at once.
func TestTokenByForm(t *testing.T) {
	w := newWorld(t, Limits{})
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		rec := w.do("admin", "POST", "/admin/users/tokens/new?user=writer&username=writer&method="+method+"&urls=/api/v1/a,/api/v1/x?k=1", "")
		if rec.Code != http.StatusFound || rec.Body.Len() != 0 {
			t.Fatalf("%s: %d %s", method, rec.Code, rec.Body)
		}
		location := rec.Header().Get("Location")
		token, ok := strings.CutPrefix(location, "/admin/users/tokens/")
		if !ok || len(token) != 36 {
			t.Fatalf("Location %q", location)
		}
		if rec := w.do("admin", "GET", location, ""); rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), token) {
			t.Errorf("the page of the token: %d %s", rec.Code, rec.Body)
		}
		for _, tt := range []struct {
			method, target string
			want           int
		}{
			{method, "/api/v1/a", 404}, {method, "/api/v1/x?k=1", 404}, {method, "/api/v1/x", 401}, {method, "/api/v1/x?k=2", 401}, {method, "/api/v1/a?k=1", 401}, {"HEAD", "/api/v1/a", 401},
		} {
			if rec := w.bearer(token, tt.method, tt.target, ""); rec.Code != tt.want {
				t.Errorf("token for %s: %s %s gives %d %s", method, tt.method, tt.target, rec.Code, rec.Body)
			}
		}
	}
}

// A token that the JSON interface issues is shown once, and kept nowhere.
func TestTokenIsShownOnce(t *testing.T) {
	w := newWorld(t, Limits{})
	rec := w.do("admin", "POST", "/api/v1/admin/tokens", `{"user":"writer","method":"POST","urls":["/api/v1/messages/insert"]}`)
	var issued struct{ ID, Token, User, IssuedBy, Method string }
	if err := json.Unmarshal(rec.Body.Bytes(), &issued); err != nil || rec.Code != 200 || len(issued.Token) != 36 || issued.User != "writer" || issued.IssuedBy != "admin" {
		t.Fatalf("%d %s %v", rec.Code, rec.Body, err)
	}
	insert := func() int {
		return w.bearer(issued.Token, "POST", "/api/v1/messages/insert", `[{"entity":"e","message":"x"}]`).Code
	}
	if got := insert(); got != 200 {
		t.Errorf("the token gives %d", got)
	}
	for _, path := range []string{"/api/v1/admin/tokens", "/api/v1/admin/tokens/" + issued.ID} {
		if rec := w.do("admin", "GET", path, ""); rec.Code != 200 || strings.Contains(rec.Body.String(), issued.Token) || !strings.Contains(rec.Body.String(), issued.ID) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if strings.Contains(w.logged.String(), issued.Token) {
		t.Error("the token is in the log")
	}
	if rec := w.do("admin", "DELETE", "/api/v1/admin/tokens/"+issued.ID, ""); rec.Code != 200 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if got := insert(); got != 401 {
		t.Errorf("the revoked token gives %d", got)
	}
}

// The sessions of a user who was changed end; administrative routes by cookie alone must come from the same origin.
func TestAdministrationBySession(t *testing.T) {
	w := newWorld(t, Limits{})
	cookie := w.do("admin", "GET", "/api/v1/ping", "").Result().Cookies()[0]
	send := func(method, target, body, site string) int {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.AddCookie(cookie)
		r.Header.Set("Sec-Fetch-Site", site)
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, r)
		return rec.Code
	}
	for _, tt := range []struct {
		method, target, site string
		want                 int
	}{
		{"PUT", "/api/v1/admin/users/n", "cross-site", 403}, {"PUT", "/api/v1/admin/users/n", "same-origin", 200},
		{"POST", "/admin/users/edit.xhtml?userBean.username=n&userBean.password=secret1", "cross-site", 403},
		{"POST", "/admin/users/tokens/new?user=n&username=n&method=GET&urls=/a", "cross-site", 403},
		{"GET", "/api/v1/admin/users", "cross-site", 200}, // which the browser does not show to the other site, for a cookie that it did not send
	} {
		if got := send(tt.method, tt.target, "{}", tt.site); got != tt.want {
			t.Errorf("%s %s from %s: %d, want %d", tt.method, tt.target, tt.site, got, tt.want)
		}
	}
	if rec := w.do("admin", "PATCH", "/api/v1/admin/users/admin", `{"addressFilter":"0.0.0.0/0"}`); rec.Code != 200 {
		t.Fatal(rec.Body)
	}
	if got := send("GET", "/api/v1/ping", "", "none"); got != 401 {
		t.Errorf("the session of a changed user: %d", got)
	}
}

// BenchmarkAuthenticatedRequest is a whole request that does nothing but know its caller.
func BenchmarkAuthenticatedRequest(b *testing.B) {
	w := newWorld(b, Limits{})
	w.seedTokens(b)
	cookie := w.do("admin", "GET", "/api/v1/ping", "").Result().Cookies()[0]
	for name, set := range map[string]func(*http.Request){
		"health":   func(*http.Request) {},
		"password": func(r *http.Request) { r.SetBasicAuth("admin", password) },
		"cookie":   func(r *http.Request) { r.AddCookie(cookie) },
		"token":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer lone") },
	} {
		b.Run(name, func(b *testing.B) {
			path := "/api/v1/ping"
			if name == "health" {
				path = "/health"
			}
			r := httptest.NewRequest("GET", path, nil)
			set(r)
			b.ReportAllocs()
			for b.Loop() {
				rec := httptest.NewRecorder()
				if w.server.ServeHTTP(rec, r); rec.Code != 200 {
					b.Fatal(rec.Code, rec.Body)
				}
			}
		})
	}
}

// BenchmarkPermission is the check of one entity for a user with 1 and with 20 entity groups, the last of which holds the entity.
func BenchmarkPermission(b *testing.B) {
	w := newWorld(b, Limits{})
	w.document(b, core.DocEntity, "e1", core.NewEntity("e1", 1))
	var groups []string
	for i := range 20 {
		name := fmt.Sprintf("g%02d", i)
		members := []string{fmt.Sprint("other", i)}
		if i == 19 {
			members = []string{"e1"}
		}
		w.document(b, core.DocGroup, name, core.Group{Name: name, Enabled: true, Members: members})
		groups = append(groups, name)
	}
	for _, n := range []int{0, 1, 20} {
		c := &call{server: w.server}
		c.id.Grants = core.Grants{WriteAll: n == 0, WriteGroups: groups[20-n:]}
		b.Run(fmt.Sprintf("groups=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.writable("e1") {
					b.Fatal("not writable")
				}
			}
		})
	}
}

// The holder of a token cannot make it one that does not end.
func TestTokenCannotChangeItself(t *testing.T) {
	w := newWorld(t, Limits{})
	rec := w.do("admin", "POST", "/admin/users/tokens/new?user=tom&username=tom&method=PATCH&urls=/api/v1/tokens/<>", "")
	_, secret, _ := strings.Cut(rec.Header().Get("Location"), "/tokens/")
	id := gjson.Get(w.do("tom", "GET", "/api/v1/tokens", "").Body.String(), "0.id").String()
	if rec := w.bearer(secret, "PATCH", "/api/v1/tokens/"+id, `{"expirationDate":""}`); rec.Code != 403 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := w.do("tom", "PATCH", "/api/v1/tokens/"+id, `{"description":"x"}`); rec.Code != 200 || strings.Contains(rec.Body.String(), secret) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
