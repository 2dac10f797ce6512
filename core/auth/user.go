package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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

// Group is the document of kind core.DocUserGroup. Permissions are granted to user groups only.
type Group struct {
	Name     string   `json:"name"`
	ReadAll  bool     `json:"readAll,omitempty"`  // every entity, also those in no group
	WriteAll bool     `json:"writeAll,omitempty"` // the same, and entities that do not exist yet
	Read     []string `json:"read,omitempty"`     // entity groups
	Write    []string `json:"write,omitempty"`    // entity groups; does not imply read
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
		return refuse(codeExpired)
	case u.Locked:
		return refuse(codeLocked)
	}
	return nil
}

// admits reports whether the user may come from this address.
func (u User) admits(addr netip.Addr) bool {
	if strings.TrimSpace(u.Addresses) == "" {
		return true
	}
	prefixes, err := parseAddresses(u.Addresses)
	if err != nil {
		return false // a filter that cannot be read admits nobody
	}
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseAddresses reads blank-separated addresses and CIDR ranges.
func parseAddresses(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, word := range strings.Fields(text) {
		if addr, err := netip.ParseAddr(word); err == nil {
			addr = addr.Unmap()
			prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "address filter: %q is neither an address nor a CIDR range", word)
		}
		prefixes = append(prefixes, p.Masked())
	}
	return prefixes, nil
}

// validate checks and normalizes what an administrator entered.
func (u *User) validate() error {
	if u.Name == "" || strings.ContainsFunc(u.Name, func(r rune) bool { return r < ' ' || r == 0x7f || r == ':' }) {
		// Basic authentication cannot carry a name with a colon.
		return core.Errorf(core.Invalid, "user name %q: must not be empty, nor hold control characters or a colon", u.Name)
	}
	u.Roles, u.Groups = slices.Clone(u.Roles), slices.Clone(u.Groups) // the caller's stay as they are
	for i, name := range u.Roles {
		if _, ok := core.ParseRole(name); !ok {
			return core.Errorf(core.Invalid, "user %s: unknown role %q", u.Name, name)
		}
		u.Roles[i] = strings.TrimPrefix(name, "ROLE_")
	}
	u.Groups = distinct(u.Groups)
	if _, err := parseAddresses(u.Addresses); err != nil {
		return err
	}
	return nil
}

// User returns a user by exact name.
func (s *Service) User(ctx context.Context, name string) (User, bool, error) {
	var u User
	ok, err := s.load(ctx, core.DocUser, name, &u)
	return u, ok, err
}

// Group returns a user group by exact name.
func (s *Service) Group(ctx context.Context, name string) (Group, bool, error) {
	var g Group
	ok, err := s.load(ctx, core.DocUserGroup, name, &g)
	return g, ok, err
}

// load decodes a document into a value; false means that there is none.
func (s *Service) load(ctx context.Context, kind core.DocKind, key string, into any) (bool, error) {
	if key == "" {
		return false, nil // an empty key would select every document
	}
	body, err := s.document(ctx, kind, key)
	if err != nil || body == nil {
		return false, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, fmt.Errorf("read %s %q: %w", kind, key, err)
	}
	return true, nil
}

// Users returns all users, by name.
func (s *Service) Users(ctx context.Context) ([]User, error) { return all[User](ctx, s, core.DocUser) }

// Groups returns all user groups, by name.
func (s *Service) Groups(ctx context.Context) ([]Group, error) {
	return all[Group](ctx, s, core.DocUserGroup)
}

func all[T any](ctx context.Context, s *Service, kind core.DocKind) ([]T, error) {
	var list []T
	for doc, err := range s.reader.Documents(ctx, core.DocumentQuery{Kind: kind}) {
		if err != nil {
			return nil, fmt.Errorf("list %s documents: %w", kind, err)
		}
		var item T
		if err := json.Unmarshal(doc.Body, &item); err != nil {
			return nil, fmt.Errorf("read %s %q: %w", kind, doc.Key, err)
		}
		list = append(list, item)
	}
	return list, nil
}

// PutUser creates or replaces a user. An empty password keeps the stored one; u.Hash is ignored.
func (s *Service) PutUser(ctx context.Context, u User, password string) error {
	if err := u.validate(); err != nil {
		return err
	}
	hash := ""
	if password != "" {
		var err error
		if hash, err = s.hash(ctx, password); err != nil {
			return err
		}
	}
	s.write.Lock()
	defer s.write.Unlock()
	before, _, err := s.User(ctx, u.Name)
	if err != nil {
		return err
	}
	u.Hash = hash
	if hash == "" {
		u.Hash = before.Hash
	}
	return s.storeUser(ctx, u)
}

// SetPassword replaces the password of a user, whose sessions end with it.
func (s *Service) SetPassword(ctx context.Context, name, password string) error {
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	u, ok, err := s.User(ctx, name)
	if err != nil {
		return err
	}
	if !ok {
		return core.Errorf(core.NotFound, "user %q not found", name)
	}
	u.Hash = hash
	return s.storeUser(ctx, u)
}

// storeUser writes a user and forgets what memory holds about the one before. The caller holds the write lock.
func (s *Service) storeUser(ctx context.Context, u User) error {
	body, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode user %q: %w", u.Name, err)
	}
	if err := s.put(ctx, core.DocChange{Kind: core.DocUser, Key: u.Name, Body: body}); err != nil {
		return err
	}
	s.forget(u.Name)
	return nil
}

// DeleteUser removes a user and ends their sessions.
func (s *Service) DeleteUser(ctx context.Context, name string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if _, ok, err := s.User(ctx, name); err != nil {
		return err
	} else if !ok {
		return core.Errorf(core.NotFound, "user %q not found", name)
	}
	if err := s.put(ctx, core.DocChange{Kind: core.DocUser, Key: name, Op: core.DocDelete}); err != nil {
		return err
	}
	s.forget(name)
	return nil
}

// PutGroup creates or replaces a user group.
func (s *Service) PutGroup(ctx context.Context, g Group) error {
	if strings.TrimSpace(g.Name) == "" {
		return core.Errorf(core.Invalid, "user group without name")
	}
	g.Read, g.Write = distinct(slices.Clone(g.Read)), distinct(slices.Clone(g.Write))
	body, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode user group %q: %w", g.Name, err)
	}
	return s.put(ctx, core.DocChange{Kind: core.DocUserGroup, Key: g.Name, Body: body})
}

// DeleteGroup removes a user group. Users that name it lose what it granted.
func (s *Service) DeleteGroup(ctx context.Context, name string) error {
	return s.put(ctx, core.DocChange{Kind: core.DocUserGroup, Key: name, Op: core.DocDelete})
}

// forget drops what memory holds about a user. The hash inside every cached credential would make a stale one useless anyway; this frees
// the memory, and ends the sessions of a user who was changed.
func (s *Service) forget(name string) {
	s.verified.drop(name)
	s.sessions.drop(name)
}
