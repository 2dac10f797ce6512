package auth

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

// A change counts for the next request; what was not asked for, the last use among it, stays.
func TestChangeToken(t *testing.T) {
	s, docs, now := newService(t)
	put(t, s, User{Name: "tom", Enabled: true, Roles: []string{"API_DATA_WRITE"}}, "")
	issued, secret := issue(t, s, Token{User: "tom", Method: "GET", URLs: []string{"/a"}, Description: "first", Expires: now.read() + 1000})
	if _, err := s.Authenticate(bearing("GET", "/a", secret)); err != nil {
		t.Fatal(err)
	}
	used := now.read()
	now.advance(time.Second)
	if _, err := s.Authenticate(bearing("GET", "/a", secret)); code(t, err) != "code 16" {
		t.Error(err)
	}
	text, never := "second", core.Time(0)
	got, err := s.ChangeToken(t.Context(), Actor{User: "admin"}, issued.ID, TokenChange{Description: &text, Expires: &never})
	want := issued
	want.Description, want.Expires, want.Accessed = text, 0, used
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := s.Authenticate(bearing("GET", "/a", secret)); err != nil {
		t.Error(err)
	}
	addresses := "10.0.0.0/8"
	if _, err := s.ChangeToken(t.Context(), Actor{User: "admin"}, issued.ID, TokenChange{Addresses: &addresses}); err != nil {
		t.Error(err)
	}
	if _, err := s.Authenticate(bearing("GET", "/a", secret)); code(t, err) != "code 14" {
		t.Error(err)
	}
	for doc, err := range docs.Documents(t.Context(), core.DocumentQuery{Kind: core.DocToken}) {
		if err != nil || strings.Contains(string(doc.Body), secret) {
			t.Errorf("%s %v", doc.Body, err)
		}
	}

	long, past, bad := strings.Repeat("x", maxDescription+1), core.Time(1), "here"
	for _, c := range []TokenChange{{Description: &long}, {Expires: &past}, {Addresses: &bad}} {
		if _, err := s.ChangeToken(t.Context(), Actor{User: "admin"}, issued.ID, c); core.CodeOf(err) != core.Invalid {
			t.Error(err)
		}
	}
	if _, err := s.ChangeToken(t.Context(), Actor{User: "admin"}, "x", TokenChange{}); core.CodeOf(err) != core.NotFound {
		t.Error(err)
	}
}
