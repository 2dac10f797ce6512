package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// credentialKey stands for one user, password and stored hash. It is an HMAC under a key that lives only in this process, so that memory
// holds nothing a password could be guessed from, and a changed password misses the cache by itself.
type credentialKey [sha256.Size]byte

// credentials remembers passwords that were verified, because verifying one costs some 46 ms and a client sends it with each request.
// Refused passwords are not remembered: guessing stays slow.
type credentials struct {
	ttl  time.Duration
	macs sync.Pool // of *signer

	mu    sync.Mutex // guards below
	known map[credentialKey]verifiedUser
}

type verifiedUser struct {
	name  string
	until core.Time
}

// maxCredentials bounds the cache; one entry is a user with the password in force, so it is never reached in practice.
const maxCredentials = 10_000

// signer is an HMAC under the key of the process, and what is signed. One that was used before needs no setup.
type signer struct {
	mac  hash.Hash
	text []byte
}

func newCredentials(key []byte, ttl time.Duration) *credentials {
	c := &credentials{ttl: ttl, known: map[credentialKey]verifiedUser{}}
	c.macs.New = func() any { return &signer{mac: hmac.New(sha256.New, key)} }
	return c
}

// of returns the key of a credential. Lengths are part of what is signed, so that no two triples look alike.
func (c *credentials) of(user, password, stored string) credentialKey {
	s := c.macs.Get().(*signer)
	defer c.macs.Put(s)
	text := s.text[:0]
	for _, part := range [...]string{user, password, stored} {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	s.mac.Reset()
	s.mac.Write(text)
	text = s.mac.Sum(text[:0])
	key := credentialKey(text)
	clear(text[:cap(text)]) // no password stays in memory for the next one to find
	if s.text = text; cap(text) > 4<<10 {
		s.text = nil
	}
	return key
}

func (c *credentials) has(k credentialKey, now core.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[k]
	return ok && now < v.until
}

// add remembers a verified password. When the table is full of live entries it is not remembered, which only costs time.
func (c *credentials) add(k credentialKey, user string, now core.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCredentials {
		for old, v := range c.known {
			if now >= v.until {
				delete(c.known, old)
			}
		}
		if len(c.known) >= maxCredentials {
			return
		}
	}
	c.known[k] = verifiedUser{user, now + core.Time(c.ttl.Milliseconds())}
}

// drop forgets every credential of a user.
func (c *credentials) drop(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, v := range c.known {
		if v.name == user {
			delete(c.known, k)
		}
	}
}

// login is one try to prove an identity with a password.
type login struct {
	name, password string
	from           netip.Addr
	request        *http.Request // whose session cookie may speak for it; nil for none
}

// verify finds the account of a login. An unknown name costs as much work as a wrong password.
func (s *Service) verify(ctx context.Context, l login) (*account, credentialKey, error) {
	a, err := s.accounts.get(ctx, s.reader, l.name)
	if err != nil {
		return nil, credentialKey{}, err
	}
	stored := s.hasher.dummy
	if a != nil && a.Hash != "" {
		stored = a.Hash
	}
	key, now := s.verified.of(l.name, l.password, stored), s.opts.Clock()
	from := placeOf(l.name, l.from)
	if s.lockout.locked(from, now) {
		// A session that was opened with this very password proves that it is no guess.
		if a == nil || !s.sessions.proves(l.request, key, now) {
			return nil, key, refuse(codeLocked)
		}
		return a, key, nil
	}
	if s.verified.has(key, now) {
		return a, key, nil
	}
	wrong := refuse(codeBadPassword)
	if a == nil {
		wrong = refuse(codeUnknownUser)
	}
	// The same wrong password again is a client that does not know better: it learns nothing, so it costs no hash and counts for nothing.
	if s.lockout.tried(from, key) {
		return nil, key, wrong
	}
	if s.lockout.locked(from.anyUser(), now) {
		s.lockout.fail(from, key, now)
		return nil, key, refuse(codeLocked)
	}
	ok, err := s.compare(ctx, from, key, l.password, stored)
	switch {
	case err != nil:
		return nil, key, err
	case !ok || a == nil:
		s.lockout.fail(from, key, s.opts.Clock())
		return nil, key, wrong
	}
	s.lockout.forget(from)
	s.verified.add(key, l.name, s.opts.Clock())
	return a, key, nil
}
