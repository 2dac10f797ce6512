package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/tidemark-db/tidemark/core"
)

// The parameters of argon2id: 19 MiB, two passes, one lane (the first choice of the OWASP password storage sheet). They are written into
// every hash, so that a later release can raise them without invalidating passwords.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	saltLen      = 16
	keyLen       = 32

	// maxMemory bounds what a stored hash may ask for: a damaged or hostile document must not take the server's memory.
	maxMemory = 256 << 10 // KiB
	maxTime   = 16

	// atOnce hashes run at the same time: 38 MiB at most, whatever the number of logins. waiting more may queue; past that the answer is
	// "try again", because a queue of hashes is a queue of seconds.
	atOnce  = 2
	waiting = 64
)

// hasher bounds how many passwords are hashed at once.
type hasher struct {
	running chan struct{}
	queue   chan struct{}
	// dummy is verified for a user that does not exist, so that the time of the answer does not tell whether a name is known.
	dummy string
	// matches is the comparison, which costs 46 ms.
	matches func(password, stored string) bool
}

func newHasher() *hasher {
	h := &hasher{running: make(chan struct{}, atOnce), queue: make(chan struct{}, atOnce+waiting), matches: matches}
	salt, key := make([]byte, saltLen), make([]byte, keyLen)
	rand.Read(salt)
	rand.Read(key) // of no password
	h.dummy = encodeHash(salt, key)
	return h
}

// acquire waits for a turn. The caller calls the returned function when done.
func (h *hasher) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.queue <- struct{}{}:
	default:
		return nil, core.Errorf(core.Unavailable, "too many logins at once, try again")
	}
	select {
	case h.running <- struct{}{}:
		return func() { <-h.running; <-h.queue }, nil
	case <-ctx.Done():
		<-h.queue
		return nil, ctx.Err()
	}
}

// hash checks the password rule and returns the text to store.
func (s *Service) hash(ctx context.Context, password string) (string, error) {
	if err := s.checkRule(password); err != nil {
		return "", err
	}
	release, err := s.hasher.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	salt := make([]byte, saltLen)
	rand.Read(salt)
	return encodeHash(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, keyLen)), nil
}

// encodeHash writes the usual text form: $argon2id$v=19$m=19456,t=2,p=1$salt$key, both in unpadded base64.
func encodeHash(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		b64.EncodeToString(salt), b64.EncodeToString(key))
}

// matches reports whether password has the stored hash. The caller holds a turn of the hasher.
func matches(password, stored string) bool {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return false
	}
	var memory, passes uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads); err != nil {
		return false
	}
	if memory > maxMemory || passes == 0 || passes > maxTime || threads == 0 {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// passwordSigns are the characters beside letters and digits that a password may hold.
const passwordSigns = "~!@#$%^&*_-+=`|\\(){}[]:;\"'<>,.?/"

// checkRule applies the rule for new passwords; stored ones are never checked again.
func (s *Service) checkRule(password string) error {
	if n := utf8.RuneCountInString(password); n < s.opts.MinPassword {
		return core.Errorf(core.Invalid, "password: %d characters, at least %d are required", n, s.opts.MinPassword)
	}
	for _, r := range password {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(passwordSigns, r) {
			continue
		}
		return core.Errorf(core.Invalid, "password: character %q is not allowed: use letters, digits and %s", r, passwordSigns)
	}
	return nil
}
