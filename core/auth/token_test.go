package auth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

func bearing(method, target, token string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = "198.51.100.7:4711"
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func issue(t *testing.T, s *Service, token Token) (Token, string) {
	t.Helper()
	issued, secret, err := s.IssueToken(t.Context(), Actor{User: "admin"}, token)
	if err != nil {
		t.Fatal(err)
	}
	return issued, secret
}

func TestTokens(t *testing.T) {
	s, docs, now := newService(t)
	put(t, s, User{Name: "tom", Enabled: true, Roles: []string{"API_DATA_WRITE"}, Addresses: "10.0.0.0/8"}, "")
	soon := now.read() + 60_000
	issued, secret := issue(t, s, Token{User: "tom", Method: "post", URLs: []string{"/api/v1/messages/webhook/v1?type=<>"}, Expires: soon, Addresses: "198.51.100.0/24"})
	if len(secret) != 36 || strings.Trim(secret, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		t.Errorf("token %q", secret)
	}
	want := Token{ID: issued.ID, Hash: issued.Hash, User: "tom", IssuedBy: "admin", Issued: now.read(), Method: "POST",
		URLs: []string{"/api/v1/messages/webhook/v1?type=<>"}, Expires: soon, Addresses: "198.51.100.0/24"}
	if diff := cmp.Diff(want, issued); diff != "" {
		t.Error(diff)
	}
	// The text is stored nowhere.
	for doc, err := range docs.Documents(t.Context(), core.DocumentQuery{Kind: core.DocToken}) {
		if err != nil || strings.Contains(string(doc.Body), secret) || strings.Contains(doc.Key, secret) {
			t.Errorf("%s %v", doc.Body, err)
		}
	}
	const url = "/api/v1/messages/webhook/v1?type=ci"
	for _, tt := range []struct{ name, method, target, token, from, want string }{
		{"matches, from an address that the user may not use", "POST", url, secret, "198.51.100.7:1", ""},
		{"other value", "POST", "/api/v1/messages/webhook/v1?type=a", secret, "198.51.100.7:1", ""},
		{"extra parameter", "POST", url + "&x=1", secret, "198.51.100.7:1", "code 15"},
		{"other method", "GET", url, secret, "198.51.100.7:1", "code 15"},
		{"other path", "POST", "/api/v1/messages/webhook/p1?type=ci", secret, "198.51.100.7:1", "code 15"},
		{"unknown token", "POST", url, secret[:35] + "!", "198.51.100.7:1", "code 15"},
		{"no token", "POST", url, "", "198.51.100.7:1", "code 15"},
		{"the id is no token", "POST", url, issued.ID, "198.51.100.7:1", "code 15"},
		{"the hash is no token", "POST", url, issued.Hash, "198.51.100.7:1", "code 15"},
		{"wrong address", "POST", url, secret, "203.0.113.1:1", "code 14"},
		{"an address of the user alone", "POST", url, secret, "10.0.0.1:1", "code 14"},
	} {
		r := bearing(tt.method, tt.target, tt.token)
		r.RemoteAddr = tt.from
		id, err := s.Authenticate(r)
		if got := code(t, err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if err == nil && (id.User.Name != "tom" || id.Means != ByToken || id.Cookie != nil || id.Grants.Roles != core.DataWrite|core.Authenticated) {
			t.Errorf("%s: %+v", tt.name, id)
		}
	}
	if n := len(s.sessions.byToken); n != 0 {
		t.Errorf("%d sessions", n)
	}
	// Without addresses of its own a token is bound to those of the user.
	_, other := issue(t, s, Token{User: "tom", Method: "GET", URLs: []string{"/a"}})
	if _, err := s.Authenticate(bearing("GET", "/a", other)); code(t, err) != "code 14" {
		t.Error(err)
	}
	now.advance(time.Minute)
	if _, err := s.Authenticate(bearing("POST", url, secret)); code(t, err) != "code 16" {
		t.Errorf("after its end: %v", err)
	}
	if _, err := s.Authenticate(bearing("POST", url+"&x=1", secret)); code(t, err) != "code 15" {
		t.Errorf("another URL after its end: %v", err)
	}
}

// The state of the account counts for its tokens, too; they end with the account, and do not come back with one of the same name.
func TestTokensFollowTheirUser(t *testing.T) {
	s, _, now := newService(t)
	put(t, s, User{Name: "u", Enabled: true}, "")
	issued, secret := issue(t, s, Token{User: "u", Method: "GET", URLs: []string{"/a"}})
	get := func() string {
		_, err := s.Authenticate(bearing("GET", "/a", secret))
		return code(t, err)
	}
	for _, tt := range []struct {
		user User
		want string
	}{
		{User{Name: "u", Enabled: true}, ""}, {User{Name: "u"}, "code 07"}, {User{Name: "u", Enabled: true, Expires: now.read()}, "code 08"},
		{User{Name: "u", Enabled: true, Locked: true}, "code 09"}, {User{Name: "u", Enabled: true, Addresses: "10.1.1.1"}, "code 14"}, {User{Name: "u", Enabled: true}, ""},
	} {
		put(t, s, tt.user, "")
		if got := get(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.user, got, tt.want)
		}
	}
	if err := s.DeleteUser(t.Context(), System, "u"); err != nil {
		t.Fatal(err)
	}
	put(t, s, User{Name: "u", Enabled: true}, "")
	if got := get(); got != "code 15" {
		t.Errorf("a new user of the same name: %q", got)
	}
	if _, ok, err := s.Token(t.Context(), issued.ID); ok || err != nil {
		t.Error(ok, err)
	}
	issued, secret = issue(t, s, Token{User: "u", Method: "GET", URLs: []string{"/a"}})
	if found, ok, err := s.TokenOf(t.Context(), secret); !ok || err != nil || found.ID != issued.ID {
		t.Error(found, ok, err)
	}
	if err := s.RevokeToken(t.Context(), System, issued.ID); err != nil {
		t.Fatal(err)
	}
	if got := get(); got != "code 15" {
		t.Errorf("revoked: %q", got)
	}
	if err := s.RevokeToken(t.Context(), System, issued.ID); core.CodeOf(err) != core.NotFound {
		t.Error(err)
	}
}

// The last use is known at once, and stored at most once an hour; nothing is written without a request.
func TestLastAccess(t *testing.T) {
	s, docs, now := newService(t)
	put(t, s, User{Name: "u", Enabled: true}, "")
	issued, secret := issue(t, s, Token{User: "u", Method: "GET", URLs: []string{"/a"}})
	start := docs.position
	accessed := func() core.Time {
		list, err := s.Tokens(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Accessed
	}
	use := func() {
		if _, err := s.Authenticate(bearing("GET", "/a", secret)); err != nil {
			t.Fatal(err)
		}
	}
	if got := accessed(); got != 0 {
		t.Errorf("before any use: %d", got)
	}
	now.advance(time.Hour)
	for range 100 {
		use()
		now.advance(time.Second)
	}
	if got := docs.position - start; got != 1 || accessed() != now.read()-1000 {
		t.Errorf("%d writes, accessed %d, now %d", got, accessed(), now.read())
	}
	now.advance(time.Hour)
	use()
	use()
	if got := docs.position - start; got != 2 {
		t.Errorf("%d writes an hour later", got)
	}
	// A refused use does not count.
	now.advance(time.Second)
	last := accessed()
	s.Authenticate(bearing("POST", "/a", secret))
	if accessed() != last {
		t.Error("a refused use counts")
	}
	if issued.Accessed != 0 {
		t.Error(issued.Accessed)
	}
}

func TestIssueIsChecked(t *testing.T) {
	s, _, now := newService(t)
	put(t, s, User{Name: "u", Enabled: true}, "")
	good := Token{User: "u", Method: "GET", URLs: []string{"/a"}}
	for name, spoil := range map[string]func(*Token){
		"user": func(t *Token) { t.User = "gone" }, "no user": func(t *Token) { t.User = "" }, "method": func(t *Token) { t.Method = "HEAD" },
		"no method": func(t *Token) { t.Method = "" }, "no URL": func(t *Token) { t.URLs = nil }, "blank URL": func(t *Token) { t.URLs = []string{" \n,"} },
		"URL": func(t *Token) { t.URLs = []string{"a"} }, "address": func(t *Token) { t.Addresses = "10.0.0.0/99" }, "past": func(t *Token) { t.Expires = now.read() },
	} {
		token := good
		spoil(&token)
		if _, _, err := s.IssueToken(t.Context(), System, token); core.CodeOf(err) != core.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "delete"} {
		good.Method = method
		issue(t, s, good)
	}
}
