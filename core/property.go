package core

import (
	"cmp"
	"strings"
)

// EntityTagsType is the reserved property type whose tags are the tags of the entity itself.
const EntityTagsType = "$entity_tags"

// PropertyKey names one property record.
type PropertyKey struct {
	Entity string
	Type   string
	Key    Tags
}

// Compare orders records by entity, type and key; the record without keys comes first.
func (k PropertyKey) Compare(o PropertyKey) int {
	return cmp.Or(cmp.Compare(k.Entity, o.Entity), cmp.Compare(k.Type, o.Type), k.Key.Compare(o.Key))
}

// Clone returns a copy that shares no memory with k.
func (k PropertyKey) Clone() PropertyKey {
	return PropertyKey{strings.Clone(k.Entity), strings.Clone(k.Type), k.Key.Clone()}
}

// Property is one update of a record: it writes the tags it names, removes those whose value is empty, and leaves the others.
type Property struct {
	PropertyKey
	Time  Time
	Tags  Tags
	Flags Flags
}

// PropertyTag is a stored tag with the time of the update that wrote it.
type PropertyTag struct {
	Tag
	Time Time
}

// PropertyRecord is the stored state of a record. Time is the latest of its tags' times; Tags are sorted by name.
type PropertyRecord struct {
	PropertyKey
	Time Time
	Tags []PropertyTag
}
