package auth

import (
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// CookieName is the name of the session cookie.
const CookieName = "tidemark"

// sessions are kept in memory: after a restart clients log in again with the credentials they have.
type sessions struct {
	idle time.Duration

	mu      sync.Mutex // guards below
	byToken map[string]*session
	// byKey finds the session of a credential, so that a client which sends its password with each request and never a cookie has one
	// session, not one a request.
	byKey map[credentialKey]*session
	sweep core.Time // when to look for ended sessions next
}

type session struct {
	token string
	user  string
	hash  string // the stored password hash at login: another one ends the session
	key   credentialKey
	used  core.Time
}

func newSessions(idle time.Duration) *sessions {
	return &sessions{idle: idle, byToken: map[string]*session{}, byKey: map[credentialKey]*session{}}
}

// open returns the token of the user's session for this credential, an existing one when there is.
func (s *sessions) open(u User, key credentialKey, now core.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if old := s.byKey[key]; old != nil && s.live(old, now) {
		old.used = now
		return old.token
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	fresh := &session{token: base64.RawURLEncoding.EncodeToString(secret), user: u.Name, hash: u.Hash, key: key, used: now}
	if old := s.byKey[key]; old != nil {
		delete(s.byToken, old.token)
	}
	s.byToken[fresh.token], s.byKey[key] = fresh, fresh
	return fresh.token
}

// find returns the session of a token and marks it used.
func (s *sessions) find(token string, now core.Time) (user, hash string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byToken[token]
	if found == nil || !s.live(found, now) {
		return "", "", false
	}
	found.used = now
	return found.user, found.hash, true
}

// drop ends every session of a user.
func (s *sessions) drop(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.byToken {
		if one.user == user {
			s.remove(one)
		}
	}
}

// live reports whether a session was used within the idle time.
func (s *sessions) live(one *session, now core.Time) bool {
	return now < one.used+core.Time(s.idle.Milliseconds())
}

// expire drops ended sessions, at most once an idle time: the number of live ones is bounded by the number of credentials.
func (s *sessions) expire(now core.Time) {
	if now < s.sweep {
		return
	}
	s.sweep = now + core.Time(s.idle.Milliseconds())
	for _, one := range s.byToken {
		if !s.live(one, now) {
			s.remove(one)
		}
	}
}

func (s *sessions) remove(one *session) {
	delete(s.byToken, one.token)
	if s.byKey[one.key] == one {
		delete(s.byKey, one.key)
	}
}
