package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// maxDescription bounds what people write about a token, in characters.
const maxDescription = 200

func checkDescription(text string) error {
	if n := utf8.RuneCountInString(text); n > maxDescription {
		return core.Errorf(core.Invalid, "token description has %d characters, at most %d are allowed", n, maxDescription)
	}
	return nil
}

// TokenChange is a change of one token; nil fields stay as they are. What a token allows, and whom it is for, cannot be changed: its text is with people who were
// given it for that.
type TokenChange struct {
	Description *string
	Expires     *core.Time // 0 = never
	Addresses   *string    // "" = those of the user
}

// ChangeToken changes a token, for requests from then on, and returns it as it is then. Errors are of code Invalid, and NotFound for a token that does not exist.
func (s *Service) ChangeToken(ctx context.Context, by Actor, id string, c TokenChange) (Token, error) {
	s.write.Lock()
	defer s.write.Unlock()
	stored, err := s.tokens.get(ctx, s.reader, id)
	if err != nil {
		return Token{}, err
	}
	if stored == nil {
		return Token{}, core.Errorf(core.NotFound, "token %q not found", id)
	}
	t := stored.Token
	what := change{by: by, kind: "token", name: id, action: changed}
	if c.Description != nil && *c.Description != t.Description {
		if err := checkDescription(*c.Description); err != nil {
			return Token{}, err
		}
		t.Description = *c.Description
		what.fields = append(what.fields, "description")
	}
	if c.Expires != nil && *c.Expires != t.Expires {
		if *c.Expires != 0 && *c.Expires <= s.opts.Clock() {
			return Token{}, core.Errorf(core.Invalid, "token expiration lies in the past: revoke the token to end it now")
		}
		t.Expires = *c.Expires
		what.fields = append(what.fields, "expires")
	}
	if c.Addresses != nil && *c.Addresses != t.Addresses {
		if _, err := parseAddresses(*c.Addresses); err != nil {
			return Token{}, err
		}
		t.Addresses = *c.Addresses
		what.fields = append(what.fields, "addresses")
	}
	if len(what.fields) > 0 {
		body, err := json.Marshal(t)
		if err != nil {
			return Token{}, fmt.Errorf("encode token %s: %w", id, err)
		}
		if err := s.put(ctx, what, core.DocChange{Kind: core.DocToken, Key: id, Body: body}); err != nil {
			return Token{}, err
		}
	}
	return s.accesses.overlay(t), nil
}
