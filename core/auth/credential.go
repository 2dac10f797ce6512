package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
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
	key []byte
	ttl time.Duration

	mu    sync.Mutex // guards below
	known map[credentialKey]verifiedUser
}

type verifiedUser struct {
	name  string
	until core.Time
}

// maxCredentials bounds the cache; one entry is a user with the password in force, so it is never reached in practice.
const maxCredentials = 10_000

func newCredentials(key []byte, ttl time.Duration) *credentials {
	return &credentials{key: key, ttl: ttl, known: map[credentialKey]verifiedUser{}}
}

// of returns the key of a credential. Lengths are part of what is signed, so that no two triples look alike.
func (c *credentials) of(user, password, stored string) credentialKey {
	mac := hmac.New(sha256.New, c.key)
	for _, part := range [...]string{user, password, stored} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		mac.Write(n[:])
		mac.Write([]byte(part))
	}
	return credentialKey(mac.Sum(nil))
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

// verify finds the user of a name and password. An unknown name costs as much time as a wrong password.
func (s *Service) verify(ctx context.Context, name, password string) (User, credentialKey, error) {
	u, known, err := s.User(ctx, name)
	if err != nil {
		return User{}, credentialKey{}, err
	}
	stored := u.Hash
	if !known || stored == "" {
		stored = s.hasher.dummy
	}
	key := s.verified.of(name, password, stored)
	if s.verified.has(key, s.opts.Clock()) {
		return u, key, nil
	}
	release, err := s.hasher.acquire(ctx)
	if err != nil {
		return User{}, credentialKey{}, err
	}
	defer release()
	// A hundred connections that log in together wait for one hash, not for a hundred.
	if s.verified.has(key, s.opts.Clock()) {
		return u, key, nil
	}
	switch ok := matches(password, stored); {
	case !known:
		return User{}, credentialKey{}, refuse(codeUnknownUser)
	case !ok:
		return User{}, credentialKey{}, refuse(codeBadPassword)
	}
	s.verified.add(key, name, s.opts.Clock())
	return u, key, nil
}
