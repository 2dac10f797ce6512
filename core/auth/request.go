package auth

import (
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
)

// Identity is the caller of one request.
type Identity struct {
	User    User
	Grants  core.Grants
	Means   Means
	Address string       // of the client, without port
	Cookie  *http.Cookie // to set on the response, nil when the client already has it
}

// Origin is what a batch of this caller carries.
func (id Identity) Origin(door core.Door) core.Origin {
	return core.Origin{User: id.User.Name, Address: id.Address, Door: door, Grants: id.Grants}
}

// Authenticate finds the caller of a request. The Authorization header beats the cookie: a wrong header is refused even beside the
// valid cookie of somebody else, because clients change credentials on a connection that keeps its cookies.
func (s *Service) Authenticate(r *http.Request) (Identity, error) {
	header := r.Header.Get("Authorization")
	scheme, rest, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return s.bySession(r)
	case strings.EqualFold(scheme, "Bearer"):
		return s.byToken(strings.TrimSpace(rest))
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return Identity{}, refuse(codeNoCredentials)
	}
	u, key, err := s.verify(r.Context(), name, password)
	if err != nil {
		return Identity{}, err
	}
	id, err := s.identify(r, u)
	if err != nil {
		return Identity{}, err
	}
	id.Means = ByPassword
	id.Cookie = s.cookie(r, s.sessions.open(u, key, s.opts.Clock()))
	return id, nil
}

// byToken refuses every bearer token: none can have been issued. A token that does not match is always 401 `code 15`, on every path,
// so this answer stays right for the tokens of other servers.
func (s *Service) byToken(string) (Identity, error) { return Identity{}, refuse(AccessDenied) }

// bySession finds the user of the session cookie. A browser may send several cookies of that name, one of another server on the same host.
func (s *Service) bySession(r *http.Request) (Identity, error) {
	for _, cookie := range r.CookiesNamed(CookieName) {
		name, hash, ok := s.sessions.find(cookie.Value, s.opts.Clock())
		if !ok {
			continue
		}
		u, known, err := s.User(r.Context(), name)
		if err != nil {
			return Identity{}, err
		}
		if !known || u.Hash != hash {
			continue
		}
		id, err := s.identify(r, u)
		id.Means = BySession
		return id, err
	}
	return Identity{}, refuse(codeNoCredentials)
}

// identify checks what does not depend on the means: the state of the account and the address, then resolves the rights.
func (s *Service) identify(r *http.Request, u User) (Identity, error) {
	if err := u.usable(s.opts.Clock()); err != nil {
		return Identity{}, err
	}
	addr := clientAddress(r)
	if !u.admits(addr) {
		return Identity{}, refuse(codeAddress)
	}
	grants, err := s.Resolve(r.Context(), u)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{User: u, Grants: grants}
	if addr.IsValid() {
		id.Address = addr.String()
	}
	return id, nil
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

// SameOrigin reports whether a request that changes something may be trusted to come from a page of this server, or from no page at all.
// It matters only for callers known BySession: a browser attaches the cookie by itself, a password only when its user typed it.
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
