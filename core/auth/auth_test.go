package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// documents is an ingester straight into the oracle store, which counts what it takes.
type documents struct {
	*memstore.Store
	position core.Position
	origin   core.Origin
}

func (d *documents) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	d.position++
	d.origin = b.Origin
	return core.Receipt{Position: d.position}, d.Apply(ctx, core.Entry{Position: d.position, Batch: b})
}

type clock struct {
	mu  sync.Mutex
	now core.Time
}

func (c *clock) read() core.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += core.Time(d.Milliseconds())
}

func newService(t *testing.T) (*Service, *documents, *clock) {
	t.Helper()
	docs, now := &documents{Store: memstore.New()}, &clock{now: 1_000_000}
	return New(docs, docs, Options{Clock: now.read}), docs, now
}

func request(user, password string) *http.Request {
	r := httptest.NewRequest("GET", "/api/v1/ping", nil)
	r.RemoteAddr = "198.51.100.7:4711"
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	return r
}

// code returns the text of a refusal, "" for none.
func code(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *core.Error
	if !errors.As(err, &e) || e.Code != core.Unauthenticated {
		t.Fatalf("error %v, want a core.Error of code unauthenticated", err)
	}
	return e.Text
}

func put(t *testing.T, s *Service, u User, password string) {
	t.Helper()
	if err := s.PutUser(t.Context(), System, u, password); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	s, _, now := newService(t)
	for _, u := range []User{
		{Name: "eva", Enabled: true},
		{Name: "off"},
		{Name: "old", Enabled: true, Expires: now.read()},
		{Name: "locked", Enabled: true, Locked: true},
		{Name: "far", Enabled: true, Addresses: "10.0.0.0/8 192.0.2.1"},
		{Name: "near", Enabled: true, Addresses: "10.0.0.0/8  198.51.100.0/24 2001:db8::/32"},
	} {
		put(t, s, u, "secret1")
	}
	for _, tt := range []struct{ user, password, want string }{
		{"eva", "secret1", ""},
		{"eva", "Secret1", "code 03"},
		{"eva", "", "code 03"},
		{"EVA", "secret1", "code 02"},
		{"nobody", "secret1", "code 02"},
		{"off", "secret1", "code 07"},
		{"off", "wrong12", "code 03"}, // the state of an account is for those who know its password
		{"old", "secret1", "code 08"},
		{"locked", "secret1", "code 09"},
		{"far", "secret1", "code 14"},
		{"near", "secret1", ""},
		{"", "", "code 03"},
	} {
		_, err := s.Authenticate(request(tt.user, tt.password))
		if got := code(t, err); got != tt.want {
			t.Errorf("%s:%s gives %q, want %q", tt.user, tt.password, got, tt.want)
		}
	}
	for header, want := range map[string]string{
		"Bearer abc": "code 15", "bearer abc": "code 15", "Basic ???": "code 03", "Digest x": "code 03", "Basic": "code 03",
		"Basic " + base64.StdEncoding.EncodeToString([]byte("eva:secret1")): "",
	} {
		r := request("", "")
		r.Header.Set("Authorization", header)
		_, err := s.Authenticate(r)
		if got := code(t, err); got != want {
			t.Errorf("%q gives %q, want %q", header, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	s, _, _ := newService(t)
	for _, g := range []Group{
		{Name: "ops", Read: []string{"pumps", "alpha"}, Write: []string{"valves"}},
		{Name: "more", Read: []string{"pumps"}, Write: []string{"tanks", "valves"}},
		{Name: "all", ReadAll: true},
	} {
		if err := s.PutGroup(t.Context(), System, g); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		user User
		want core.Grants
	}{
		{User{Groups: []string{"ops", "more", "gone"}, Roles: []string{"API_DATA_READ"}}, core.Grants{Roles: core.DataRead | core.Authenticated,
			ReadGroups: []string{"alpha", "pumps"}, WriteGroups: []string{"tanks", "valves"}}},
		{User{Groups: []string{"all"}, Roles: []string{"USER"}}, core.Grants{Roles: core.User | core.DataRead | core.MetaRead | core.Authenticated,
			ReadAll: true}},
		{User{Roles: []string{"ADMIN"}}, core.SystemGrants},
		{User{}, core.Grants{Roles: core.Authenticated}},
	} {
		got, err := s.Resolve(t.Context(), tt.user)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.user, diff)
		}
	}
}

func TestGrantsOfConfiguredUser(t *testing.T) {
	s, _, _ := newService(t)
	put(t, s, User{Name: "net", Enabled: true, Roles: []string{"ROLE_API_DATA_WRITE"}}, "")
	put(t, s, User{Name: "off"}, "")
	g, err := s.Grants(t.Context(), "net")
	if err != nil || g.Roles != core.DataWrite|core.Authenticated {
		t.Errorf("%v %v", g, err)
	}
	for name, want := range map[string]string{"gone": "code 02", "off": "code 07"} {
		if _, err := s.Grants(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A user without a password cannot log in, not even with an empty one.
	if _, err := s.Authenticate(request("net", "")); code(t, err) != "code 03" {
		t.Error(err)
	}
}

// One password is hashed once in ten minutes, and again at once when the user changes.
func TestVerifiedCredentials(t *testing.T) {
	s, docs, now := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	login := func() string {
		_, err := s.Authenticate(request("eva", "secret1"))
		return code(t, err)
	}
	if got := login(); got != "" {
		t.Fatal(got)
	}
	key := s.verified.of("eva", "secret1", stored(t, s, "eva"))
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {10*time.Minute - time.Millisecond, true}, {time.Millisecond, false}} {
		now.advance(tt.after)
		if got := s.verified.has(key, now.read()); got != tt.want {
			t.Errorf("after %v more: cached %v, want %v", tt.after, got, tt.want)
		}
	}
	login()
	if err := s.SetPassword(t.Context(), System, "eva", "secret2"); err != nil {
		t.Fatal(err)
	}
	if len(s.verified.known) != 0 {
		t.Errorf("%d credentials are cached after the user changed", len(s.verified.known))
	}
	if got := login(); got != "code 03" {
		t.Errorf("the old password gives %q", got)
	}
	// A change that came another way, such as by a restored document, is in force at once, too.
	if _, err := s.Authenticate(request("eva", "secret2")); err != nil {
		t.Fatal(err)
	}
	patch := core.DocChange{Kind: core.DocUser, Key: "eva", Op: core.DocPatch, Body: []byte(`{"hash":"$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAA"}`)}
	if _, err := docs.Ingest(t.Context(), &core.Batch{Documents: []core.DocChange{patch}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(request("eva", "secret2")); code(t, err) != "code 03" {
		t.Errorf("the password of before gives %v", err)
	}
}

func stored(t *testing.T, s *Service, name string) string {
	t.Helper()
	u, ok, err := s.User(t.Context(), name)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return u.Hash
}

func TestSessions(t *testing.T) {
	s, _, now := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	first, err := s.Authenticate(request("eva", "secret1"))
	if err != nil {
		t.Fatal(err)
	}
	c := first.Cookie
	if c == nil || !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || len(c.Value) < 40 {
		t.Fatalf("cookie %v", c)
	}
	if again, err := s.Authenticate(request("eva", "secret1")); err != nil || again.Cookie == nil || again.Cookie.Value != c.Value {
		t.Errorf("a second login has another session: %v %v", again.Cookie, err)
	}
	byCookie := func() (Identity, error) {
		r := request("", "")
		r.AddCookie(&http.Cookie{Name: CookieName, Value: "of another server"})
		r.AddCookie(c)
		return s.Authenticate(r)
	}
	if id, err := byCookie(); err != nil || id.User.Name != "eva" || id.Means != BySession || id.Cookie != nil || id.Address != "198.51.100.7" {
		t.Errorf("by cookie: %+v %v", id, err)
	}
	both := request("eva", "secret1")
	both.AddCookie(c)
	if id, err := s.Authenticate(both); err != nil || id.Cookie != nil || id.Means != ByPassword {
		t.Errorf("with password and cookie: %+v %v", id, err)
	}
	now.advance(29 * time.Minute)
	if _, err := byCookie(); err != nil {
		t.Errorf("after 29 minutes: %v", err)
	}
	now.advance(29 * time.Minute)
	if _, err := byCookie(); err != nil {
		t.Errorf("29 minutes after it was used: %v", err)
	}
	now.advance(30 * time.Minute)
	if _, err := byCookie(); code(t, err) != "code 03" {
		t.Errorf("after 30 idle minutes: %v", err)
	}
	fresh, err := s.Authenticate(request("eva", "secret1"))
	if err != nil || fresh.Cookie.Value == c.Value || len(s.sessions.byToken) != 1 {
		t.Errorf("a new login: %v %v, %d sessions", fresh.Cookie, err, len(s.sessions.byToken))
	}
	c = fresh.Cookie
	put(t, s, User{Name: "eva", Enabled: true, Roles: []string{"USER"}}, "")
	if _, err := byCookie(); code(t, err) != "code 03" {
		t.Errorf("after the user was changed: %v", err)
	}
	secure := httptest.NewRequest("GET", "https://h/", nil)
	secure.SetBasicAuth("eva", "secret1")
	if id, err := s.Authenticate(secure); err != nil || !id.Cookie.Secure {
		t.Errorf("under TLS: %v %v", id.Cookie, err)
	}
	if err := s.DeleteUser(t.Context(), System, "eva"); err != nil || len(s.sessions.byToken)+len(s.sessions.byKey) != 0 {
		t.Errorf("after delete: %v, %d sessions", err, len(s.sessions.byToken))
	}
}

func TestEnsureAdmin(t *testing.T) {
	s, docs, _ := newService(t)
	first, err := s.EnsureAdmin(t.Context(), "", "")
	if err != nil || !first.Created || !first.Generated || first.Name != "admin" || len(first.Password) < 20 {
		t.Fatalf("%+v %v", first, err)
	}
	if docs.origin.Door != core.DoorSystem || docs.origin.Grants.Roles != core.SystemGrants.Roles {
		t.Errorf("written by %+v", docs.origin)
	}
	id, err := s.Authenticate(request("admin", first.Password))
	if err != nil || !id.Grants.Roles.Has(core.Admin) || !id.Grants.ReadAll || !id.Grants.WriteAll {
		t.Errorf("%+v %v", id, err)
	}
	g, ok, err := s.Group(t.Context(), UsersGroup)
	if err != nil || !ok || !g.ReadAll || !g.WriteAll {
		t.Errorf("%+v %v %v", g, ok, err)
	}
	if again, err := s.EnsureAdmin(t.Context(), "root", "secret1"); err != nil || again.Created {
		t.Errorf("the second start: %+v %v", again, err)
	}
	other, _, _ := newService(t)
	if first, err = other.EnsureAdmin(t.Context(), "root", "secret1"); err != nil || first.Generated || first.Name != "root" {
		t.Errorf("%+v %v", first, err)
	}
	third, _, _ := newService(t)
	if _, err = third.EnsureAdmin(t.Context(), "root", "short"); core.CodeOf(err) != core.Invalid {
		t.Errorf("a short password: %v", err)
	}
}

func TestPasswordRule(t *testing.T) {
	s, _, _ := newService(t)
	for password, ok := range map[string]bool{
		"secret": true, "secre": false, "пароль": true, "密码密码密码": true, "~!@#$%^&*_-+=`|\\(){}[]:;\"'<>,.?/": true, "a b c d": false, "secret\n": false,
		"secret€": false, "": false,
	} {
		if err := s.checkRule(password); (err == nil) != ok {
			t.Errorf("%q: %v", password, err)
		}
	}
}

func TestUsersAreChecked(t *testing.T) {
	s, _, _ := newService(t)
	for _, u := range []User{
		{Name: ""}, {Name: "a:b"}, {Name: "a\nb"}, {Name: "a", Roles: []string{"KING"}}, {Name: "a", Addresses: "10.0.0.0/40"},
		{Name: "a", Addresses: "example.com"},
	} {
		if err := s.PutUser(t.Context(), System, u, "secret1"); core.CodeOf(err) != core.Invalid {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if err := s.SetPassword(t.Context(), System, "gone", "secret1"); core.CodeOf(err) != core.NotFound {
		t.Error(err)
	}
	if err := s.DeleteUser(t.Context(), System, "gone"); core.CodeOf(err) != core.NotFound {
		t.Error(err)
	}
	put(t, s, User{Name: "b", Enabled: true, Roles: []string{"ROLE_USER"}, Groups: []string{"y", "x", "y"}}, "secret1")
	put(t, s, User{Name: "a"}, "")
	users, err := s.Users(t.Context())
	if err != nil || len(users) != 2 || users[0].Name != "a" {
		t.Fatal(users, err)
	}
	if diff := cmp.Diff(User{Name: "b", Enabled: true, Roles: []string{"USER"}, Groups: []string{"x", "y"}, Hash: users[1].Hash}, users[1]); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(users[1].Hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash %s", users[1].Hash)
	}
	// A change without a password keeps the password.
	put(t, s, User{Name: "b", Enabled: true}, "")
	if _, err := s.Authenticate(request("b", "secret1")); err != nil {
		t.Error(err)
	}
}

// A stored hash that asks for more than the server can give, or that is damaged, matches nothing.
func TestHostileHashes(t *testing.T) {
	for _, stored := range []string{
		"", "x", "$argon2id$v=19$m=4294967295,t=2,p=1$c2FsdA$AAAA", "$argon2id$v=19$m=8,t=4294967295,p=1$c2FsdA$AAAA",
		"$argon2id$v=19$m=8,t=0,p=1$c2FsdA$AAAA", "$argon2id$v=19$m=8,t=1,p=0$c2FsdA$AAAA", "$argon2id$v=16$m=8,t=1,p=1$c2FsdA$AAAA",
		"$argon2id$v=19$m=8,t=1,p=1$c2FsdA$", "$argon2id$v=19$m=8,t=1,p=1$???$AAAA", "$argon2i$v=19$m=8,t=1,p=1$c2FsdA$AAAA",
	} {
		if matches("", stored) || matches("secret1", stored) {
			t.Errorf("%q matches", stored)
		}
	}
}

// Two hashes run at a time, some wait, and more are told to come back.
func TestHashesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher()
		var releases []func()
		for range atOnce {
			release, err := h.acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, waiting)
		for range waiting {
			go func() {
				_, err := h.acquire(ctx)
				errs <- err
			}()
		}
		synctest.Wait()
		if _, err := h.acquire(t.Context()); core.CodeOf(err) != core.Unavailable {
			t.Errorf("one more: %v", err)
		}
		cancel()
		for range waiting {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("a waiter: %v", err)
			}
		}
		for _, release := range releases {
			release()
		}
		if len(h.queue)+len(h.running) != 0 {
			t.Error("turns are left")
		}
	})
}

func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		headers string
		want    bool
	}{
		{"", true}, {"Sec-Fetch-Site: same-origin", true}, {"Sec-Fetch-Site: none", true}, {"Sec-Fetch-Site: cross-site", false},
		{"Sec-Fetch-Site: same-site", false}, {"Origin: http://db:8088", true}, {"Origin: http://db", false}, {"Origin: null", false},
		{"Referer: http://db:8088/x", true}, {"Referer: http://evil/http://db:8088", false}, {"Origin: http://db:8088@evil", false},
	} {
		r := httptest.NewRequest("POST", "http://db:8088/x", nil)
		if name, value, ok := strings.Cut(tt.headers, ": "); ok {
			r.Header.Set(name, value)
		}
		if got := SameOrigin(r); got != tt.want {
			t.Errorf("%q: %v", tt.headers, got)
		}
	}
}

// Whatever an address filter holds, it is read or refused, and what was read admits its own addresses.
func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{"", "10.0.0.0/8 192.0.2.1", "2001:db8::/32", "::ffff:10.0.0.1", "10.0.0.1/33", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prefixes, err := parseAddresses(text)
		if err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatal(err)
			}
			return
		}
		for _, p := range prefixes {
			if !readAddresses(text).admit(p.Addr()) {
				t.Fatalf("%q does not admit %v", text, p.Addr())
			}
		}
	})
}
