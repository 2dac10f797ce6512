package auth

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// fakeHasher makes hashing free and counts it. The password of every user is `secret1`.
func fakeHasher(s *Service) *int {
	n := new(int)
	s.hasher.matches = func(password, _ string) bool {
		*n++
		return password == "secret1"
	}
	return n
}

func from(r *http.Request, address string) *http.Request {
	r.RemoteAddr = address + ":4711"
	return r
}

// An unknown name costs the hashes of a wrong password, neither more nor less, whatever went before: the time of an answer tells nothing.
func TestUnknownUserCostsTheSame(t *testing.T) {
	for _, before := range []int{0, 3, 9, 10, 12} {
		var cost [3]int
		for i, user := range []string{"known", "without", "unknown"} {
			s, _, _ := newService(t)
			put(t, s, User{Name: "known", Enabled: true}, "secret1")
			put(t, s, User{Name: "without", Enabled: true}, "")
			n := fakeHasher(s)
			for try := range before {
				s.Authenticate(request(user, fmt.Sprint("wrong", try)))
			}
			*n = 0
			s.Authenticate(request(user, "another"))
			s.Authenticate(request(user, "another"))
			cost[i] = *n
		}
		if cost[0] != cost[1] || cost[0] != cost[2] {
			t.Errorf("after %d wrong passwords: hashes of a known user, one without password, an unknown one: %v", before, cost)
		}
		if want := 1; before < 10 && cost[0] != want {
			t.Errorf("after %d wrong passwords: %d hashes, want %d", before, cost[0], want)
		}
	}
}

func TestLockout(t *testing.T) {
	s, _, now := newService(t)
	put(t, s, User{Name: "admin", Enabled: true, Roles: []string{"ADMIN"}}, "secret1")
	hashes := fakeHasher(s)
	try := func(address, password string) string {
		_, err := s.Authenticate(from(request("admin", password), address))
		return code(t, err)
	}
	for i := range 10 {
		if got := try("203.0.113.5", fmt.Sprint("guess", i)); got != "code 03" {
			t.Fatalf("guess %d: %s", i, got)
		}
	}
	if got := try("203.0.113.5", "secret1"); got != "code 09" {
		t.Errorf("the right password after ten wrong ones: %q", got)
	}
	// Nobody else is locked out, not even from the next address.
	if got := try("203.0.113.6", "secret1"); got != "" {
		t.Errorf("from elsewhere: %q", got)
	}
	if got := try("203.0.113.5", "secret1"); got != "code 09" {
		t.Errorf("after a login from elsewhere: %q", got) // else the cache of verified passwords would tell a guesser which one is right
	}
	if *hashes != 11 {
		t.Errorf("%d hashes, want 11: none while locked", *hashes)
	}
	// The waits: 1 s, then twice as long after each further wrong one, five minutes at most.
	for i, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		wait *= time.Second
		now.advance(wait - time.Millisecond)
		if got := try("203.0.113.5", fmt.Sprint("more", i)); got != "code 09" {
			t.Fatalf("wait %d: %q one millisecond early", i, got)
		}
		now.advance(time.Millisecond)
		if got := try("203.0.113.5", fmt.Sprint("more", i)); got != "code 03" {
			t.Fatalf("wait %d: %q in time", i, got)
		}
	}
	now.advance(5 * time.Minute)
	if got := try("203.0.113.5", "secret1"); got != "" {
		t.Errorf("the right password in the end: %q", got)
	}
	if got := try("203.0.113.5", "wrong"); got != "code 03" {
		t.Errorf("a right password starts the count anew: %q", got)
	}
}

// A client that sends the same old password again and again neither locks out its neighbours nor makes the server hash.
func TestRepeatedWrongPassword(t *testing.T) {
	s, _, now := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	hashes := fakeHasher(s)
	for range 1000 {
		now.advance(time.Second)
		if _, err := s.Authenticate(request("eva", "old")); code(t, err) != "code 03" {
			t.Fatal(err)
		}
	}
	if *hashes > 1 {
		t.Errorf("%d hashes", *hashes)
	}
	if _, err := s.Authenticate(request("eva", "secret1")); err != nil {
		t.Error(err)
	}
	// When the password becomes the one that the client sends, it is right at once.
	s.hasher.matches = matches
	if err := s.SetPassword(t.Context(), System, "eva", "old-password"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(request("eva", "secret2")); code(t, err) != "code 03" {
		t.Error(err)
	}
	if err := s.SetPassword(t.Context(), System, "eva", "secret2"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(request("eva", "secret2")); err != nil {
		t.Error(err)
	}
}

// While a place is locked, who has a session goes on, also with the password beside the cookie.
func TestSessionsGoOnWhileLocked(t *testing.T) {
	s, _, _ := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	fakeHasher(s)
	id, err := s.Authenticate(request("eva", "secret1"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		s.Authenticate(request("eva", fmt.Sprint("guess", i)))
	}
	with := func(user, password string, cookie *http.Cookie) string {
		r := request(user, password)
		if cookie != nil {
			r.AddCookie(cookie)
		}
		_, err := s.Authenticate(r)
		return code(t, err)
	}
	for _, tt := range []struct {
		user, password string
		cookie         *http.Cookie
		want           string
	}{
		{"eva", "secret1", nil, "code 09"},
		{"eva", "secret1", id.Cookie, ""},
		{"", "", id.Cookie, ""},
		{"eva", "guess", id.Cookie, "code 09"},
		{"eva", "secret1", &http.Cookie{Name: CookieName, Value: "made-up"}, "code 09"},
	} {
		if got := with(tt.user, tt.password, tt.cookie); got != tt.want {
			t.Errorf("%s:%s with cookie %v: %q, want %q", tt.user, tt.password, tt.cookie != nil, got, tt.want)
		}
	}
}

// One password tried on many users is guessing, too.
func TestManyUsersFromOneAddress(t *testing.T) {
	s, _, _ := newService(t)
	put(t, s, User{Name: "eva", Enabled: true}, "secret1")
	put(t, s, User{Name: "tom", Enabled: true}, "secret1")
	hashes := fakeHasher(s)
	if _, err := s.Authenticate(request("eva", "secret1")); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := s.Authenticate(request(fmt.Sprint("user", i), "secret2")); code(t, err) != "code 02" {
			t.Fatal(i, err)
		}
	}
	*hashes = 0
	for user, want := range map[string]string{"tom": "code 09", "user200": "code 09", "eva": ""} { // eva's password is known to be right
		if _, err := s.Authenticate(request(user, "secret1")); code(t, err) != want {
			t.Errorf("%s: %v, want %s", user, err, want)
		}
	}
	if *hashes != 0 {
		t.Errorf("%d hashes", *hashes)
	}
	if _, err := s.Authenticate(from(request("tom", "secret1"), "198.51.100.8")); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	a, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff:1")
	if placeOf("u", a) != placeOf("u", b) {
		t.Error("two addresses of one IPv6 network are two places")
	}
	if placeOf("u", a) == placeOf("u", netip.MustParseAddr("2001:db8:0:1::1")) {
		t.Error("two networks are one place")
	}
	if placeOf("u", netip.MustParseAddr("10.0.0.1")) == placeOf("u", netip.MustParseAddr("10.0.0.2")) {
		t.Error("two IPv4 addresses are one place")
	}
	if p := placeOf(strings.Repeat("x", 1<<20), a); len(p.user) != maxName {
		t.Errorf("a name of %d bytes is kept", len(p.user))
	}
}

// A flood of places does not grow the table, and old places are forgotten.
func TestPlacesAreBounded(t *testing.T) {
	o := Lockout{}
	o.setDefaults()
	l := newLockout(o)
	key := credentialKey{1}
	for i := range 3 * maxPlaces {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(i))
		l.fail(place{"u", netip.AddrFrom4(b)}, key, 0)
	}
	if n := len(l.places); n > maxPlaces {
		t.Errorf("%d places", n)
	}
	l.fail(place{"u", netip.Addr{}}, key, forgetAfter)
	if n := len(l.places); n != 2 {
		t.Errorf("%d places after a quarter of an hour, want the new one and its address", n)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newSessions(30*time.Minute, time.Hour)
	var first string
	for i := range maxSessions + 5 {
		var key credentialKey
		binary.BigEndian.PutUint32(key[:], uint32(i))
		token, fresh := s.open(&User{Name: "u"}, key, netip.Addr{}, core.Time(i))
		if !fresh {
			t.Fatal("not fresh")
		}
		if i == 0 {
			first = token
		}
	}
	if len(s.byToken) != maxSessions || len(s.byKey) != maxSessions {
		t.Errorf("%d sessions", len(s.byToken))
	}
	if _, ok := s.find(first, 10); ok {
		t.Error("the one that was idle longest is still there")
	}
}
