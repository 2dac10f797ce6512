package auth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// TestTokensMatchThePathThatIsRouted: a path that holds a byte which would have to be escaped is routed as it was sent, with its %2F as data. A token for
// more segments must not fit it.
func TestTokensMatchThePathThatIsRouted(t *testing.T) {
	signed, err := parseSigned("/api/v1/entities/<>/<>")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sent string
		want bool
	}{
		{"/api/v1/entities/a/b", true},
		{"/api/v1/entities/a/b|", true},
		{"/api/v1/entities/a%2Fb", false},
		{"/api/v1/entities/a%2Fb|", false}, // EscapedPath makes /api/v1/entities/a/b%7C of it
	} {
		u, err := url.ParseRequestURI(c.sent)
		if err != nil {
			t.Fatal(err)
		}
		asked, ok := targetOf(u)
		if got := ok && signed.allows(asked); got != c.want {
			t.Errorf("%s: allowed %v, want %v", c.sent, got, c.want)
		}
	}
}

// TestMayWrite: what a browser attaches by itself is no proof that its user wants a change.
func TestMayWrite(t *testing.T) {
	for _, c := range []struct {
		means      Means
		site, mode string
		want       bool
	}{
		{ByPassword, "", "", true},                    // no browser
		{ByPassword, "cross-site", "cors", true},      // a script that sends the header itself
		{ByPassword, "same-origin", "navigate", true}, // a form of ours
		{ByPassword, "none", "navigate", true},        // typed
		{ByPassword, "cross-site", "navigate", false}, // a form or link of another site, with the password that the browser remembers
		{ByPassword, "cross-site", "no-cors", false},  // an image
		{ByPassword, "same-site", "navigate", false},  // another port of the same name
		{BySession, "cross-site", "cors", false},      // the cookie
		{ByToken, "cross-site", "no-cors", true},      // no browser remembers tokens
		{BySession, "same-origin", "same-origin", true},
	} {
		r := httptest.NewRequest("POST", "http://db:8088/api/v1/command", nil)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
			r.Header.Set("Sec-Fetch-Mode", c.mode)
		}
		if got := (Identity{Means: c.means}).MayWrite(r); got != c.want {
			t.Errorf("%s, %s %s: %v", c.means, c.site, c.mode, got)
		}
	}
}

// TestRenew: who is still connected has the rights of now, and none when a new request would be refused.
func TestRenew(t *testing.T) {
	s, _, now := newService(t)
	put(t, s, User{Name: "eva", Enabled: true, Roles: []string{"API_DATA_WRITE"}}, "secret1")
	id, err := s.Authenticate(request("eva", "secret1"))
	if err != nil {
		t.Fatal(err)
	}
	token, secret := issue(t, s, Token{User: "eva", Method: "GET", URLs: []string{"/api/v1/ping"}})
	r := bearing("GET", "/api/v1/ping", secret)
	byToken, err := s.Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	renewed := func(id Identity) string {
		t.Helper()
		grants, err := s.Renew(t.Context(), id)
		if err != nil {
			return code(t, err)
		}
		return fmt.Sprint(grants.Roles.Has(core.DataWrite))
	}
	change := func(apply func(*User) error, password string) {
		t.Helper()
		if _, err := s.ChangeUser(t.Context(), System, "eva", UserChange{Password: password, Apply: apply}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what       string
		do         func()
		own, token string
	}{
		{"nothing", func() {}, "true", "true"},
		{"role taken", func() { change(func(u *User) error { u.Roles = []string{"API_DATA_READ"}; return nil }, "") }, "false", "false"},
		{"disabled", func() { change(func(u *User) error { u.Enabled = false; return nil }, "") }, "code 07", "code 07"},
		{"enabled", func() { change(func(u *User) error { u.Enabled = true; return nil }, "") }, "false", "false"},
		{"new password", func() { change(nil, "secret2") }, "code 03", "false"},
		{"token revoked", func() {
			if err := s.RevokeToken(t.Context(), System, token.ID); err != nil {
				t.Fatal(err)
			}
		}, "code 03", "code 15"},
		{"deleted", func() {
			if err := s.DeleteUser(t.Context(), System, "eva"); err != nil {
				t.Fatal(err)
			}
		}, "code 02", "code 15"},
	} {
		c.do()
		if got := renewed(id); got != c.own {
			t.Errorf("%s: with the password %s, want %s", c.what, got, c.own)
		}
		if got := renewed(byToken); got != c.token {
			t.Errorf("%s: with the token %s, want %s", c.what, got, c.token)
		}
	}
	// A token that ends while its request goes on.
	put(t, s, User{Name: "tom", Enabled: true, Roles: []string{"API_DATA_WRITE"}}, "secret1")
	_, secret = issue(t, s, Token{User: "tom", Method: "GET", URLs: []string{"/api/v1/ping"}, Expires: now.read() + 1000})
	ends, err := s.Authenticate(bearing("GET", "/api/v1/ping", secret))
	if err != nil {
		t.Fatal(err)
	}
	now.advance(1_000_000_000)
	if got := renewed(ends); got != "code 16" {
		t.Errorf("expired: %s", got)
	}
}

// TestTokensOfAUserAreBounded: everybody may issue tokens for themselves, but not fill the disk with them.
func TestTokensOfAUserAreBounded(t *testing.T) {
	s, _, _ := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	put(t, s, User{Name: "tom", Enabled: true}, "secret1")
	one := Token{User: "eva", Method: "GET", URLs: []string{"/x"}}
	for range maxTokens {
		issue(t, s, one)
	}
	if _, _, err := s.IssueToken(t.Context(), System, one); core.CodeOf(err) != core.Invalid {
		t.Errorf("one token too many: %v", err)
	}
	one.User = "tom"
	issue(t, s, one)
}

// TestSessionsEnd: a cookie that is used every few minutes, by whoever has it, must not be good forever. Neither must what it has begun.
func TestSessionsEnd(t *testing.T) {
	docs, now := &documents{Store: memstore.New()}, &clock{now: 1_000_000}
	s := New(docs, docs, Options{Clock: now.read, SessionAge: time.Hour})
	put(t, s, User{Name: "eva", Enabled: true, Roles: []string{"API_DATA_WRITE"}}, "secret1")
	login := func() *http.Cookie {
		t.Helper()
		id, err := s.Authenticate(request("eva", "secret1"))
		if err != nil || id.Cookie == nil {
			t.Fatalf("%v, %v", id.Cookie, err)
		}
		return id.Cookie
	}
	cookie := login()
	with := func(c *http.Cookie) (Identity, error) {
		r := request("", "")
		r.AddCookie(c)
		return s.Authenticate(r)
	}
	var stream Identity
	for minutes := 20; minutes <= 40; minutes += 20 {
		now.advance(20 * time.Minute)
		id, err := with(cookie)
		if err != nil {
			t.Fatalf("after %d minutes: %v", minutes, err)
		}
		stream = id
	}
	if _, err := s.Renew(t.Context(), stream); err != nil {
		t.Errorf("a request under way in the hour: %v", err)
	}
	now.advance(20 * time.Minute)
	if _, err := with(cookie); err == nil {
		t.Error("the session goes on after its hour")
	}
	if _, err := s.Renew(t.Context(), stream); err == nil {
		t.Error("a request that the session began goes on after its hour")
	}
	if again := login(); again.Value == cookie.Value {
		t.Error("the next login has the cookie of the session that ended")
	}
	// The default is a month.
	s = New(docs, docs, Options{Clock: now.read, SessionIdle: 1000 * time.Hour})
	cookie = login()
	now.advance(30*24*time.Hour - time.Millisecond)
	if _, err := with(cookie); err != nil {
		t.Errorf("at the end of the month: %v", err)
	}
	now.advance(time.Millisecond)
	if _, err := with(cookie); err == nil {
		t.Error("the session goes on after a month")
	}
}
