// Package auth knows who is calling and what they may do: users, user groups, roles, entity permissions, passwords and sessions.
//
// Users and user groups are documents (core.DocUser, core.DocUserGroup), read through core.Reader on every request and written through
// core.Ingester: there is no second store, and a change made anywhere is in force for the next request. What is kept in memory is only
// what would be slow to recompute, a verified password (credential.go), and what is not worth keeping over a restart, sessions (session.go).
//
// Reading order: user.go (documents and the calls of an administrator), password.go, credential.go, session.go, request.go (the check of one
// HTTP request, with the order of mechanisms), first.go (first start).
//
// Every refusal is a core.Error of code Unauthenticated or Forbidden whose text is the contract's `code NN`.
package auth

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Options tune a Service. The zero value of a field means its default.
type Options struct {
	Clock func() core.Time // required

	// SessionIdle ends a session that was not used for so long. Default 30 minutes.
	SessionIdle time.Duration
	// CredentialTTL is how long a verified password is trusted without hashing it again. Default 10 minutes.
	CredentialTTL time.Duration
	// MinPassword is the least number of characters of a password. Default 6.
	MinPassword int
}

func (o *Options) setDefaults() {
	if o.SessionIdle == 0 {
		o.SessionIdle = 30 * time.Minute
	}
	if o.CredentialTTL == 0 {
		o.CredentialTTL = 10 * time.Minute
	}
	if o.MinPassword == 0 {
		o.MinPassword = 6
	}
}

// Service answers every question about users. It is safe for concurrent use.
type Service struct {
	reader   core.Reader
	ingester core.Ingester
	opts     Options

	hasher   *hasher
	verified *credentials
	sessions *sessions

	write sync.Mutex // one administrative read-modify-write at a time; never held while hashing
}

// New returns a Service over the documents of r. It starts nothing and reads nothing.
func New(r core.Reader, i core.Ingester, o Options) *Service {
	o.setDefaults()
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand ends the process when the system has no randomness
	return &Service{
		reader:   r,
		ingester: i,
		opts:     o,
		hasher:   newHasher(),
		verified: newCredentials(key, o.CredentialTTL),
		sessions: newSessions(o.SessionIdle),
	}
}

// The contract's authentication codes that this package answers with.
const (
	codeUnknownUser   = "code 02"
	codeBadPassword   = "code 03"
	codeDisabled      = "code 07"
	codeExpired       = "code 08"
	codeLocked        = "code 09"
	codeAddress       = "code 14"
	codeNoCredentials = codeBadPassword
)

// AccessDenied is the text for a missing role or permission, and for a token that does not match.
const AccessDenied = "code 15"

// refuse is the 401 with one of the contract's codes.
func refuse(code string) error { return core.Errorf(core.Unauthenticated, "%s", code) }

// Denied is the refusal of a known user who lacks a role or an entity permission.
func Denied() error { return core.Errorf(core.Forbidden, "%s", AccessDenied) }

// Resolve returns the rights of a user as they are now: the roles with what they include, and the union over the user's groups.
func (s *Service) Resolve(ctx context.Context, u User) (core.Grants, error) {
	g := core.Grants{Roles: u.roleSet().Expand()}
	if g.Roles.Has(core.Admin) {
		g.ReadAll, g.WriteAll = true, true
		return g, nil
	}
	for _, name := range u.Groups {
		group, ok, err := s.Group(ctx, name)
		if err != nil {
			return core.Grants{}, err
		}
		if !ok {
			continue // a deleted group grants nothing
		}
		g.ReadAll = g.ReadAll || group.ReadAll
		g.WriteAll = g.WriteAll || group.WriteAll
		g.ReadGroups = append(g.ReadGroups, group.Read...)
		g.WriteGroups = append(g.WriteGroups, group.Write...)
	}
	g.ReadGroups, g.WriteGroups = distinct(g.ReadGroups), distinct(g.WriteGroups)
	return g, nil
}

// Grants returns the rights of a named user, for doors that act as a configured user. The user must exist and be usable.
func (s *Service) Grants(ctx context.Context, name string) (core.Grants, error) {
	u, ok, err := s.User(ctx, name)
	switch {
	case err != nil:
		return core.Grants{}, err
	case !ok:
		return core.Grants{}, fmt.Errorf("user %q: %w", name, refuse(codeUnknownUser))
	}
	if err := u.usable(s.opts.Clock()); err != nil {
		return core.Grants{}, fmt.Errorf("user %q: %w", name, err)
	}
	return s.Resolve(ctx, u)
}

// distinct sorts names in place and drops repeated ones.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// document reads one document, nil when there is none.
func (s *Service) document(ctx context.Context, kind core.DocKind, key string) ([]byte, error) {
	for doc, err := range s.reader.Documents(ctx, core.DocumentQuery{Kind: kind, Key: key}) {
		if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", kind, key, err)
		}
		if doc.Key == key {
			return slices.Clone(doc.Body), nil
		}
	}
	return nil, nil
}

// put writes document changes as the server itself: administrative rights were checked before.
func (s *Service) put(ctx context.Context, changes ...core.DocChange) error {
	_, err := s.ingester.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Documents: changes})
	if err != nil {
		names := make([]string, len(changes))
		for i, c := range changes {
			names[i] = string(c.Kind) + " " + c.Key
		}
		return fmt.Errorf("write %s: %w", strings.Join(names, ", "), err)
	}
	return nil
}
