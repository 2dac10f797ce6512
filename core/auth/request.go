package auth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Means is how a caller proved who they are.
type Means uint8

const (
	ByPassword Means = iota
	BySession        // with nothing but the cookie
	ByToken
	ByGuest // not at all
)

func (m Means) String() string { return [...]string{"password", "session", "token", "guest"}[m] }

// Identity is the caller of one request.
type Identity struct {
	User    User
	Grants  core.Grants
	Means   Means
	Address string       // of the client, without port
	Cookie  *http.Cookie // to set on the response, nil when the client already has it

	token string    // id of the token, "" for other means
	ends  core.Time // of the session, with BySession
}

// Renew returns the rights of a caller as they are now: for requests that go on for hours, in which an account may be disabled, a password changed and a
// token revoked. The error is the refusal that a new request would get.
func (s *Service) Renew(ctx context.Context, id Identity) (core.Grants, error) {
	if id.Means == ByGuest {
		return id.Grants, nil
	}
	now := s.opts.Clock()
	if id.Means == ByToken {
		switch t, err := s.tokens.get(ctx, s.reader, id.token); {
		case err != nil:
			return core.Grants{}, err
		case t == nil:
			return core.Grants{}, refuse(AccessDenied)
		case t.Expires != 0 && now >= t.Expires:
			return core.Grants{}, refuse(codeTokenEnded)
		}
	}
	a, err := s.accounts.get(ctx, s.reader, id.User.Name)
	switch {
	case err != nil:
		return core.Grants{}, err
	case a == nil:
		return core.Grants{}, refuse(codeUnknownUser)
	case id.Means != ByToken && a.Hash != id.User.Hash:
		return core.Grants{}, refuse(codeBadPassword)
	case id.Means == BySession && now >= id.ends:
		return core.Grants{}, refuse(codeNoCredentials)
	}
	if err := a.usable(now); err != nil {
		return core.Grants{}, err
	}
	return s.resolve(ctx, a)
}

// Origin is what a batch of this caller carries.
func (id Identity) Origin(door core.Door) core.Origin {
	return core.Origin{User: id.User.Name, Address: id.Address, Door: door, Grants: id.Grants}
}

// Actor is the caller as the audit stream names it.
func (id Identity) Actor() Actor { return Actor{id.User.Name, id.Address} }

// Denied is the refusal of a request whose role the caller lacks. A guest is asked for credentials, anybody else has shown them already.
func (id Identity) Denied() error {
	if id.Means == ByGuest {
		return refuse(codeNoCredentials)
	}
	return Denied()
}

// guestGrants let guests read everything. They are not authenticated: what any user may call is not for them.
var guestGrants = core.Grants{Roles: core.DataRead | core.MetaRead, ReadAll: true}

// BearsToken reports whether a request comes with a bearer token, which is checked on every path, the public ones included.
func BearsToken(r *http.Request) bool {
	_, ok := bearer(r.Header.Get("Authorization"))
	return ok
}

func bearer(header string) (token string, ok bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	return strings.TrimSpace(rest), strings.EqualFold(scheme, "Bearer")
}

// Authenticate finds the caller of a request. The Authorization header beats the cookie: a wrong header is refused even beside the
// valid cookie of somebody else, because clients change credentials on a connection that keeps its cookies.
func (s *Service) Authenticate(r *http.Request) (Identity, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return s.bySession(r)
	}
	if token, ok := bearer(header); ok {
		return s.byToken(r, token)
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return Identity{}, refuse(codeNoCredentials)
	}
	return s.byPassword(r, name, password)
}

func (s *Service) byPassword(r *http.Request, name, password string) (Identity, error) {
	ctx, from := r.Context(), clientAddress(r)
	a, key, err := s.verify(ctx, login{name, password, from, r})
	if err != nil {
		s.tellRefused(ctx, err, refusal{user: name, from: from})
		return Identity{}, err
	}
	id, err := s.identify(ctx, a, seen{from: from})
	if err != nil {
		return Identity{}, err
	}
	token, fresh := s.sessions.open(&a.User, key, from, s.opts.Clock())
	if fresh {
		s.audit.succeeded(ctx, name, from)
	}
	id.Cookie = s.cookie(r, token)
	return id, nil
}

// tellRefused tells of a password that was refused, but not of a fault of the server. Of a user who does not exist it tells no name.
func (s *Service) tellRefused(ctx context.Context, err error, r refusal) {
	var e *core.Error
	if !errors.As(err, &e) || e.Code != core.Unauthenticated {
		return
	}
	r.code = e.Text
	if _, exists, err := s.User(ctx, r.user); err != nil || !exists {
		r.user = ""
	}
	s.audit.refused(ctx, r)
}

// bySession finds the user of the session cookie. A browser may send several cookies of that name, one of another server on the same host.
func (s *Service) bySession(r *http.Request) (Identity, error) {
	for _, cookie := range r.CookiesNamed(CookieName) {
		session, ok := s.sessions.find(cookie.Value, s.opts.Clock())
		if !ok {
			continue
		}
		a, err := s.accounts.get(r.Context(), s.reader, session.user)
		if err != nil {
			return Identity{}, err
		}
		if a != nil && a.Hash == session.hash {
			id, err := s.identify(r.Context(), a, seen{from: clientAddress(r), means: BySession})
			id.ends = session.ends
			return id, err
		}
	}
	if s.opts.Guest {
		return Identity{Means: ByGuest, Grants: guestGrants, Address: addressText(clientAddress(r))}, nil
	}
	return Identity{}, refuse(codeNoCredentials)
}

// identify checks what does not depend on the means: the state of the account, then the address. Then it resolves the rights.
func (s *Service) identify(ctx context.Context, a *account, c seen) (Identity, error) {
	err := a.usable(s.opts.Clock())
	if err == nil && !c.allowed && !a.from.admit(c.from) {
		err = refuse(codeAddress)
	}
	if err != nil {
		s.audit.refused(ctx, refusal{user: a.Name, from: c.from, code: err.Error(), means: c.means})
		return Identity{}, err
	}
	grants, err := s.resolve(ctx, a)
	return Identity{User: a.User, Grants: grants, Means: c.means, Address: addressText(c.from)}, err
}

// ChangePassword lets the caller of a request change their own password, which they must know: an open browser is not enough. All of their sessions end.
func (s *Service) ChangePassword(ctx context.Context, id Identity, before, after string) error {
	from, _ := netip.ParseAddr(id.Address)
	if _, _, err := s.verify(ctx, login{name: id.User.Name, password: before, from: from}); err != nil {
		s.tellRefused(ctx, err, refusal{user: id.User.Name, from: from})
		if core.CodeOf(err) == core.Unauthenticated {
			return core.Errorf(core.Invalid, "the current password is wrong, or was wrong too often (%s)", err)
		}
		return err
	}
	return s.SetPassword(ctx, id.Actor(), id.User.Name, after)
}

// clientAddress is the peer of the connection. Forwarding headers are not evaluated: anybody can send them.
func clientAddress(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// cookie returns the session cookie to set, nil when the client has sent it.
func (s *Service) cookie(r *http.Request, token string) *http.Cookie {
	for _, sent := range r.CookiesNamed(CookieName) {
		if sent.Value == token {
			return nil
		}
	}
	return &http.Cookie{Name: CookieName, Value: token, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

// MayWrite reports whether a request that changes something was meant by its caller. A browser attaches a session cookie by itself, and so it does with a
// password that its user typed once: a cookie has to come from a page of this server. A password may come from any page that sends it by a script, which
// the cross-domain rules of the contract allow; not from what can be sent to any server without one, such as a link, an image or a form.
func (id Identity) MayWrite(r *http.Request) bool {
	switch id.Means {
	case BySession:
		return SameOrigin(r)
	case ByPassword:
		mode := r.Header.Get("Sec-Fetch-Mode")
		return mode != "navigate" && mode != "no-cors" || SameOrigin(r)
	}
	return true
}

// SameOrigin reports whether a request that changes something may be trusted to come from a page of this server, or from no page at all.
// Browsers say where a request comes from in Sec-Fetch-Site, older ones in Origin or Referer; other clients send none of them.
func SameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	for _, name := range [...]string{"Origin", "Referer"} {
		value := r.Header.Get(name)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		return err == nil && u.Host == r.Host
	}
	return true
}
