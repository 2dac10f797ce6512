package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Group is the document of kind core.DocUserGroup. Permissions are granted to user groups only.
type Group struct {
	Name     string   `json:"name"`
	ReadAll  bool     `json:"readAll,omitempty"`  // every entity, also those in no group
	WriteAll bool     `json:"writeAll,omitempty"` // the same, and entities that do not exist yet
	Read     []string `json:"read,omitempty"`     // entity groups
	Write    []string `json:"write,omitempty"`    // entity groups; does not imply read
}

func decodeGroup(body []byte) (*Group, error) {
	var g Group
	err := json.Unmarshal(body, &g)
	return &g, err
}

// Group returns a user group by exact name.
func (s *Service) Group(ctx context.Context, name string) (Group, bool, error) {
	g, err := s.groups.get(ctx, s.reader, name)
	if err != nil || g == nil {
		return Group{}, false, err
	}
	return *g, true, nil
}

// Groups returns all user groups, by name.
func (s *Service) Groups(ctx context.Context) ([]Group, error) {
	var list []Group
	err := s.groups.all(ctx, s.reader, func(g *Group) { list = append(list, *g) })
	return list, err
}

// validate checks and normalizes what an administrator entered.
func (g *Group) validate() error {
	if err := checkName("user group", g.Name); err != nil {
		return err
	}
	for _, name := range slices.Concat(g.Read, g.Write) {
		if strings.TrimSpace(name) == "" {
			return core.Errorf(core.Invalid, "user group %s: an entity group without a name", g.Name)
		}
	}
	g.Read, g.Write = distinct(slices.Clone(g.Read)), distinct(slices.Clone(g.Write)) // the caller's stay as they are
	return nil
}

// PutGroup creates or replaces a user group.
func (s *Service) PutGroup(ctx context.Context, by Actor, g Group) error {
	_, err := s.ChangeGroup(ctx, by, g.Name, GroupChange{Create: true, Apply: func(stored *Group) error {
		*stored = g
		return nil
	}})
	return err
}

// GroupChange is a change of one user group.
type GroupChange struct {
	Create bool // when there is none; otherwise that is an error of code NotFound
	Apply  func(*Group) error
}

// ChangeGroup changes a user group and returns it as it is then.
func (s *Service) ChangeGroup(ctx context.Context, by Actor, name string, c GroupChange) (Group, error) {
	s.write.Lock()
	defer s.write.Unlock()
	g, exists, err := s.Group(ctx, name)
	if err != nil {
		return Group{}, err
	}
	if !exists && !c.Create {
		return Group{}, core.Errorf(core.NotFound, "user group %q not found", name)
	}
	before := g
	if err := c.Apply(&g); err != nil {
		return Group{}, err
	}
	g.Name = name
	if err := g.validate(); err != nil {
		return Group{}, err
	}
	what := change{by: by, kind: "user group", name: name, action: created}
	if exists {
		what.action = changed
		if what.fields = changedFields(before, g); len(what.fields) == 0 {
			return g, nil
		}
	}
	body, err := json.Marshal(g)
	if err != nil {
		return Group{}, fmt.Errorf("encode user group %q: %w", name, err)
	}
	return g, s.put(ctx, what, core.DocChange{Kind: core.DocUserGroup, Key: name, Body: body})
}

// DeleteGroup removes a user group, also from its users: one that is made later under the same name must not have members already.
func (s *Service) DeleteGroup(ctx context.Context, by Actor, name string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if _, exists, err := s.Group(ctx, name); err != nil {
		return err
	} else if !exists {
		return core.Errorf(core.NotFound, "user group %q not found", name)
	}
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	documents := []core.DocChange{{Kind: core.DocUserGroup, Key: name, Op: core.DocDelete}}
	for _, u := range users {
		if !slices.Contains(u.Groups, name) {
			continue
		}
		u.Groups = slices.DeleteFunc(slices.Clone(u.Groups), func(g string) bool { return g == name })
		body, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("encode user %q: %w", u.Name, err)
		}
		documents = append(documents, core.DocChange{Kind: core.DocUser, Key: u.Name, Body: body})
	}
	return s.put(ctx, change{by: by, kind: "user group", name: name, action: deleted}, documents...)
}
