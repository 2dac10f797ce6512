package ingest

import (
	"encoding/json"

	"github.com/tidemark-db/tidemark/core"
)

// acceptMessages normalises messages. One without text and tags is dropped silently, and so is one of a disabled entity.
func (a *acceptance) acceptMessages() error {
	kept := a.b.Messages[:0]
	for i := range a.b.Messages {
		m := &a.b.Messages[i]
		if err := a.acceptMessage(m); err != nil {
			return err
		}
		if a.entity(m.Entity).enabled && (m.Text != "" || len(m.Tags) > 0) {
			kept = append(kept, *m)
		}
	}
	a.b.Messages = kept
	return nil
}

// acceptMessage trims all parts of a message first: names with margins are accepted here, and only here.
func (a *acceptance) acceptMessage(m *core.Message) error {
	if err := checkTime(m.Time); err != nil {
		return err
	}
	m.Entity = trimmed(m.Entity)
	if err := setName(&m.Entity, "entity"); err != nil {
		return err
	}
	if err := setOptionalName(&m.Type, "type"); err != nil {
		return err
	}
	if err := setOptionalName(&m.Source, "source"); err != nil {
		return err
	}
	// Unlike the text of a sample, that of a message is trimmed.
	m.Text = trimmed(normalText(m.Text))
	if m.Severity > core.Fatal {
		return invalid("Unknown severity %d", m.Severity)
	}
	var err error
	if m.Tags, err = normalTags(trimNames(m.Tags), dropEmpty); err != nil {
		return err
	}
	if a.b.Origin.Door != webhookDoor {
		m.Tags = withoutFieldNames(m.Tags)
	}
	return nil
}

// setOptionalName is setName for the type and source of a message, which may be empty.
func setOptionalName(name *string, kind string) error {
	if *name = trimmed(*name); *name == "" {
		return nil
	}
	return setName(name, kind)
}

// trimNames trims the names of message tags, which unlike other names may come with margins.
func trimNames(tags core.Tags) core.Tags {
	for i, t := range tags {
		if len(trimmed(t.Name)) != len(t.Name) {
			out := append(core.Tags(nil), tags...)
			for j := i; j < len(out); j++ {
				out[j].Name = trimmed(out[j].Name)
			}
			return out
		}
	}
	return tags
}

// withoutFieldNames returns message tags without those that have the name of a field.
func withoutFieldNames(tags core.Tags) core.Tags {
	isField := func(name string) bool { return name == "type" || name == "source" || name == "severity" }
	for i, t := range tags {
		if !isField(t.Name) {
			continue
		}
		out := append(core.Tags(nil), tags[:i]...)
		for _, t := range tags[i+1:] {
			if !isField(t.Name) {
				out = append(out, t)
			}
		}
		return out
	}
	return tags
}

// acceptProperties normalises property updates. Those of the reserved type become changes of the entity's document.
func (a *acceptance) acceptProperties() error {
	kept := a.b.Properties[:0]
	for i := range a.b.Properties {
		p := &a.b.Properties[i]
		if err := acceptProperty(p); err != nil {
			return err
		}
		e := a.entity(p.Entity)
		if p.Type == core.EntityTagsType {
			change, err := entityTags(*p)
			if err != nil {
				return err
			}
			a.b.Documents = append(a.b.Documents, change)
			continue
		}
		if e.enabled {
			kept = append(kept, *p)
		}
	}
	a.b.Properties = kept
	return nil
}

// acceptProperty normalises one update. An empty value deletes its tag, but a record needs a tag with a value, unless it is about entity tags.
func acceptProperty(p *core.Property) error {
	if err := checkTime(p.Time); err != nil {
		return err
	}
	if err := acceptPropertyKey(&p.PropertyKey); err != nil {
		return err
	}
	rules := keepEmpty
	if p.Type != core.EntityTagsType {
		rules |= blankNames // of settings as machines name them, which parsers bring; other doors refuse them
	}
	var err error
	if p.Tags, err = normalTags(p.Tags, rules); err != nil {
		return err
	}
	if n := len(p.Key) + len(p.Tags); n > maxTags {
		return tooManyTags(n)
	}
	if p.Type == core.EntityTagsType && len(p.Key)+len(p.Tags) > 0 {
		return nil
	}
	for _, t := range p.Tags {
		if t.Value != "" {
			return nil
		}
	}
	return core.Errorf(core.Invalid, "Empty tag values in command: property %s of %s has no tag with a value", p.Type, p.Entity)
}

// acceptPropertyKey normalises the identity of a record; keys without value are left out.
func acceptPropertyKey(k *core.PropertyKey) error {
	if err := setName(&k.Entity, "entity"); err != nil {
		return err
	}
	if err := setName(&k.Type, "type"); err != nil {
		return err
	}
	var err error
	k.Key, err = normalTags(k.Key, dropEmpty)
	return err
}

// acceptDeletes normalises what is to be deleted. The reserved type is not a record: deleting it changes nothing.
func (a *acceptance) acceptDeletes() error {
	for i := range a.b.Series {
		k := &a.b.Series[i].Key
		if _, err := normalKey(k); err != nil {
			return err
		}
		a.entity(k.Entity)
	}
	kept := a.b.Removed[:0]
	for i := range a.b.Removed {
		k := &a.b.Removed[i]
		if err := acceptPropertyKey(k); err != nil {
			return err
		}
		a.entity(k.Entity)
		if k.Type != core.EntityTagsType {
			kept = append(kept, *k)
		}
	}
	a.b.Removed = kept
	return nil
}

// acceptDocuments normalises the keys of the documents whose names are names of the contract.
func (a *acceptance) acceptDocuments() error {
	for i := range a.b.Documents {
		d := &a.b.Documents[i]
		var err error
		switch {
		case d.Kind == core.DocMetric:
			err = setName(&d.Key, "metric")
		case d.Kind == core.DocEntity:
			err = setName(&d.Key, "entity")
		case d.Key == "":
			err = invalid("Empty name of a %s", d.Kind)
		}
		if err == nil && d.Op == core.DocRename {
			err = acceptRename(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acceptRename normalises the new name. Whether it is free is known when the change is made.
func acceptRename(d *core.DocChange) error {
	name, err := d.NewName(func(string) bool { return false })
	if err != nil {
		return err
	}
	if err := setName(&name, string(d.Kind)); err != nil {
		return err
	}
	d.Body, err = json.Marshal(map[string]string{"name": name})
	return err
}
