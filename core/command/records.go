package command

import (
	"errors"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

func propertyShape(prefix string) shape {
	switch prefix {
	case "k", "v":
		return named
	case "e", "t", "d", "s", "ms", "p":
		return plain
	}
	return unknown
}

// property parses a property command. A tag with an empty value stays in the record: it deletes the stored tag.
func (p *Parser) property(b *core.Batch, c *cursor) error {
	record := core.Property{Flags: core.Default}
	var at moment
	f := &p.f
	for {
		more, err := c.field(f, propertyShape)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch f.prefix {
		case "e":
			record.Entity, err = lowerName(c, f)
		case "t":
			record.Type, err = lowerName(c, f)
		case "k": // an empty key is left out: it cannot tell records apart
			if value := strings.TrimSpace(f.value); value != "" {
				p.keys = append(p.keys, core.Tag{Name: f.name, Value: value})
			}
		case "v":
			p.tags = append(p.tags, core.Tag{Name: f.name, Value: strings.TrimSpace(f.value)})
		case "p":
			err = persist(c, f, &record.Flags)
		default:
			err = at.set(c, f)
		}
		if err != nil {
			return err
		}
	}
	var err error
	if record.Key, err = take(p.keys); err != nil {
		return err
	}
	if record.Tags, err = take(p.tags); err != nil {
		return err
	}
	switch {
	case record.Entity == "":
		return errNoEntity
	case record.Type == "":
		return errors.New("no property type: set t:")
	case len(record.Key)+len(record.Tags) > MaxTags:
		return errors.New("too many keys and tags: at most 1024 are allowed")
	case record.Type == core.EntityTagsType && len(record.Key)+len(record.Tags) > 0:
		// Here keys are tags too, and a record of nothing but deletions means what it says.
	case allEmpty(record.Tags):
		return core.Errorf(core.Invalid, "Empty tag values in command: %s", excerpt(c.text))
	}
	record.Time = at.or(p.Received)
	b.Properties = append(b.Properties, record)
	return nil
}

func allEmpty(tags core.Tags) bool {
	for _, t := range tags {
		if t.Value != "" {
			return false
		}
	}
	return true
}

// persist takes the field p:, which says whether a record is stored or only shown to rules.
func persist(c *cursor, f *field, flags *core.Flags) error {
	on, err := strictBool(c, f)
	if err != nil {
		return err
	}
	*flags |= core.Stored
	if !on {
		*flags &^= core.Stored
	}
	return nil
}

func messageShape(prefix string) shape {
	switch prefix {
	case "t":
		return named
	case "e", "m", "d", "s", "ms", "p":
		return plain
	}
	return unknown
}

// message parses a message command. Type and source are empty when they are not sent.
func (p *Parser) message(b *core.Batch, c *cursor) error {
	record := core.Message{Flags: core.Default}
	var at moment
	f := &p.f
	for {
		more, err := c.field(f, messageShape)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch f.prefix {
		case "e":
			record.Entity, err = lowerName(c, f)
		case "t":
			err = p.messageTag(c, f, &record)
		case "m":
			record.Text = strings.TrimSpace(f.value)
		case "p":
			err = persist(c, f, &record.Flags)
		default:
			err = at.set(c, f)
		}
		if err != nil {
			return err
		}
	}
	var err error
	if record.Tags, err = take(p.tags); err != nil {
		return err
	}
	switch {
	case record.Entity == "":
		return errNoEntity
	case record.Text == "" && len(record.Tags) == 0: // the reserved tags do not count
		return errors.New("no text and no tag: set m: or t:")
	}
	record.Time = at.or(p.Received)
	b.Messages = append(b.Messages, record)
	return nil
}

// messageTag takes a t: field: type, source and severity are fields of the message under a tag's name.
func (p *Parser) messageTag(c *cursor, f *field, record *core.Message) error {
	value := strings.TrimSpace(f.value)
	switch f.name {
	case "type", "source":
		if value != "" && !validName(value) {
			return c.reject(BadName, f.at, "invalid %s %q: names have no blanks and only printable characters", f.name, value)
		}
		if f.name == "type" {
			record.Type = strings.ToLower(value)
		} else {
			record.Source = strings.ToLower(value)
		}
		return nil
	case "severity":
		severity, ok := core.ParseSeverity(value)
		if !ok {
			return c.fault(f.at, "unknown severity %q: use 0 to 7 or a name such as WARNING", value)
		}
		record.Severity = severity
		return nil
	}
	if value == "" {
		return c.fault(f.at, "tag %q has an empty value", f.name)
	}
	p.tags = append(p.tags, core.Tag{Name: f.name, Value: value})
	return nil
}
