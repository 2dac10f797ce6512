package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Token is the document of kind core.DocToken; its key is the id. The token itself is kept nowhere.
type Token struct {
	ID       string    `json:"id"`
	Hash     string    `json:"hash"` // hex of the SHA-256 of the token: 216 random bits need no slow hash
	User     string    `json:"user"` // who acts
	IssuedBy string    `json:"issuedBy"`
	Issued   core.Time `json:"issued"`
	Method   string    `json:"method"`
	URLs     []string  `json:"urls"`              // signed.go
	Expires  core.Time `json:"expires,omitempty"` // 0 = never

	Description string    `json:"description,omitempty"` // what it is for, in words
	Addresses   string    `json:"addresses,omitempty"`   // replaces the filter of the user; "" = the user's
	Accessed    core.Time `json:"accessed,omitempty"`    // last use, 0 = none; memory knows a later one
}

const (
	tokenBytes = 27 // 36 characters
	idLen      = 24 // hex digits of the hash: enough to be unique, and to say nothing of the token
)

// signedToken is a token ready for requests.
type signedToken struct {
	Token
	urls []signedURL
	from addresses
}

func decodeToken(body []byte) (*signedToken, error) {
	t := &signedToken{}
	if err := json.Unmarshal(body, &t.Token); err != nil {
		return nil, err
	}
	t.from = readAddresses(t.Addresses)
	for _, text := range t.URLs {
		if u, err := parseSigned(text); err == nil { // checked when it was issued; what cannot be read allows nothing
			t.urls = append(t.urls, u)
		}
	}
	return t, nil
}

// hashToken returns the stored form of a token and the id of its document.
func hashToken(secret string) (hash, id string) {
	sum := sha256.Sum256([]byte(secret))
	hash = hex.EncodeToString(sum[:])
	return hash, hash[:idLen]
}

// IssueToken makes a token for a user, valid at once, and returns it together with its text, which nobody can read again. t says for whom, which method,
// which URLs, how long and from where; each URL may hold several, separated by line breaks or commas. Errors are of code Invalid.
func (s *Service) IssueToken(ctx context.Context, by Actor, t Token) (issued Token, secret string, err error) {
	t.Method = strings.ToUpper(strings.TrimSpace(t.Method))
	if err := checkMethod(t.Method); err != nil {
		return Token{}, "", err
	}
	t.URLs = splitURLs(strings.Join(t.URLs, "\n"))
	if err := checkURLs(t.URLs); err != nil {
		return Token{}, "", err
	}
	if _, err := parseAddresses(t.Addresses); err != nil {
		return Token{}, "", err
	}
	if err := checkDescription(t.Description); err != nil {
		return Token{}, "", err
	}
	now := s.opts.Clock()
	if t.Expires != 0 && t.Expires <= now {
		return Token{}, "", core.Errorf(core.Invalid, "token expiration lies in the past")
	}
	s.write.Lock()
	defer s.write.Unlock()
	if _, exists, err := s.User(ctx, t.User); err != nil {
		return Token{}, "", err
	} else if !exists {
		return Token{}, "", core.Errorf(core.Invalid, "token user %q not found", t.User)
	}
	if err := s.roomForToken(ctx, t.User); err != nil {
		return Token{}, "", err
	}
	random := make([]byte, tokenBytes)
	rand.Read(random)
	secret = base64.RawURLEncoding.EncodeToString(random)
	t.Hash, t.ID = hashToken(secret)
	t.IssuedBy, t.Issued, t.Accessed = by.User, now, 0
	body, err := json.Marshal(t)
	if err != nil {
		return Token{}, "", fmt.Errorf("encode token %s: %w", t.ID, err)
	}
	what := change{by: by, kind: "token", name: t.ID, action: created, fields: []string{"for " + t.User, t.Method}}
	return t, secret, s.put(ctx, what, core.DocChange{Kind: core.DocToken, Key: t.ID, Body: body})
}

// maxTokens is how many tokens one user may have. Everybody may issue them, and each is a document for as long as it is not revoked.
const maxTokens = 1000

// roomForToken refuses one token too many.
func (s *Service) roomForToken(ctx context.Context, user string) error {
	n := 0
	if err := s.tokens.all(ctx, s.reader, func(t *signedToken) {
		if t.User == user {
			n++
		}
	}); err != nil {
		return err
	}
	if n >= maxTokens {
		return core.Errorf(core.Invalid, "user %s has %d tokens, the most that a user may have: revoke some", user, n)
	}
	return nil
}

// RevokeToken ends a token at once.
func (s *Service) RevokeToken(ctx context.Context, by Actor, id string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if _, exists, err := s.Token(ctx, id); err != nil {
		return err
	} else if !exists {
		return core.Errorf(core.NotFound, "token %q not found", id)
	}
	err := s.put(ctx, change{by: by, kind: "token", name: id, action: deleted}, core.DocChange{Kind: core.DocToken, Key: id, Op: core.DocDelete})
	if err == nil {
		s.accesses.drop(id)
	}
	return err
}

// Token returns a token by its id.
func (s *Service) Token(ctx context.Context, id string) (Token, bool, error) {
	t, err := s.tokens.get(ctx, s.reader, id)
	if err != nil || t == nil {
		return Token{}, false, err
	}
	return s.accesses.overlay(t.Token), true, nil
}

// TokenOf returns the token with this text.
func (s *Service) TokenOf(ctx context.Context, secret string) (Token, bool, error) {
	t, err := s.findToken(ctx, secret)
	if err != nil || t == nil {
		return Token{}, false, err
	}
	return s.accesses.overlay(t.Token), true, nil
}

// Tokens returns all tokens, by id.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) {
	var list []Token
	err := s.tokens.all(ctx, s.reader, func(t *signedToken) { list = append(list, s.accesses.overlay(t.Token)) })
	return list, err
}

func (s *Service) findToken(ctx context.Context, secret string) (*signedToken, error) {
	hash, id := hashToken(secret)
	t, err := s.tokens.get(ctx, s.reader, id)
	if err != nil || t == nil || subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash)) != 1 {
		return nil, err
	}
	return t, nil
}

// byToken finds the user of a bearer token. A token that does not match says no more than that, whatever is wrong with it; what is wrong with one that
// matches is for its owner to know. No session is opened: the next request with another token stands for itself.
func (s *Service) byToken(r *http.Request, secret string) (Identity, error) {
	ctx, now, from := r.Context(), s.opts.Clock(), clientAddress(r)
	t, err := s.findToken(ctx, secret)
	if err != nil {
		return Identity{}, err
	}
	refused := func(user, code string) (Identity, error) {
		s.audit.refused(ctx, refusal{user: user, from: from, code: code, means: ByToken})
		return Identity{}, refuse(code)
	}
	switch {
	case t == nil:
		return refused("", AccessDenied)
	case !t.allows(r):
		return refused(t.User, AccessDenied)
	case t.Expires != 0 && now >= t.Expires:
		return refused(t.User, codeTokenEnded)
	case !t.from.admit(from):
		return refused(t.User, codeAddress)
	}
	a, err := s.accounts.get(ctx, s.reader, t.User)
	if err != nil {
		return Identity{}, err
	}
	if a == nil {
		return refused("", AccessDenied)
	}
	id, err := s.identify(ctx, a, seen{from, ByToken, t.from.restricted})
	if err != nil {
		return Identity{}, err
	}
	id.token = t.ID
	s.touch(ctx, t, now)
	return id, nil
}

// allows reports whether the request is one that the token was issued for.
func (t *signedToken) allows(r *http.Request) bool {
	if r.Method != t.Method {
		return false
	}
	asked, ok := targetOf(r.URL)
	return ok && slices.ContainsFunc(t.urls, func(u signedURL) bool { return u.allows(asked) })
}

// rememberAccess is how old the stored time of the last use may get. A token in constant use costs one small write an hour.
const rememberAccess = core.Time(time.Hour / time.Millisecond)

// touch notes the use of a token, and stores it when the stored time has become old. That it could not be stored is no fault of the request.
func (s *Service) touch(ctx context.Context, t *signedToken, now core.Time) {
	if !s.accesses.set(t.ID, now) || now < t.Accessed+rememberAccess {
		return
	}
	if err := s.storeAccess(ctx, t.ID, now); err != nil {
		s.opts.Log.Warn("the last use of a token is not stored", "token", t.ID, "err", err)
	}
}

func (s *Service) storeAccess(ctx context.Context, id string, now core.Time) error {
	s.write.Lock()
	defer s.write.Unlock()
	// It may have been revoked a moment ago, which a change must not undo; or another request was faster.
	t, err := s.tokens.get(ctx, s.reader, id)
	if err != nil || t == nil || now < t.Accessed+rememberAccess {
		return err
	}
	t2 := t.Token
	t2.Accessed = now
	body, err := json.Marshal(t2)
	if err != nil {
		return err
	}
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{{Kind: core.DocToken, Key: id, Body: body}}}
	ctx, cancel := patient(ctx)
	defer cancel()
	_, err = s.ingester.Ingest(ctx, b)
	return err
}

// accesses is when tokens were last used.
type accesses struct {
	mu   sync.Mutex // guards below
	last map[string]core.Time
}

func newAccesses() *accesses { return &accesses{last: map[string]core.Time{}} }

// set notes a use. It reports false when a later one is noted already. Only tokens that exist get here, so that their number is the bound.
func (a *accesses) set(id string, now core.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now < a.last[id] {
		return false
	}
	a.last[id] = now
	return true
}

func (a *accesses) drop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, id)
}

// overlay returns a stored token with the time that memory knows, sharing no list with it.
func (a *accesses) overlay(t Token) Token {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Accessed = max(t.Accessed, a.last[t.ID])
	t.URLs = slices.Clone(t.URLs)
	return t
}

// seen is what is known of a caller beside the account.
type seen struct {
	from    netip.Addr
	means   Means
	allowed bool // the address was checked already, in place of the filter of the account
}
