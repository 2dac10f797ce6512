package auth

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// CookieName is the name of the session cookie.
const CookieName = "tidemark"

// maxSessions bounds the sessions of all users, some 3 MB; the one that was idle longest makes room.
const maxSessions = 10_000

// maxAddresses is how many addresses of a session are remembered, so that a login from one of them is told once.
const maxAddresses = 16

// sessions are kept in memory: after a restart clients log in again with the credentials they have.
type sessions struct {
	idle time.Duration
	age  time.Duration // since the login

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
	begun core.Time
	used  core.Time
	from  []netip.Addr // clients that sent the password, the latest last
}

func newSessions(idle, age time.Duration) *sessions {
	return &sessions{idle: idle, age: age, byToken: map[string]*session{}, byKey: map[credentialKey]*session{}}
}

// open returns the token of the user's session for this credential, an existing one when there is. fresh reports whether it is a login that is worth
// telling: the session, or the address in it, is another one than before.
func (s *sessions) open(u *User, key credentialKey, from netip.Addr, now core.Time) (token string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if old := s.byKey[key]; old != nil && s.live(old, now) {
		old.used = now
		return old.token, old.add(from)
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	one := &session{token: base64.RawURLEncoding.EncodeToString(secret), user: u.Name, hash: u.Hash, key: key, begun: now, used: now, from: []netip.Addr{from}}
	if old := s.byKey[key]; old != nil {
		delete(s.byToken, old.token)
	} else if len(s.byToken) >= maxSessions {
		s.dropIdlest()
	}
	s.byToken[one.token], s.byKey[key] = one, one
	return one.token, true
}

// add remembers an address and reports whether it is a new one.
func (s *session) add(from netip.Addr) bool {
	if slices.Contains(s.from, from) {
		return false
	}
	if len(s.from) >= maxAddresses {
		s.from = slices.Delete(s.from, 0, 1)
	}
	s.from = append(s.from, from)
	return true
}

// dropIdlest makes room. It looks at all sessions, which takes less time than the password that the new one took.
func (s *sessions) dropIdlest() {
	var idlest *session
	for _, one := range s.byToken {
		if idlest == nil || one.used < idlest.used {
			idlest = one
		}
	}
	s.remove(idlest)
}

// proves reports whether a request carries the cookie of a session that was opened with this credential.
func (s *sessions) proves(r *http.Request, key credentialKey, now core.Time) bool {
	if r == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byKey[key]
	if one == nil || !s.live(one, now) {
		return false
	}
	for _, cookie := range r.CookiesNamed(CookieName) {
		if cookie.Value == one.token {
			return true
		}
	}
	return false
}

// found is what a request needs to know of the session of its cookie.
type found struct {
	user, hash string
	ends       core.Time // whether it is used or not
}

// find returns the session of a token and marks it used.
func (s *sessions) find(token string, now core.Time) (found, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byToken[token]
	if one == nil || !s.live(one, now) {
		return found{}, false
	}
	one.used = now
	return found{one.user, one.hash, s.ends(one)}, true
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

// live reports whether a session was used within the idle time and is not too old: a stolen cookie that is used every day would otherwise be good forever.
func (s *sessions) live(one *session, now core.Time) bool {
	return now < one.used+core.Time(s.idle.Milliseconds()) && now < s.ends(one)
}

func (s *sessions) ends(one *session) core.Time { return one.begun + core.Time(s.age.Milliseconds()) }

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

// Sessions returns the number of open sessions; those that ended by themselves may still count for a while.
func (s *Service) Sessions() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.byToken)
}
