package auth

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// A change of groups or of what they grant is in force with the next request, whoever wrote it; what did not change is not decoded again.
func TestRightsAreFresh(t *testing.T) {
	s, docs, _ := newService(t)
	put(t, s, User{Name: "u", Enabled: true, Roles: []string{"API_DATA_READ"}, Groups: []string{"g", "h"}}, "secret1")
	grants := func() core.Grants {
		t.Helper()
		id, err := s.Authenticate(request("u", "secret1"))
		if err != nil {
			t.Fatal(err)
		}
		return id.Grants
	}
	roles := core.DataRead | core.Authenticated
	check := func(want core.Grants) {
		t.Helper()
		want.Roles = roles
		if diff := cmp.Diff(want, grants()); diff != "" {
			t.Error(diff)
		}
	}
	check(core.Grants{})
	group := func(op core.DocOp, key, body string) {
		t.Helper()
		b := &core.Batch{Documents: []core.DocChange{{Kind: core.DocUserGroup, Key: key, Op: op, Body: []byte(body)}}}
		if _, err := docs.Ingest(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	group(core.DocPut, "g", `{"name":"g","read":["pumps"]}`)
	check(core.Grants{ReadGroups: []string{"pumps"}})
	group(core.DocPut, "h", `{"name":"h","write":["valves"],"read":["pumps","a"]}`)
	check(core.Grants{ReadGroups: []string{"a", "pumps"}, WriteGroups: []string{"valves"}})
	group(core.DocPut, "h", `{"name":"h","readAll":true}`)
	check(core.Grants{ReadAll: true, ReadGroups: []string{"pumps"}})
	group(core.DocDelete, "g", "")
	check(core.Grants{ReadAll: true})
	a, err := s.accounts.get(t.Context(), s.reader, "u")
	b, err2 := s.accounts.get(t.Context(), s.reader, "u")
	if err != nil || err2 != nil || a != b {
		t.Error("an unchanged user is decoded twice")
	}
}

// appended is a log over the oracle store, which counts how often documents are read.
type appended struct {
	core.Log
	*documents
	reads int
}

func (a *appended) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	return a.documents.Ingest(ctx, b)
}

func (a *appended) Documents(ctx context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	a.reads++
	return a.documents.Documents(ctx, q)
}

// pipe writes through the watch, as the pipeline does.
type pipe struct{ log core.Log }

func (p pipe) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	return p.log.Append(ctx, b)
}

// Over a log that counts changes nothing is read again until something was written, and then everything.
func TestWatch(t *testing.T) {
	_, docs, now := newService(t)
	log := &appended{documents: docs}
	watch := NewWatch(log)
	s := New(log, pipe{watch}, Options{Clock: now.read, Changes: watch})
	put(t, s, User{Name: "u", Enabled: true, Roles: []string{"USER"}, Groups: []string{"g"}}, "secret1")
	if err := s.PutGroup(t.Context(), System, Group{Name: "g"}); err != nil {
		t.Fatal(err)
	}
	login := func() core.Grants {
		t.Helper()
		id, err := s.Authenticate(request("u", "secret1"))
		if err != nil {
			t.Fatal(err)
		}
		return id.Grants
	}
	login()
	log.reads = 0
	for range 10 {
		login()
	}
	if log.reads != 0 {
		t.Errorf("%d reads without a change", log.reads)
	}
	write := func(kind core.DocKind, key, body string) {
		t.Helper()
		b := &core.Batch{Documents: []core.DocChange{{Kind: kind, Key: key, Body: []byte(body)}}}
		if _, err := watch.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	write(core.DocMetric, "m", "{}")
	if login(); log.reads != 0 {
		t.Errorf("%d reads after a change of a metric", log.reads)
	}
	write(core.DocUserGroup, "g", `{"name":"g","readAll":true}`)
	if !login().ReadAll || log.reads != 2 {
		t.Errorf("a changed group is not in force, or %d reads, want 2", log.reads)
	}
	write(core.DocUser, "u", `{"name":"u","enabled":false}`)
	if _, err := s.Authenticate(request("u", "secret1")); code(t, err) != "code 03" { // it lost its password with that
		t.Error(err)
	}
}

// serial makes the test store safe for concurrent writers, as the log is.
type serial struct {
	core.Log
	mu   sync.Mutex
	docs *documents
}

func (s *serial) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.docs.Ingest(ctx, b)
}

// Logins by every means go on while an administrator changes what they depend on. Run with the race detector.
func TestConcurrentUse(t *testing.T) {
	_, docs, now := newService(t)
	watch := NewWatch(&serial{docs: docs})
	s := New(docs.Store, pipe{watch}, Options{Clock: now.read, Changes: watch, AuditEntity: "edge", Guest: true})
	fakeHasher(s)
	put(t, s, User{Name: "admin", Enabled: true, Roles: []string{"ADMIN"}}, "secret1")
	put(t, s, User{Name: "u", Enabled: true, Groups: []string{"g"}}, "secret1")
	_, secret := issue(t, s, Token{User: "u", Method: "GET", URLs: []string{"/a?x=<>"}})
	var ended sync.WaitGroup
	for i := range 8 {
		ended.Go(func() {
			for range 50 {
				switch i % 4 {
				case 0:
					s.Authenticate(request("u", "secret1"))
				case 1:
					if _, err := s.Authenticate(bearing("GET", "/a?x=1", secret)); err != nil {
						t.Errorf("token: %v", err)
					}
				case 2:
					s.Authenticate(request("u", "wrong"))
					s.Authenticate(request("", ""))
					s.Tokens(t.Context())
				case 3:
					if err := s.PutGroup(t.Context(), System, Group{Name: "g", ReadAll: i == 3, Read: []string{"a"}}); err != nil {
						t.Error(err)
					}
					if _, err := s.ChangeUser(t.Context(), System, "u", UserChange{Apply: func(u *User) error {
						u.Roles = []string{[]string{"USER", "EDITOR"}[i/4]}
						return nil
					}}); err != nil {
						t.Error(err)
					}
				}
				now.advance(time.Second)
			}
		})
	}
	ended.Wait()
	if id, err := s.Authenticate(from(request("u", "secret1"), "192.0.2.200")); err != nil || len(id.Grants.ReadGroups) != 1 {
		t.Errorf("in the end: %+v %v", id, err)
	}
}

func TestGuests(t *testing.T) {
	_, docs, now := newService(t)
	s := New(docs, docs, Options{Clock: now.read, Guest: true})
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	id, err := s.Authenticate(request("", ""))
	if err != nil || id.Means != ByGuest || id.Cookie != nil || id.Grants.Roles != core.DataRead|core.MetaRead || !id.Grants.ReadAll || id.Grants.WriteAll {
		t.Errorf("%+v %v", id, err)
	}
	if err := id.Denied(); core.CodeOf(err) != core.Unauthenticated || err.Error() != "code 03" {
		t.Errorf("what a guest may not: %v", err)
	}
	r := request("", "")
	r.AddCookie(&http.Cookie{Name: CookieName, Value: "ended"})
	if id, err := s.Authenticate(r); err != nil || id.Means != ByGuest {
		t.Errorf("with an ended session: %+v %v", id, err)
	}
	// Whoever shows credentials is no guest.
	if _, err := s.Authenticate(request("eva", "wrong")); code(t, err) != "code 03" {
		t.Error(err)
	}
	if id, err := s.Authenticate(request("eva", "secret1")); err != nil || id.User.Name != "eva" || id.Grants.ReadAll || core.CodeOf(id.Denied()) != core.Forbidden {
		t.Errorf("%+v %v", id, err)
	}
}

func TestLastAdministratorStays(t *testing.T) {
	s, _, _ := newService(t)
	admin := User{Name: "root", Enabled: true, Roles: []string{"ADMIN"}}
	put(t, s, admin, "secret1")
	put(t, s, User{Name: "off", Roles: []string{"ADMIN"}}, "secret1")
	put(t, s, User{Name: "token", Enabled: true, Roles: []string{"ADMIN"}}, "") // cannot log in
	for name, u := range map[string]User{
		"disabled": {Name: "root", Roles: []string{"ADMIN"}}, "locked": {Name: "root", Enabled: true, Locked: true, Roles: []string{"ADMIN"}},
		"no role": {Name: "root", Enabled: true}, "expiring": {Name: "root", Enabled: true, Expires: 1, Roles: []string{"ADMIN"}},
	} {
		if err := s.PutUser(t.Context(), System, u, ""); core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), "last administrator") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.DeleteUser(t.Context(), System, "root"); core.CodeOf(err) != core.Invalid {
		t.Error(err)
	}
	put(t, s, User{Name: "second", Enabled: true, Roles: []string{"ADMIN"}}, "secret1")
	if err := s.DeleteUser(t.Context(), System, "root"); err != nil {
		t.Error(err)
	}
}

func TestGroupsLeaveTheirUsers(t *testing.T) {
	s, _, _ := newService(t)
	if err := s.PutGroup(t.Context(), System, Group{Name: "g", ReadAll: true}); err != nil {
		t.Fatal(err)
	}
	put(t, s, User{Name: "u", Enabled: true, Groups: []string{"g", "h"}}, "")
	if err := s.DeleteGroup(t.Context(), System, "g"); err != nil {
		t.Fatal(err)
	}
	if u, _, err := s.User(t.Context(), "u"); err != nil || len(u.Groups) != 1 || u.Groups[0] != "h" {
		t.Errorf("%+v %v", u, err)
	}
	if err := s.DeleteGroup(t.Context(), System, "g"); core.CodeOf(err) != core.NotFound {
		t.Error(err)
	}
	for _, g := range []Group{{}, {Name: " "}, {Name: "a\nb"}, {Name: strings.Repeat("x", 257)}, {Name: "g", Read: []string{""}}} {
		if err := s.PutGroup(t.Context(), System, g); core.CodeOf(err) != core.Invalid {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

func TestOwnPassword(t *testing.T) {
	s, _, _ := newService(t)
	put(t, s, User{Name: "eva", Enabled: true, Roles: []string{"USER"}}, "secret1")
	id, err := s.Authenticate(request("eva", "secret1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{{"wrong", "secret2"}, {"secret1", "short"}, {"secret1", ""}} {
		if err := s.ChangePassword(t.Context(), id, wrong[0], wrong[1]); core.CodeOf(err) != core.Invalid {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	if err := s.ChangePassword(t.Context(), id, "secret1", "secret2"); err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]string{"secret1": "code 03", "secret2": ""} {
		if _, err := s.Authenticate(request("eva", password)); code(t, err) != want {
			t.Errorf("%s: %v", password, err)
		}
	}
	if u, _, _ := s.User(t.Context(), "eva"); len(u.Roles) != 1 {
		t.Errorf("%+v", u)
	}
}

func TestResetPassword(t *testing.T) {
	s, docs, _ := newService(t)
	put(t, s, User{Name: "root", Enabled: true, Roles: []string{"ADMIN"}}, "forgotten")
	if done, err := s.ResetPassword(t.Context(), "root", "secret1"); !done || err != nil {
		t.Fatal(done, err)
	}
	if _, err := s.Authenticate(request("root", "secret1")); err != nil {
		t.Error(err)
	}
	start := docs.position
	if done, err := s.ResetPassword(t.Context(), "root", "secret1"); done || err != nil || docs.position != start {
		t.Errorf("the next start: %v %v, %d writes", done, err, docs.position-start)
	}
	if _, err := s.ResetPassword(t.Context(), "gone", "secret1"); core.CodeOf(err) != core.NotFound {
		t.Error(err)
	}
	if _, err := s.ResetPassword(t.Context(), "root", "short"); core.CodeOf(err) != core.Invalid {
		t.Error(err)
	}
}

func TestAddressFilters(t *testing.T) {
	for _, tt := range []struct {
		filter, from string
		want         bool
	}{
		{"", "203.0.113.1", true}, {"  ", "203.0.113.1", true}, {"203.0.113.1", "203.0.113.1", true}, {"203.0.113.1", "203.0.113.2", false},
		{"203.0.113.0/24", "203.0.113.255", true}, {"203.0.113.77/24", "203.0.113.1", true}, {"203.0.113.0/24", "203.0.114.0", false},
		{"10.0.0.0/8 203.0.113.1", "203.0.113.1", true}, {"10.0.0.0/8\t203.0.113.1\n", "10.255.0.1", true}, {"0.0.0.0/0", "8.8.8.8", true},
		{"0.0.0.0/0", "2001:db8::1", false}, {"2001:db8::/32", "2001:db8:ffff::1", true}, {"::1", "::1", true}, {"::1", "127.0.0.1", false},
		{"::ffff:10.0.0.0/104", "10.1.2.3", true}, {"::ffff:10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "::ffff:10.0.0.1", true}, {"bad", "10.0.0.1", false},
	} {
		r := request("", "")
		r.RemoteAddr = "[" + tt.from + "]:1"
		if got := readAddresses(tt.filter).admit(clientAddress(r)); got != tt.want {
			t.Errorf("%q admits %s: %v, want %v", tt.filter, tt.from, got, tt.want)
		}
	}
}

// plainDocuments reads as fast as the database does: one look-up, one copy.
type plainDocuments struct {
	documents
	bodies map[string][]byte
}

func (p *plainDocuments) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	for _, d := range b.Documents {
		p.bodies[string(d.Kind)+d.Key] = d.Body
	}
	return p.documents.Ingest(ctx, b)
}

func (p *plainDocuments) Documents(ctx context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	if q.Key == "" {
		return p.documents.Documents(ctx, q)
	}
	return func(yield func(core.Document, error) bool) {
		if body, ok := p.bodies[string(q.Kind)+q.Key]; ok {
			yield(core.Document{Kind: q.Kind, Key: q.Key, Body: slices.Clone(body)}, nil)
		}
	}
}

// BenchmarkAuthenticate is the cost of knowing who calls, for a user in one group: everything but the first hash.
func BenchmarkAuthenticate(b *testing.B) {
	docs, now := &plainDocuments{documents{Store: memstore.New()}, map[string][]byte{}}, &clock{now: 1_000_000}
	s := New(docs, docs, Options{Clock: now.read})
	if err := s.PutGroup(b.Context(), System, Group{Name: "g", Read: []string{"a", "b"}, WriteAll: true}); err != nil {
		b.Fatal(err)
	}
	if err := s.PutUser(b.Context(), System, User{Name: "eva", Enabled: true, Roles: []string{"USER"}, Groups: []string{"g"}}, "secret1"); err != nil {
		b.Fatal(err)
	}
	id, err := s.Authenticate(request("eva", "secret1"))
	if err != nil {
		b.Fatal(err)
	}
	_, secret, err := s.IssueToken(b.Context(), System, Token{User: "eva", Method: "GET", URLs: []string{"/api/v1/ping?x=<>&y=1"}})
	if err != nil {
		b.Fatal(err)
	}
	withCookie, both := request("", ""), request("eva", "secret1")
	withCookie.AddCookie(id.Cookie)
	both.AddCookie(id.Cookie)
	for name, r := range map[string]*http.Request{
		"password": request("eva", "secret1"), "password and cookie": both, "cookie": withCookie, "token": bearing("GET", "/api/v1/ping?y=1&x=2", secret),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Authenticate(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
