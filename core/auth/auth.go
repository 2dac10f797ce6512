// Package auth knows who is calling and what they may do: users, user groups, roles, entity permissions, passwords, tokens and sessions.
//
// Users, user groups and tokens are documents (core.DocUser, core.DocUserGroup, core.DocToken), read through core.Reader on every request and written
// through core.Ingester: there is no second store, and a change made anywhere is in force for the next request. What is kept in memory is only what would
// be slow to recompute, a decoded document (account.go) and a verified password (credential.go), and what is not worth keeping over a restart:
// sessions (session.go), wrong passwords (lockout.go), the time a token was last used (token.go).
//
// Reading order: user.go and group.go (documents and the calls of an administrator), account.go (a user ready for a request), password.go, credential.go,
// lockout.go, session.go, signed.go and token.go, request.go (the check of one HTTP request, with the order of mechanisms), audit.go (what is told of all
// that), first.go (what a start does).
//
// Every refusal is a core.Error of code Unauthenticated or Forbidden whose text is the contract's `code NN`.
package auth

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
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
	// SessionAge ends a session so long after its login, however often it is used. Default 30 days.
	SessionAge time.Duration
	// CredentialTTL is how long a verified password is trusted without hashing it again. Default 10 minutes.
	CredentialTTL time.Duration
	// MinPassword is the least number of characters of a password. Default 6.
	MinPassword int
	// Changes is the log that everything is written through, when it counts. nil = documents are read on each request.
	Changes *Watch
	// Guest lets callers without credentials use the reading methods.
	Guest bool
	// Lockout slows down guessing.
	Lockout Lockout
	// AuditEntity is the entity that gets a message for each login and administrative change. "" = they are only logged.
	AuditEntity string
	// Log gets the same. nil = discard.
	Log *slog.Logger
}

func (o *Options) setDefaults() {
	if o.SessionIdle == 0 {
		o.SessionIdle = 30 * time.Minute
	}
	if o.SessionAge == 0 {
		o.SessionAge = 30 * 24 * time.Hour
	}
	if o.CredentialTTL == 0 {
		o.CredentialTTL = 10 * time.Minute
	}
	if o.MinPassword == 0 {
		o.MinPassword = 6
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Lockout.setDefaults()
}

// Service answers every question about users. It is safe for concurrent use.
type Service struct {
	reader   core.Reader
	ingester core.Ingester
	opts     Options

	hasher   *hasher
	accounts *decoded[account]
	groups   *decoded[Group]
	tokens   *decoded[signedToken]
	verified *credentials
	lockout  *lockout
	sessions *sessions
	accesses *accesses
	audit    *audit

	write sync.Mutex // one administrative read-modify-write at a time; never held while hashing
}

// New returns a Service over the documents of r. It starts nothing and reads nothing.
func New(r core.Reader, i core.Ingester, o Options) *Service {
	o.setDefaults()
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand ends the process when the system has no randomness
	s := &Service{
		reader:   r,
		ingester: i,
		opts:     o,
		hasher:   newHasher(),
		accounts: newDecoded(core.DocUser, o.Changes, decodeAccount),
		groups:   newDecoded(core.DocUserGroup, o.Changes, decodeGroup),
		tokens:   newDecoded(core.DocToken, o.Changes, decodeToken),
		verified: newCredentials(key, o.CredentialTTL),
		lockout:  newLockout(o.Lockout),
		sessions: newSessions(o.SessionIdle, o.SessionAge),
		accesses: newAccesses(),
	}
	s.audit = newAudit(s)
	return s
}

// The contract's authentication codes that this package answers with.
const (
	codeUnknownUser   = "code 02"
	codeBadPassword   = "code 03"
	codeDisabled      = "code 07"
	codeAccountEnded  = "code 08"
	codeLocked        = "code 09"
	codeAddress       = "code 14"
	codeTokenEnded    = "code 16"
	codeNoCredentials = codeBadPassword
)

// AccessDenied is the text for a missing role or permission, and for a token that does not match.
const AccessDenied = "code 15"

// refuse is the 401 with one of the contract's codes.
func refuse(code string) error { return core.Errorf(core.Unauthenticated, "%s", code) }

// Denied is the refusal of a known user who lacks a role or an entity permission.
func Denied() error { return core.Errorf(core.Forbidden, "%s", AccessDenied) }

// Grants returns the rights of a named user, for doors that act as a configured user. The user must exist and be usable.
func (s *Service) Grants(ctx context.Context, name string) (core.Grants, error) {
	a, err := s.accounts.get(ctx, s.reader, name)
	switch {
	case err != nil:
		return core.Grants{}, err
	case a == nil:
		return core.Grants{}, fmt.Errorf("user %q: %w", name, refuse(codeUnknownUser))
	}
	if err := a.usable(s.opts.Clock()); err != nil {
		return core.Grants{}, fmt.Errorf("user %q: %w", name, err)
	}
	return s.resolve(ctx, a)
}

// distinct sorts names in place and drops repeated ones.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// put writes document changes as the server itself: administrative rights were checked before. The message of the audit stream is part of the same
// batch, so that there is no change without one.
func (s *Service) put(ctx context.Context, what change, documents ...core.DocChange) error {
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: documents}
	if m, ok := s.audit.message(what.event()); ok {
		b.Messages = append(b.Messages, m)
	}
	if _, err := s.ingester.Ingest(ctx, b); err != nil {
		names := make([]string, len(documents))
		for i, c := range documents {
			names[i] = string(c.Kind) + " " + c.Key
		}
		return fmt.Errorf("write %s: %w", strings.Join(names, ", "), err)
	}
	s.audit.log(ctx, what.event())
	return nil
}
