package auth

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// audited is a service with a stream, and what it logs.
func audited(t *testing.T) (*Service, *documents, *clock, *strings.Builder) {
	s, docs, now := newService(t)
	logged := &strings.Builder{}
	s = New(docs, docs, Options{Clock: now.read, AuditEntity: "Edge-1", Log: slog.New(slog.NewTextHandler(logged, nil))})
	return s, docs, now, logged
}

// stream returns the messages as text, oldest first.
func stream(t *testing.T, docs *documents) []string {
	t.Helper()
	var list []string
	q := core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime, Type: AuditType}
	for m, err := range docs.Messages(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %s %s %s", m.Entity, m.Source, m.Severity, m.Text)
		for _, tag := range m.Tags {
			text += " " + tag.Name + "=" + tag.Value
		}
		list = append([]string{text}, list...)
	}
	return list
}

func expect(t *testing.T, docs *documents, want ...string) {
	t.Helper()
	got := stream(t, docs)
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("message %d:\n%s\nwant\n%s", i, g, w)
		}
	}
}

func TestAuditOfChanges(t *testing.T) {
	s, docs, now, logged := audited(t)
	by := Actor{"root", "192.0.2.1"}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		now.advance(time.Second)
	}
	step(s.PutUser(t.Context(), by, User{Name: "eva", Enabled: true}, "secret1"))
	step(s.PutUser(t.Context(), by, User{Name: "eva", Enabled: true, Roles: []string{"USER"}}, "secret2"))
	step(s.PutUser(t.Context(), by, User{Name: "eva", Enabled: true, Roles: []string{"USER"}}, "")) // changes nothing
	step(s.PutGroup(t.Context(), by, Group{Name: "ops", Read: []string{"pumps"}}))
	token, secret := issue(t, s, Token{User: "eva", Method: "GET", URLs: []string{"/a"}})
	step(nil)
	step(s.RevokeToken(t.Context(), by, token.ID))
	step(s.DeleteGroup(t.Context(), by, "ops"))
	step(s.DeleteUser(t.Context(), by, "eva"))
	const tail = " address=192.0.2.1"
	expect(t, docs,
		"edge-1 admin NORMAL user eva created by root action=created"+tail+" name=eva object=user user=root",
		"edge-1 admin NORMAL user eva changed by root: roles, password action=changed"+tail+" name=eva object=user user=root",
		"edge-1 admin NORMAL user group ops created by root action=created"+tail+" name=ops object=user group user=root",
		"edge-1 admin NORMAL token "+token.ID+" created by admin: for eva, GET action=created name="+token.ID+" object=token user=admin",
		"edge-1 admin NORMAL token "+token.ID+" deleted by root action=deleted"+tail+" name="+token.ID+" object=token user=root",
		"edge-1 admin NORMAL user group ops deleted by root action=deleted"+tail+" name=ops object=user group user=root",
		"edge-1 admin NORMAL user eva deleted by root action=deleted"+tail+" name=eva object=user user=root",
	)
	all := logged.String() + strings.Join(stream(t, docs), "\n")
	for _, no := range []string{"secret1", "secret2", secret, "argon2id", token.Hash} {
		if strings.Contains(all, no) {
			t.Errorf("the stream holds %s", no)
		}
	}
	if n := strings.Count(logged.String(), "audit: "); n != 7 {
		t.Errorf("%d lines:\n%s", n, logged)
	}
}

func TestAuditOfLogins(t *testing.T) {
	s, docs, now, logged := audited(t)
	if err := s.PutUser(t.Context(), System, User{Name: "eva", Enabled: true}, "secret1"); err != nil {
		t.Fatal(err)
	}
	fakeHasher(s)
	login := func(user, password, address string) { s.Authenticate(from(request(user, password), address)) }
	now.advance(time.Second)
	for range 50 {
		login("eva", "secret1", "10.0.0.1") // one session, one message
	}
	now.advance(time.Second)
	login("eva", "secret1", "10.0.0.2") // from elsewhere
	for range 20 {
		now.advance(time.Second)
		login("eva", "wrong", "10.0.0.3")
	}
	now.advance(10 * time.Minute)
	login("eva", "wrong", "10.0.0.3")
	now.advance(time.Second)
	login("my-pass-word", "x", "10.0.0.3") // typed into the wrong field
	now.advance(time.Second)
	s.Authenticate(request("", "")) // no credentials are no login
	expect(t, docs,
		"edge-1 admin NORMAL user eva created by system action=created name=eva object=user user=system",
		"edge-1 login NORMAL login of eva address=10.0.0.1 means=password result=accepted user=eva",
		"edge-1 login NORMAL login of eva address=10.0.0.2 means=password result=accepted user=eva",
		"edge-1 login WARNING login of eva refused: code 03 address=10.0.0.3 code=03 count=1 means=password result=refused user=eva",
		"edge-1 login WARNING login of eva refused: code 03 (20 times) address=10.0.0.3 code=03 count=20 means=password result=refused user=eva",
		"edge-1 login WARNING login of an unknown user refused: code 02 address=10.0.0.3 code=02 count=1 means=password result=refused",
	)
	if strings.Contains(logged.String(), "my-pass-word") {
		t.Error("the name of an unknown user is logged")
	}
}

// A flood of refusals from everywhere is written at the rate of its allowance, and what was left out is counted.
func TestAuditIsBounded(t *testing.T) {
	s, docs, now, _ := audited(t)
	fakeHasher(s)
	for i := range 20_000 {
		s.Authenticate(from(request("nobody", "x"), fmt.Sprintf("10.%d.%d.1", i/250, i%250)))
	}
	if n := len(stream(t, docs)); n != 60 {
		t.Errorf("%d messages, want 60", n)
	}
	if n := len(s.audit.pending); n > maxRefusals {
		t.Errorf("%d refusals are kept apart", n)
	}
	start := docs.position
	now.advance(24 * time.Hour)
	if docs.position != start {
		t.Error("an idle server writes")
	}
	s.Authenticate(from(request("nobody", "x"), "192.0.2.9"))
	last := stream(t, docs)
	if !strings.Contains(last[len(last)-1], "untold=") {
		t.Errorf("the rest is not counted: %s", last[len(last)-1])
	}
}

// A server without an entity for the stream writes no messages.
func TestAuditToTheLogAlone(t *testing.T) {
	s, docs, _ := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	start := docs.position
	s.Authenticate(request("eva", "secret1"))
	s.Authenticate(request("eva", "wrong"))
	if docs.position != start || len(stream(t, docs)) != 0 {
		t.Error("something was written")
	}
}
