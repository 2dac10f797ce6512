package api

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// docPatch turns the body of a PUT or PATCH of metadata into a JSON merge patch of the stored document, field by checked field. Null
// fields are left out: in a PATCH they change nothing, in a PUT they leave the default.
type docPatch struct {
	object
	body []byte
	kind string // for the text about unknown fields
}

// decodePatch reads a body with the fields of a kind.
func decodePatch(body, kind string, field func(p *docPatch, name string, v gjson.Result) bool) (*docPatch, error) {
	p := &docPatch{kind: kind, body: []byte{'{'}}
	p.each(gjson.Parse(body), func(name string, v gjson.Result) {
		if !field(p, name, v) && p.err == nil {
			p.err = core.Errorf(core.Invalid, "com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException: Unrecognized field \"%s\" of %s",
				excerpt(name), kind)
		}
	})
	return p, p.err
}

// close returns the patch.
func (p *docPatch) close() []byte { return append(p.body, '}') }

// name starts a member of the patch.
func (p *docPatch) name(name string) {
	if len(p.body) > 1 {
		p.body = append(p.body, ',')
	}
	p.body = append(appendString(p.body, name), ':')
}

// setText sets a text; an empty one resets the field.
func (p *docPatch) setText(name string, v gjson.Result) bool {
	text := p.text(name, v)
	p.name(name)
	if text == "" {
		p.body = append(p.body, "null"...)
	} else {
		p.body = appendString(p.body, text)
	}
	return true
}

func (p *docPatch) setFlag(name string, v gjson.Result) bool {
	on := p.flag(name, v)
	p.name(name)
	p.body = strconv.AppendBool(p.body, on)
	return true
}

// setEnum sets one of the allowed words, in upper case; an empty one resets the field to fallback, "" for none.
func (p *docPatch) setEnum(name string, v gjson.Result, fallback string, allowed ...string) bool {
	word := strings.ToUpper(p.text(name, v))
	if word == "" {
		word = fallback
	} else if !slices.Contains(allowed, word) {
		p.fail("%s: unknown value %s, use one of %s", name, excerpt(v.Raw), strings.Join(allowed, ", "))
	}
	p.name(name)
	if word == "" {
		p.body = append(p.body, "null"...)
	} else {
		p.body = appendString(p.body, word)
	}
	return true
}

// oldZones are short zone IDs that older clients send back with the metadata they once read.
const oldZones = " ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST "

// setZone sets a time zone that can be resolved, or an old short ID; it reads back as it was submitted.
func (p *docPatch) setZone(v gjson.Result) bool {
	if id := p.text("timeZone", v); id != "" && (len(id) != 3 || !strings.Contains(oldZones, " "+id+" ")) {
		if _, err := dates.LoadZone(id); err != nil {
			p.fail("timeZone: %s", err)
		}
	}
	return p.setText("timeZone", v)
}

// setDays sets a whole number of days, not negative.
func (p *docPatch) setDays(name string, v gjson.Result) bool {
	days := p.integer(name, v)
	if days < 0 || days > math.MaxInt32 {
		p.fail("%s: a number of days is expected, not %s", name, excerpt(v.Raw))
	}
	p.name(name)
	p.body = strconv.AppendInt(p.body, days, 10)
	return true
}

func (p *docPatch) setNumber(name string, v gjson.Result) bool {
	n, err := strconv.ParseFloat(p.text(name, v), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		p.fail("%s: a number is expected, not %s", name, excerpt(v.Raw))
	}
	p.name(name)
	p.body = strconv.AppendFloat(p.body, n, 'g', -1, 64)
	return true
}

// setTags sets tags by name. A null or empty value removes the tag.
func (p *docPatch) setTags(v gjson.Result) bool {
	if !v.IsObject() {
		p.fail("tags: can not deserialize instance of an object out of %s", excerpt(v.Raw))
		return true
	}
	p.name("tags")
	p.body = append(p.body, '{')
	first := true
	v.ForEach(func(key, v gjson.Result) bool {
		name := lowered(key.Str)
		if name == "" || !validName(name) {
			p.fail("Invalid tag name '%s'", excerpt(key.Str))
			return false
		}
		if v.Type == gjson.JSON {
			p.fail("tags.%s: can not deserialize instance of a text out of %s", name, excerpt(v.Raw))
			return false
		}
		if !first {
			p.body = append(p.body, ',')
		}
		first = false
		p.body = append(appendString(p.body, name), ':')
		if text := p.text(name, v); v.Type == gjson.Null || text == "" {
			p.body = append(p.body, "null"...)
		} else {
			p.body = appendString(p.body, text)
		}
		return true
	})
	p.body = append(p.body, '}')
	return true
}
