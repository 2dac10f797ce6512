package auth

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Lockout slows down guessing. It counts different wrong passwords by user and address: a stranger can lock out nobody who comes from elsewhere, and
// a client with an old password, which sends the same one again and again, locks out nobody at all.
type Lockout struct {
	// Attempts is how many different wrong passwords are free. Default 10.
	Attempts int
	// Delay is how long the next one is refused after that; it doubles with each further wrong password. Default 1 s.
	Delay time.Duration
	// MaxDelay ends the doubling. Default 5 minutes, which leaves a guesser 288 tries a day.
	MaxDelay time.Duration
}

func (l *Lockout) setDefaults() {
	if l.Attempts <= 0 {
		l.Attempts = 10
	}
	if l.Delay <= 0 {
		l.Delay = time.Second
	}
	if l.MaxDelay <= 0 {
		l.MaxDelay = 5 * time.Minute
	}
}

// place is where logins come from. The zero user stands for all users of an address.
type place struct {
	user string
	from netip.Addr
}

// placeOf returns the place of a login. Of an IPv6 address the first 64 bits count: who has one address has them all.
func placeOf(user string, from netip.Addr) place {
	return place{user[:min(len(user), maxName)], core.ClientOf(from)}
}

// anyUser is the address with whatever user: trying one password on many users is guessing, too.
func (p place) anyUser() place { return place{from: p.from} }

// manyUsers is how many times the attempts of one user an address has for all of them.
const manyUsers = 10

// failures are the recent wrong passwords of one place.
type failures struct {
	wrong []credentialKey // the latest different ones, at most maxWrong
	count int             // different ones
	until core.Time       // refused before
	last  core.Time
}

const (
	// maxWrong is how many wrong passwords of a place are recognized when they come again.
	maxWrong = 8
	// maxPlaces bounds the table, some 5 MB.
	maxPlaces = 10_000
	// forgetAfter is how long a place counts. Nine guesses in fifteen minutes, forever, are less than 900 a day.
	forgetAfter = core.Time(15 * time.Minute / time.Millisecond)
)

type lockout struct {
	Lockout

	mu     sync.Mutex // guards below
	places map[place]*failures
	sweep  core.Time // when to look for forgotten places next
}

func newLockout(o Lockout) *lockout { return &lockout{Lockout: o, places: map[place]*failures{}} }

// locked reports whether logins from p are refused without looking at the password.
func (l *lockout) locked(p place, now core.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.places[p]
	return f != nil && now < f.until
}

// tried reports whether this credential was wrong before.
func (l *lockout) tried(p place, key credentialKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.places[p]
	return f != nil && slices.Contains(f.wrong, key)
}

// fail counts a wrong password, for the user at the address and for the address.
func (l *lockout) fail(p place, key credentialKey, now core.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetOld(now)
	l.count(p, key, now)
	l.count(p.anyUser(), key, now)
}

// count adds one to a place. The caller holds the lock.
func (l *lockout) count(p place, key credentialKey, now core.Time) {
	f := l.places[p]
	if f == nil {
		f = &failures{}
		l.places[p] = f
	}
	if now >= max(f.last+forgetAfter, f.until) {
		*f = failures{}
	}
	if slices.Contains(f.wrong, key) {
		return // two requests at once
	}
	if len(f.wrong) >= maxWrong {
		f.wrong = slices.Delete(f.wrong, 0, 1)
	}
	f.wrong = append(f.wrong, key)
	f.count, f.last = f.count+1, now
	free := l.Attempts
	if p.user == "" {
		free *= manyUsers
	}
	if over := f.count - free; over >= 0 {
		delay := l.MaxDelay
		if over < 32 && l.Delay<<over < delay && l.Delay<<over > 0 {
			delay = l.Delay << over
		}
		f.until = now + core.Time(delay.Milliseconds())
	}
}

// forgetOld drops what counts no more, once a minute, and makes room when the table is full. The caller holds the lock.
func (l *lockout) forgetOld(now core.Time) {
	const every = core.Time(time.Minute / time.Millisecond)
	if now >= l.sweep {
		l.sweep = now + every
		for p, f := range l.places {
			if now >= max(f.last+forgetAfter, f.until) {
				delete(l.places, p)
			}
		}
	}
	for p := range l.places {
		if len(l.places) <= maxPlaces-2 { // room for the user and for the address
			return
		}
		delete(l.places, p) // some place: whoever fills the table has as many addresses as guesses
	}
}

// forget drops what is known of a place, since a right password came from there.
func (l *lockout) forget(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, p)
}

// compare hashes a password when it is its turn. Guesses that were sent side by side are counted one after another.
func (s *Service) compare(ctx context.Context, from place, key credentialKey, password, stored string) (bool, error) {
	release, err := s.hasher.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	// A hundred connections that log in together wait for one hash, not for a hundred.
	now := s.opts.Clock()
	if s.verified.has(key, now) {
		return true, nil
	}
	if s.lockout.locked(from, now) {
		return false, refuse(codeLocked)
	}
	if s.lockout.tried(from, key) {
		return false, nil
	}
	return s.hasher.matches(password, stored), nil
}
