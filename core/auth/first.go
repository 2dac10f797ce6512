package auth

import (
	"context"
	"crypto/rand"

	"github.com/tidemark-db/tidemark/core"
)

// UsersGroup exists from the first start and grants both all-entities permissions: automation assigns users to it and then inserts data
// for entities that do not exist yet.
const UsersGroup = "Users"

// FirstAdmin is what EnsureAdmin did.
type FirstAdmin struct {
	Created   bool
	Generated bool // the password was made here, and is nowhere else
	Name      string
	Password  string // set only when Created
}

// EnsureAdmin makes a server without users usable: it creates the group Users and an administrator. An empty name means "admin", an
// empty password that one is generated. With a user present it does nothing.
func (s *Service) EnsureAdmin(ctx context.Context, name, password string) (FirstAdmin, error) {
	users, err := s.Users(ctx)
	if err != nil || len(users) > 0 {
		return FirstAdmin{}, err
	}
	if _, ok, err := s.Group(ctx, UsersGroup); err != nil {
		return FirstAdmin{}, err
	} else if !ok {
		if err := s.PutGroup(ctx, System, Group{Name: UsersGroup, ReadAll: true, WriteAll: true}); err != nil {
			return FirstAdmin{}, err
		}
	}
	first := FirstAdmin{Created: true, Name: name, Password: password}
	if name == "" {
		first.Name = "admin"
	}
	if password == "" {
		first.Generated = true
		first.Password = rand.Text() // 26 letters and digits, 128 bits
	}
	u := User{Name: first.Name, Enabled: true, Roles: core.Admin.Names()}
	if err := s.PutUser(ctx, System, u, first.Password); err != nil {
		return FirstAdmin{}, err
	}
	return first, nil
}

// ResetPassword gives a user a password that settings name, so that somebody with access to the machine can always get in. It does nothing when the
// user has it already: the setting may stay for many starts. done reports whether anything was changed.
func (s *Service) ResetPassword(ctx context.Context, name, password string) (done bool, err error) {
	u, exists, err := s.User(ctx, name)
	if err != nil {
		return false, err
	}
	if !exists {
		return false, core.Errorf(core.NotFound, "user %q not found", name)
	}
	release, err := s.hasher.acquire(ctx)
	if err != nil {
		return false, err
	}
	same := s.hasher.matches(password, u.Hash)
	release()
	if same {
		return false, nil
	}
	return true, s.SetPassword(ctx, System, name, password)
}
