package api

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/dates"
)

// members reads the members of an object, and refuses unknown ones: a misspelt setting of an account must not be lost without a word. kind is for the text.
func (c *call) members(kind string, known fields) error {
	body, err := c.json()
	if err != nil {
		return err
	}
	var o object
	o.each(gjson.Parse(body), func(name string, v gjson.Result) {
		if read := known[name]; read != nil {
			read(&o, name, v)
		} else {
			o.fail("Unrecognized field \"%s\" of %s", excerpt(name), kind)
		}
	})
	return o.err
}

// expiry reads the end of an account or token as ISO text; "" is none.
func (o *object) expiry(name string, v gjson.Result) core.Time {
	text := o.text(name, v)
	if text == "" {
		return 0
	}
	t, err := dates.ParseISO(text)
	if err == nil {
		err = checkTime(t)
	}
	if err != nil || t == 0 {
		o.fail("%s: an ISO date such as 2030-01-31T00:00:00Z is expected, not %s", name, excerpt(v.Raw))
	}
	return t
}

// userFields are the members of a user that a request may set; nil ones were not sent.
type userFields struct {
	kind, password *string
	enabled        *bool
	locked         *bool
	expires        *core.Time
	roles, groups  *[]string
	addresses      *string
}

func (c *call) userFields() (userFields, error) {
	var f userFields
	err := c.members("user", fields{
		"name":           func(*object, string, gjson.Result) {}, // the path decides
		"passwordSet":    func(*object, string, gjson.Result) {}, // clients send back whole objects
		"type":           optional(&f.kind, (*object).text),
		"password":       optional(&f.password, (*object).text),
		"enabled":        optional(&f.enabled, (*object).flag),
		"locked":         optional(&f.locked, (*object).flag),
		"expirationDate": optional(&f.expires, (*object).expiry),
		"roles":          optional(&f.roles, (*object).texts),
		"userGroups":     optional(&f.groups, (*object).texts),
		"addressFilter":  optional(&f.addresses, (*object).text),
	})
	switch {
	case err != nil:
	case f.kind != nil && !strings.EqualFold(*f.kind, "Local"):
		err = core.Errorf(core.Invalid, "IllegalArgumentException: type: only Local is supported, not %s", excerpt(*f.kind))
	case f.password != nil && *f.password == "":
		err = core.Errorf(core.Invalid, "IllegalArgumentException: password: must not be empty; leave the field out to keep the password")
	case f.groups != nil:
		err = c.knownGroups(*f.groups)
	}
	return f, err
}

// knownGroups refuses user groups that do not exist: a misspelt one would grant nothing without a word.
func (c *call) knownGroups(names []string) error {
	for _, name := range names {
		_, exists, err := c.server.Users.Group(c.reading(), name)
		if err != nil {
			return err
		}
		if !exists {
			return core.Errorf(core.Invalid, "IllegalArgumentException: user group '%s' not found", excerpt(name))
		}
	}
	return nil
}

// apply sets what was sent.
func (f userFields) apply(u *auth.User) error {
	assign(&u.Enabled, f.enabled)
	assign(&u.Locked, f.locked)
	assign(&u.Expires, f.expires)
	assign(&u.Roles, f.roles)
	assign(&u.Groups, f.groups)
	assign(&u.Addresses, f.addresses)
	return nil
}

func assign[T any](field *T, sent *T) {
	if sent != nil {
		*field = *sent
	}
}

// secret returns the password that was sent, "" for none.
func (f userFields) secret() string {
	if f.password == nil {
		return ""
	}
	return *f.password
}

// userList lists all users, by name.
func (c *call) userList() error {
	users, err := c.server.Users.Users(c.reading())
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	for i := range users {
		out.next()
		out.body = appendUser(out.body, &users[i])
	}
	return c.sendJSON(append(out.body, ']'))
}

func (c *call) userGet() error {
	name := c.param("name")
	u, exists, err := c.server.Users.User(c.reading(), name)
	if err != nil {
		return err
	}
	if !exists {
		return notFound("user", name)
	}
	return c.sendJSON(appendUser(nil, &u))
}

// userPut creates a user, or replaces the settings of one; without a password it keeps the one it has.
func (c *call) userPut() error {
	f, err := c.userFields()
	if err != nil {
		return err
	}
	return c.changeUser(auth.UserChange{Create: true, Password: f.secret(), Apply: func(u *auth.User) error {
		*u = auth.User{Enabled: true}
		return f.apply(u)
	}})
}

// userPatch changes the fields that are sent.
func (c *call) userPatch() error {
	f, err := c.userFields()
	if err != nil {
		return err
	}
	return c.changeUser(auth.UserChange{Password: f.secret(), Apply: f.apply})
}

func (c *call) changeUser(change auth.UserChange) error {
	u, err := c.server.Users.ChangeUser(c.r.Context(), c.id.Actor(), c.param("name"), change)
	if err != nil {
		return err
	}
	return c.sendJSON(appendUser(nil, &u))
}

func (c *call) userDelete() error {
	if err := c.server.Users.DeleteUser(c.r.Context(), c.id.Actor(), c.param("name")); err != nil {
		return err
	}
	return c.ping() // an empty 200
}

// appendUser writes a user, never the hash of the password.
func appendUser(dst []byte, u *auth.User) []byte {
	dst = appendString(append(dst, `{"name":`...), u.Name)
	dst = append(dst, `,"type":"Local"`...)
	dst = appendFlag(dst, "enabled", u.Enabled)
	dst = appendFlag(dst, "locked", u.Locked)
	if u.Expires != 0 {
		dst = appendDate(dst, "expirationDate", u.Expires)
	}
	roles := orderedRoles(u.Roles)
	for i := range roles {
		roles[i] = "ROLE_" + roles[i]
	}
	dst = appendStrings(append(dst, `,"roles":`...), roles)
	dst = appendStrings(append(dst, `,"userGroups":`...), u.Groups)
	dst = appendText(dst, "addressFilter", u.Addresses)
	return append(appendFlag(dst, "passwordSet", u.Hash != ""), '}')
}

// ownPassword changes the password of the caller: {"password":"the current one","newPassword":"..."}.
func (c *call) ownPassword() error {
	var before, after string
	err := c.members("password change", fields{"password": into(&before, (*object).text), "newPassword": into(&after, (*object).text)})
	if err != nil {
		return err
	}
	if before == "" || after == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: password, the current one, and newPassword are required")
	}
	if err := c.server.Users.ChangePassword(c.r.Context(), c.id, before, after); err != nil {
		return err
	}
	return c.ping() // an empty 200
}

// userGroupList lists all user groups, by name.
func (c *call) userGroupList() error {
	groups, err := c.server.Users.Groups(c.reading())
	if err != nil {
		return err
	}
	users, err := c.server.Users.Users(c.reading())
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	for i := range groups {
		out.next()
		out.body = appendUserGroup(out.body, &groups[i], users)
	}
	return c.sendJSON(append(out.body, ']'))
}

func (c *call) userGroupGet() error {
	name := c.param("name")
	g, exists, err := c.server.Users.Group(c.reading(), name)
	if err != nil {
		return err
	}
	if !exists {
		return notFound("user group", name)
	}
	return c.showUserGroup(&g)
}

func (c *call) showUserGroup(g *auth.Group) error {
	users, err := c.server.Users.Users(c.reading())
	if err != nil {
		return err
	}
	return c.sendJSON(appendUserGroup(nil, g, users))
}

// userGroupPut creates a user group, or replaces what it grants.
func (c *call) userGroupPut() error {
	apply, err := c.userGroupFields()
	if err != nil {
		return err
	}
	return c.changeUserGroup(auth.GroupChange{Create: true, Apply: func(g *auth.Group) error {
		*g = auth.Group{}
		return apply(g)
	}})
}

// userGroupPatch changes the fields that are sent.
func (c *call) userGroupPatch() error {
	apply, err := c.userGroupFields()
	if err != nil {
		return err
	}
	return c.changeUserGroup(auth.GroupChange{Apply: apply})
}

// userGroupFields reads the body. Entity groups need not exist yet.
func (c *call) userGroupFields() (apply func(*auth.Group) error, err error) {
	var readAll, writeAll *bool
	var read, write *[]string
	err = c.members("user group", fields{
		"name":             func(*object, string, gjson.Result) {}, // the path decides
		"users":            func(*object, string, gjson.Result) {}, // set on the users
		"allEntitiesRead":  optional(&readAll, (*object).flag),
		"allEntitiesWrite": optional(&writeAll, (*object).flag),
		"read":             optional(&read, (*object).texts),
		"write":            optional(&write, (*object).texts),
	})
	return func(g *auth.Group) error {
		assign(&g.ReadAll, readAll)
		assign(&g.WriteAll, writeAll)
		assign(&g.Read, read)
		assign(&g.Write, write)
		return nil
	}, err
}

func (c *call) changeUserGroup(change auth.GroupChange) error {
	g, err := c.server.Users.ChangeGroup(c.r.Context(), c.id.Actor(), c.param("name"), change)
	if err != nil {
		return err
	}
	return c.showUserGroup(&g)
}

// userGroupDelete removes a user group, also from its users.
func (c *call) userGroupDelete() error {
	if err := c.server.Users.DeleteGroup(c.r.Context(), c.id.Actor(), c.param("name")); err != nil {
		return err
	}
	return c.ping() // an empty 200
}

// appendUserGroup writes a user group with the names of its users.
func appendUserGroup(dst []byte, g *auth.Group, users []auth.User) []byte {
	dst = appendString(append(dst, `{"name":`...), g.Name)
	dst = appendFlag(dst, "allEntitiesRead", g.ReadAll)
	dst = appendFlag(dst, "allEntitiesWrite", g.WriteAll)
	dst = appendStrings(append(dst, `,"read":`...), g.Read)
	dst = appendStrings(append(dst, `,"write":`...), g.Write)
	var members []string
	for i := range users {
		if slices.Contains(users[i].Groups, g.Name) {
			members = append(members, users[i].Name)
		}
	}
	return append(appendStrings(append(dst, `,"users":`...), members), '}')
}
