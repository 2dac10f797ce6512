package command

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// patch is the merge patch that a metric or entity command makes. A null resets a setting, and deletes a tag.
type patch map[string]any

// tag sets or deletes a tag of the metric or entity.
func (p patch) tag(name, value string) {
	tags, ok := p["tags"].(map[string]any)
	if !ok {
		tags = map[string]any{}
		p["tags"] = tags
	}
	if value = strings.TrimSpace(value); value == "" {
		tags[name] = nil
	} else {
		tags[name] = value
	}
}

// change makes the document change.
func (p patch) change(kind core.DocKind, key string) (core.DocChange, error) {
	if tags, ok := p["tags"].(map[string]any); ok && len(tags) > MaxTags {
		return core.DocChange{}, errors.New("too many tags: at most 1024 are allowed")
	}
	body, err := json.Marshal(p)
	if err != nil {
		return core.DocChange{}, err
	}
	return core.DocChange{Kind: kind, Key: key, Op: core.DocPatch, Body: body}, nil
}

func metricShape(prefix string) shape {
	switch prefix {
	case "t":
		return named
	case "m", "b", "l", "d", "u", "p", "i", "f", "z", "v", "a", "pe", "rd", "min", "max":
		return plain
	}
	return unknown
}

// metric parses a metric command. Fields that it does not have are not in the patch, and so stay as they are.
func (p *Parser) metric(b *core.Batch, c *cursor) error {
	name := ""
	body := patch{}
	f := &p.f
	for {
		more, err := c.field(f, metricShape)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if f.prefix == "m" {
			name, err = lowerName(c, f)
		} else {
			err = metricSetting(body, c, f)
		}
		if err != nil {
			return err
		}
	}
	if name == "" {
		return errors.New("no metric: set m:")
	}
	change, err := body.change(core.DocMetric, name)
	if err != nil {
		return err
	}
	b.Documents = append(b.Documents, change)
	return nil
}

// metricSetting adds one field of a metric command to its patch.
func metricSetting(body patch, c *cursor, f *field) error {
	switch f.prefix {
	case "t":
		body.tag(f.name, f.value)
		return nil
	case "b":
		return flagSetting(body, "enabled", c, f)
	case "v":
		return flagSetting(body, "versioned", c, f)
	case "pe":
		return flagSetting(body, "persistent", c, f)
	case "l":
		textSetting(body, "label", f.value)
	case "d":
		textSetting(body, "description", f.value)
	case "u":
		textSetting(body, "units", f.value)
	case "f":
		textSetting(body, "filter", f.value)
	case "p":
		return enumSetting(body, "dataType", c, f)
	case "a":
		return enumSetting(body, "invalidAction", c, f)
	case "i":
		if f.value == "" {
			body["interpolate"] = "LINEAR" // its default; null would leave the metric without any
			return nil
		}
		return enumSetting(body, "interpolate", c, f)
	case "z":
		return zoneSetting(body, c, f)
	case "rd":
		return retentionSetting(body, c, f)
	case "min":
		return limitSetting(body, "minValue", c, f)
	default:
		return limitSetting(body, "maxValue", c, f)
	}
	return nil
}

func entityShape(prefix string) shape {
	switch prefix {
	case "t":
		return named
	case "e", "b", "l", "i", "z":
		return plain
	}
	return unknown
}

// entity parses an entity command. One without settings is valid: it creates the entity.
func (p *Parser) entity(b *core.Batch, c *cursor) error {
	name := ""
	body := patch{}
	f := &p.f
	for {
		more, err := c.field(f, entityShape)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch f.prefix {
		case "e":
			name, err = lowerName(c, f)
		case "t":
			body.tag(f.name, f.value)
		case "b":
			err = flagSetting(body, "enabled", c, f)
		case "l":
			textSetting(body, "label", f.value)
		case "i":
			if f.value == "" {
				body["interpolate"] = nil
			} else {
				err = enumSetting(body, "interpolate", c, f)
			}
		default:
			err = zoneSetting(body, c, f)
		}
		if err != nil {
			return err
		}
	}
	if name == "" {
		return errNoEntity
	}
	change, err := body.change(core.DocEntity, name)
	if err != nil {
		return err
	}
	b.Documents = append(b.Documents, change)
	return nil
}

// flagSetting takes a boolean, which has no reset.
func flagSetting(body patch, member string, c *cursor, f *field) error {
	on, err := strictBool(c, f)
	body[member] = on
	return err
}

// textSetting takes a text as it was sent; the empty text resets.
func textSetting(body patch, member, value string) {
	if value == "" {
		body[member] = nil
	} else {
		body[member] = value
	}
}

// enums lists the accepted values of the enumerations, in the case they are stored in.
var enums = map[string][]string{
	"dataType":      {"SHORT", "INTEGER", "LONG", "FLOAT", "DOUBLE", "DECIMAL"},
	"interpolate":   {"LINEAR", "PREVIOUS"},
	"invalidAction": {"NONE", "TRANSFORM", "DISCARD", "RAISE_ERROR", "SET_VERSION_STATUS"},
}

// enumSetting takes one of the values of an enumeration, ignoring case.
func enumSetting(body patch, member string, c *cursor, f *field) error {
	for _, known := range enums[member] {
		// Not EqualFold: it folds look-alikes such as the Kelvin sign into ASCII.
		if len(f.value) == len(known) && strings.ToUpper(f.value) == known && isASCII(f.value) {
			body[member] = known
			return nil
		}
	}
	return c.fault(f.at, "%s: takes one of %s, not %q", f.prefix, strings.Join(enums[member], ", "), f.value)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// zoneSetting takes the ID of a time zone. It is kept as it was sent, alias or not.
func zoneSetting(body patch, c *cursor, f *field) error {
	if f.value == "" {
		body["timeZone"] = nil
		return nil
	}
	if _, err := dates.LoadZone(f.value); err != nil {
		return c.fault(f.at, "%v", err)
	}
	body["timeZone"] = f.value
	return nil
}

// retentionSetting takes days. Zero, which stands for ever in the document, can only be reached by a reset.
func retentionSetting(body patch, c *cursor, f *field) error {
	if f.value == "" {
		body["retentionDays"] = nil
		return nil
	}
	days, err := strconv.ParseInt(f.value, 10, 32)
	if err != nil || days <= 0 {
		return c.fault(f.at, "rd: takes a positive number of days, not %q", f.value)
	}
	body["retentionDays"] = days
	return nil
}

// limitSetting takes a bound of the values. NaN would compare with nothing and is refused.
func limitSetting(body patch, member string, c *cursor, f *field) error {
	if f.value == "" {
		body[member] = nil
		return nil
	}
	n, ok := ParseNumber(f.value)
	if !ok || math.IsNaN(n.Value) {
		return c.fault(f.at, "%s: takes a number, not %q", f.prefix, f.value)
	}
	body[member] = n.Value
	return nil
}
