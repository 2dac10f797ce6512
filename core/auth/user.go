package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// User is the document of kind core.DocUser; its key is the name, compared exactly.
type User struct {
	Name      string    `json:"name"`
	Enabled   bool      `json:"enabled"`
	Locked    bool      `json:"locked,omitempty"`
	Expires   core.Time `json:"expires,omitempty"` // 0 = never
	Roles     []string  `json:"roles,omitempty"`   // without the wire prefix
	Groups    []string  `json:"groups,omitempty"`  // user groups
	Addresses string    `json:"addresses,omitempty"`
	Hash      string    `json:"hash,omitempty"` // of the password, password.go; "" = cannot log in with a password
}

// roleSet returns the roles as they were granted, not expanded.
func (u User) roleSet() core.Roles {
	var set core.Roles
	for _, name := range u.Roles {
		role, _ := core.ParseRole(name) // checked when the user was written; a role that this release does not know grants nothing
		set |= role
	}
	return set
}

// usable reports why the account may not log in at all, nil when it may.
func (u User) usable(now core.Time) error {
	switch {
	case !u.Enabled:
		return refuse(codeDisabled)
	case u.Expires != 0 && now >= u.Expires:
		return refuse(codeAccountEnded)
	case u.Locked:
		return refuse(codeLocked)
	}
	return nil
}

// parseAddresses reads blank-separated addresses and CIDR ranges.
func parseAddresses(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, word := range strings.Fields(text) {
		if addr, err := netip.ParseAddr(word); err == nil {
			addr = addr.Unmap().WithZone("")
			prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "address filter: %q is neither an address nor a CIDR range", word)
		}
		if addr := p.Addr(); addr.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96) // clients are compared in their IPv4 form
		}
		prefixes = append(prefixes, p.Masked())
	}
	return prefixes, nil
}

// validate checks and normalizes what an administrator entered.
func (u *User) validate() error {
	if err := checkName("user", u.Name); err != nil {
		return err
	}
	if strings.Contains(u.Name, ":") {
		return core.Errorf(core.Invalid, "user name %q: must not hold a colon, which Basic authentication cannot carry", u.Name)
	}
	u.Roles, u.Groups = slices.Clone(u.Roles), slices.Clone(u.Groups) // the caller's stay as they are
	for i, name := range u.Roles {
		if _, ok := core.ParseRole(name); !ok {
			return core.Errorf(core.Invalid, "user %s: unknown role %q", u.Name, name)
		}
		u.Roles[i] = strings.TrimPrefix(name, "ROLE_")
	}
	u.Roles, u.Groups = distinct(u.Roles), distinct(u.Groups)
	if u.Expires < 0 {
		return core.Errorf(core.Invalid, "user %s: expiration before 1970", u.Name)
	}
	if _, err := parseAddresses(u.Addresses); err != nil {
		return err
	}
	return nil
}

// maxName is the longest name of a user or user group, in bytes.
const maxName = 256

// checkName refuses names that would not survive a header, a log line or a path.
func checkName(kind, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return core.Errorf(core.Invalid, "%s without a name", kind)
	case len(name) > maxName:
		return core.Errorf(core.Invalid, "%s name: %d bytes, at most %d are allowed", kind, len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return core.Errorf(core.Invalid, "%s name %q: must not hold control characters", kind, name)
	}
	return nil
}

// User returns a user by exact name.
func (s *Service) User(ctx context.Context, name string) (User, bool, error) {
	a, err := s.accounts.get(ctx, s.reader, name)
	if err != nil || a == nil {
		return User{}, false, err
	}
	return a.User, true, nil
}

// Users returns all users, by name.
func (s *Service) Users(ctx context.Context) ([]User, error) {
	var list []User
	err := s.accounts.all(ctx, s.reader, func(a *account) { list = append(list, a.User) })
	return list, err
}

// PutUser creates or replaces a user. An empty password keeps the stored one; u.Hash is ignored.
func (s *Service) PutUser(ctx context.Context, by Actor, u User, password string) error {
	_, err := s.ChangeUser(ctx, by, u.Name, UserChange{Create: true, Password: password, Apply: func(stored *User) error {
		*stored = u
		return nil
	}})
	return err
}

// SetPassword replaces the password of a user, whose sessions end with it.
func (s *Service) SetPassword(ctx context.Context, by Actor, name, password string) error {
	if password == "" {
		return s.checkRule(password)
	}
	_, err := s.ChangeUser(ctx, by, name, UserChange{Password: password})
	return err
}

// UserChange is a change of one user.
type UserChange struct {
	Create   bool              // when there is none; otherwise that is an error of code NotFound
	Password string            // "" keeps the stored one
	Apply    func(*User) error // of everything else; nil for nothing
}

// ChangeUser changes a user and returns it as it is then. The sessions of the user end, unless nothing changes. The last administrator stays one.
func (s *Service) ChangeUser(ctx context.Context, by Actor, name string, c UserChange) (User, error) {
	hash := ""
	if c.Password != "" {
		var err error
		if hash, err = s.hash(ctx, c.Password); err != nil {
			return User{}, err
		}
	}
	s.write.Lock()
	defer s.write.Unlock()
	before, exists, err := s.User(ctx, name)
	if err != nil {
		return User{}, err
	}
	if !exists && !c.Create {
		return User{}, core.Errorf(core.NotFound, "user %q not found", name)
	}
	u := before
	if c.Apply != nil {
		if err := c.Apply(&u); err != nil {
			return User{}, err
		}
	}
	u.Name, u.Hash = name, cmp.Or(hash, before.Hash)
	if err := u.validate(); err != nil {
		return User{}, err
	}
	if err := s.keepAdministrator(ctx, before, u); err != nil {
		return User{}, err
	}
	what := change{by: by, kind: "user", name: name, action: created}
	if exists {
		what.action = changed
		if what.fields = changedFields(before, u); len(what.fields) == 0 {
			return u, nil
		}
	}
	return u, s.storeUser(ctx, what, u)
}

// storeUser writes a user and forgets what memory holds about the one before. The caller holds the write lock.
func (s *Service) storeUser(ctx context.Context, what change, u User) error {
	body, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode user %q: %w", u.Name, err)
	}
	if err := s.put(ctx, what, core.DocChange{Kind: core.DocUser, Key: u.Name, Body: body}); err != nil {
		return err
	}
	s.forget(u.Name)
	return nil
}

// DeleteUser removes a user with their tokens, and ends their sessions.
func (s *Service) DeleteUser(ctx context.Context, by Actor, name string) error {
	s.write.Lock()
	defer s.write.Unlock()
	before, exists, err := s.User(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		return core.Errorf(core.NotFound, "user %q not found", name)
	}
	if err := s.keepAdministrator(ctx, before, User{}); err != nil {
		return err
	}
	tokens, err := s.Tokens(ctx)
	if err != nil {
		return err
	}
	documents := []core.DocChange{{Kind: core.DocUser, Key: name, Op: core.DocDelete}}
	for _, t := range tokens {
		if t.User == name {
			documents = append(documents, core.DocChange{Kind: core.DocToken, Key: t.ID, Op: core.DocDelete})
		}
	}
	if err := s.put(ctx, change{by: by, kind: "user", name: name, action: deleted}, documents...); err != nil {
		return err
	}
	s.forget(name)
	return nil
}

// administers reports whether a user can act as an administrator now and later.
func (u User) administers() bool {
	return u.Enabled && !u.Locked && u.Expires == 0 && u.Hash != "" && u.roleSet().Has(core.Admin)
}

// keepAdministrator refuses to take the last administrator away: nobody could make another one.
func (s *Service) keepAdministrator(ctx context.Context, before, after User) error {
	if !before.administers() || after.administers() {
		return nil
	}
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Name != before.Name && u.administers() {
			return nil
		}
	}
	return core.Errorf(core.Invalid, "user %s is the last administrator: make another one first", before.Name)
}

// forget drops what memory holds about a user. The hash inside every cached credential would make a stale one useless anyway; this frees
// the memory, and ends the sessions of a user who was changed.
func (s *Service) forget(name string) {
	s.verified.drop(name)
	s.sessions.drop(name)
}
