package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// The routes of tokens come twice: below /api/v1/admin/tokens for those of all users, below /api/v1/tokens for the caller's own.

// ownTokens reports whether the route is the one for the caller's own tokens.
func (c *call) ownTokens() bool { return !strings.HasPrefix(c.route, adminPath) }

const adminPath = "/api/v1/admin/"

// mine reports whether a token is visible through the route.
func (c *call) mine(t *auth.Token) bool { return !c.ownTokens() || t.User == c.id.User.Name }

// tokenList lists tokens by id, those of one user with the parameter user.
func (c *call) tokenList() error {
	tokens, err := c.server.Users.Tokens(c.reading())
	if err != nil {
		return err
	}
	user := c.values.Get("user")
	out := list{body: []byte{'['}}
	for i := range tokens {
		if t := &tokens[i]; c.mine(t) && (user == "" || t.User == user) {
			out.next()
			out.body = append(appendToken(out.body, t), '}')
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// token finds the token of the path.
func (c *call) token() (auth.Token, error) {
	id := c.param("id")
	t, exists, err := c.server.Users.Token(c.reading(), id)
	if err == nil && (!exists || !c.mine(&t)) {
		err = notFound("token", id)
	}
	return t, err
}

func (c *call) tokenGet() error {
	t, err := c.token()
	if err != nil {
		return err
	}
	return c.sendJSON(append(appendToken(nil, &t), '}'))
}

// tokenIssue makes a token. Its text is in this answer and nowhere else.
func (c *call) tokenIssue() error {
	if c.id.Means == auth.ByToken { // whose holder would make a stronger one of it, and one that does not end
		return auth.Denied()
	}
	t := auth.Token{User: c.id.User.Name}
	err := c.members("token", fields{
		"user":             into(&t.User, (*object).text),
		"method":           into(&t.Method, (*object).text),
		"urls":             into(&t.URLs, (*object).texts),
		"expirationDate":   into(&t.Expires, (*object).expiry),
		"allowedAddresses": into(&t.Addresses, (*object).text),
		"description":      into(&t.Description, (*object).text),
	})
	if err != nil {
		return err
	}
	if !c.mine(&t) {
		return auth.Denied()
	}
	t, secret, err := c.server.Users.IssueToken(c.r.Context(), c.id.Actor(), t)
	if err != nil {
		return err
	}
	c.Header().Set("Cache-Control", "no-store")
	body := appendToken(nil, &t)
	return c.sendJSON(append(appendText(body, "token", secret), '}'))
}

// tokenPatch changes what may be changed of a token. Clients that send back a whole token may: what cannot be changed must be as it is.
func (c *call) tokenPatch() error {
	if c.id.Means == auth.ByToken { // whose holder would make it one that does not end
		return auth.Denied()
	}
	var change auth.TokenChange
	fixed := map[string][]string{}
	keep := func(o *object, name string, v gjson.Result) { fixed[name] = o.texts(name, v) }
	shown := func(*object, string, gjson.Result) {} // by whom and when
	err := c.members("token", fields{
		"description":      optional(&change.Description, (*object).text),
		"expirationDate":   optional(&change.Expires, (*object).expiry),
		"allowedAddresses": optional(&change.Addresses, (*object).text),
		"id":               keep, "user": keep, "method": keep, "urls": keep,
		"issuedBy": shown, "issueDate": shown, "lastAccessDate": shown,
	})
	if err != nil {
		return err
	}
	t, err := c.token()
	if err != nil {
		return err
	}
	for name, stored := range map[string][]string{"id": {t.ID}, "user": {t.User}, "method": {t.Method}, "urls": t.URLs} {
		if sent, ok := fixed[name]; ok && !slices.Equal(sent, stored) {
			return core.Errorf(core.Invalid, "IllegalArgumentException: %s: what a token allows cannot be changed, issue another one", name)
		}
	}
	if t, err = c.server.Users.ChangeToken(c.r.Context(), c.id.Actor(), t.ID, change); err != nil {
		return err
	}
	return c.sendJSON(append(appendToken(nil, &t), '}'))
}

// tokenRevoke ends a token at once.
func (c *call) tokenRevoke() error {
	t, err := c.token()
	if err != nil {
		return err
	}
	if err := c.server.Users.RevokeToken(c.r.Context(), c.id.Actor(), t.ID); err != nil {
		return err
	}
	return c.ping() // an empty 200
}

// appendToken writes a token without its text and hash, and without the closing brace.
func appendToken(dst []byte, t *auth.Token) []byte {
	dst = appendString(append(dst, `{"id":`...), t.ID)
	dst = appendText(dst, "user", t.User)
	dst = appendText(dst, "description", t.Description)
	dst = appendText(dst, "issuedBy", t.IssuedBy)
	dst = appendDate(dst, "issueDate", t.Issued)
	dst = appendText(dst, "method", t.Method)
	dst = appendStrings(append(dst, `,"urls":`...), t.URLs)
	if t.Expires != 0 {
		dst = appendDate(dst, "expirationDate", t.Expires)
	}
	dst = appendText(dst, "allowedAddresses", t.Addresses)
	if t.Accessed != 0 {
		dst = appendDate(dst, "lastAccessDate", t.Accessed)
	}
	return dst
}

// The two forms below are those of a web page that automation fills in: parameters are in the query string, the body is ignored. Their answer is a 302:
// a client would follow a 303 and lose the address.

// found answers with an address.
func (c *call) found(location string) error {
	c.Header().Set("Location", location)
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusFound)
	return nil
}

// userForm creates or changes a user. As in a form, what is not ticked is off, and lists are complete.
func (c *call) userForm() error {
	v := c.values
	name, password := v.Get("userBean.username"), v.Get("userBean.password")
	if v.Has("repeatPassword") && v.Get("repeatPassword") != password {
		return core.Errorf(core.Invalid, "IllegalArgumentException: the passwords differ")
	}
	if name == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: userBean.username is required")
	}
	_, err := c.server.Users.ChangeUser(c.r.Context(), c.id.Actor(), name, auth.UserChange{Create: true, Password: password, Apply: func(u *auth.User) error {
		if u.Name == "" && password == "" {
			return core.Errorf(core.Invalid, "IllegalArgumentException: userBean.password is required")
		}
		u.Enabled = v.Get("enabled") == "on" || v.Get("enabled") == "true"
		u.Roles, u.Groups = v["userBean.userRoles"], v["userBean.userGroups"]
		return nil
	}})
	if err != nil {
		return err
	}
	return c.found("/admin/users/edit.xhtml")
}

// tokenForm issues a token; the address of the answer ends in it.
func (c *call) tokenForm() error {
	v := c.values
	t := auth.Token{User: orDefault(v.Get("username"), v.Get("user")), Method: v.Get("method"), URLs: v["urls"]}
	if user := v.Get("user"); user != "" && user != t.User {
		return core.Errorf(core.Invalid, "IllegalArgumentException: user and username differ")
	}
	_, secret, err := c.server.Users.IssueToken(c.r.Context(), c.id.Actor(), t)
	if err != nil {
		return err
	}
	return c.found("/admin/users/tokens/" + secret)
}

// tokenPage tells whether a token exists, by its text.
func (c *call) tokenPage() error {
	secret, _, _ := strings.Cut(c.param("token"), ";")
	t, exists, err := c.server.Users.TokenOf(c.reading(), secret)
	if err != nil {
		return err
	}
	if !exists {
		return core.Errorf(core.NotFound, "token not found")
	}
	return c.sendJSON(append(appendToken(nil, &t), '}'))
}
