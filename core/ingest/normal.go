package ingest

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// badCharacter reports what names may not hold and what is trimmed at the ends of values.
func badCharacter(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError
}

// Classes of bytes. The loops below OR the classes of all bytes together, without a branch for each: they see every byte of every name that comes in.
const (
	separator = 1 << iota // may be in no part of a series key
	blank                 // blanks and control characters of ASCII
	capital
	wide // part of a longer character
)

var classes = func() (table [256]uint8) {
	for c := range table {
		switch {
		case c <= 1:
			table[c] = separator | blank
		case c <= ' ' || c == 0x7f:
			table[c] = blank
		case c >= 'A' && c <= 'Z':
			table[c] = capital
		case c >= utf8.RuneSelf:
			table[c] = wide
		}
	}
	return table
}()

func classOf(s string) (class uint8) {
	for i := range len(s) {
		class |= classes[s[i]]
	}
	return class
}

// normalName returns a name in its stored form, lower case; ok is false when it is empty or has a blank, a character that does not print, or bytes that
// are not UTF-8. A name in its stored form is returned as it is, without allocation.
func normalName(name string) (normal string, ok bool) {
	class := classOf(name)
	switch {
	case class == 0:
		return name, name != ""
	case class&blank != 0, class&wide != 0 && strings.ContainsFunc(name, badCharacter):
		return name, false
	}
	return strings.ToLower(name), true
}

// normalValue returns a value in its stored form, trimmed; ok is false when it holds a byte that separates the parts of a series key, or is not UTF-8.
func normalValue(value string) (normal string, ok bool) {
	value = trimmed(value)
	class := classOf(value)
	return value, class&separator == 0 && (class&wide == 0 || utf8.ValidString(value))
}

// trimmed cuts blanks and control characters at both ends, which hardly any text has.
func trimmed(s string) string {
	if n := len(s); n == 0 || !edge(s[0]) && !edge(s[n-1]) {
		return s
	}
	return strings.TrimFunc(s, isMargin)
}

// edge reports whether a first or last byte can belong to something that is trimmed.
func edge(c byte) bool { return c <= ' ' || c >= 0x7f }

func isMargin(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// setName puts a name of the given kind (entity, metric, ...) into its stored form.
func setName(name *string, kind string) error {
	normal, ok := normalName(*name)
	switch {
	case !ok && strings.TrimFunc(*name, isMargin) == "":
		return invalid("Empty %s", kind)
	case !ok:
		return invalid("Invalid %s name: '%s'", kind, printable(*name))
	}
	*name = normal
	return nil
}

// printable makes a refused name fit an error text.
func printable(name string) string {
	const limit = 256
	if len(name) > limit {
		name = name[:limit] + "..."
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// tagRules is what kinds of records do differently with their tags. With none a tag without value is refused.
type tagRules uint8

const (
	dropEmpty  tagRules = 1 << iota // leave out a tag without value
	keepEmpty                       // keep it: it deletes the stored tag
	blankNames                      // names may hold blanks, though not at their ends
)

// tagName returns the name of a tag in its stored form.
func (r tagRules) tagName(t core.Tag) (normal string, ok bool) {
	normal, ok = normalName(t.Name)
	switch {
	case !ok && t.SetsStore():
		return t.Name, true
	case !ok && r&blankNames != 0 && trimmed(t.Name) == t.Name:
		_, ok = normalName(strings.ReplaceAll(t.Name, " ", ""))
		return strings.ToLower(t.Name), ok
	}
	return normal, ok
}

// normalTags returns tags in their stored form: names lower case and sorted, values trimmed. The slice may be shared with other records, so that it is
// copied before anything in it changes; tags in their stored form come back as they are.
func normalTags(tags core.Tags, rules tagRules) (core.Tags, error) {
	out, copied := tags, false
	for i := range tags {
		t := tags[i]
		name, ok := rules.tagName(t)
		if !ok {
			return nil, invalid("Invalid tag name: '%s'", printable(t.Name))
		}
		value, ok := normalValue(t.Value)
		if !ok {
			return nil, invalid("Tag \"%s\" has a value with characters 0 or 1, or that is not UTF-8", t.Name)
		}
		if value == "" && rules&(dropEmpty|keepEmpty) == 0 {
			return nil, invalid("Tag \"%s\" has empty value", t.Name)
		}
		drop := value == "" && rules&dropEmpty != 0
		if !copied && (drop || name != t.Name || len(value) != len(t.Value) || i > 0 && tags[i-1].Name >= name) {
			out, copied = append(make(core.Tags, 0, len(tags)), tags[:i]...), true
		}
		if copied && !drop {
			out = append(out, core.Tag{Name: name, Value: value})
		}
	}
	if copied {
		out = out.Normal()
	}
	if len(out) > maxTags {
		return nil, tooManyTags(len(out))
	}
	return out, nil
}

func tooManyTags(n int) error {
	return invalid("%d tags in one record. Max allowed value is %d", n, maxTags)
}

// normalKey puts a series key into its stored form and reports whether that changed it.
func normalKey(k *core.SeriesKey) (changed bool, err error) {
	before := *k
	if err := setName(&k.Entity, "entity"); err != nil {
		return false, err
	}
	if err := setName(&k.Metric, "metric"); err != nil {
		return false, err
	}
	if k.Tags, err = normalTags(k.Tags, 0); err != nil {
		return false, err
	}
	return k.Entity != before.Entity || k.Metric != before.Metric || !sameTags(k.Tags, before.Tags), nil
}

// normalKeys does this for a table of keys. Neighbours mostly share their entity, metric or tags: comparing is cheaper than looking at each byte again.
func normalKeys(keys []core.SeriesKey) (changed bool, err error) {
	var sent, normal core.SeriesKey // the key before
	for i := range keys {
		k := &keys[i]
		one := *k
		if k.Entity = normal.Entity; i == 0 || one.Entity != sent.Entity {
			k.Entity = one.Entity
			err = setName(&k.Entity, "entity")
		}
		if k.Metric = normal.Metric; err == nil && (i == 0 || one.Metric != sent.Metric) {
			k.Metric = one.Metric
			err = setName(&k.Metric, "metric")
		}
		switch {
		case err != nil:
		case i == 0 || !one.Tags.Equal(sent.Tags):
			k.Tags, err = normalTags(one.Tags, 0)
		case !sameTags(normal.Tags, sent.Tags):
			k.Tags = normal.Tags
		}
		if err != nil {
			return false, err
		}
		changed = changed || k.Entity != one.Entity || k.Metric != one.Metric || !sameTags(k.Tags, one.Tags)
		sent, normal = one, *k
	}
	return changed, nil
}

// sameTags reports whether two sets of tags are one slice.
func sameTags(a, b core.Tags) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// normalText makes a text storable: only what is not UTF-8 changes.
func normalText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// checkTime refuses times outside the storable range.
func checkTime(t core.Time) error {
	switch {
	case t < core.MinTime:
		return invalid("Negative timestamp")
	case t > core.MaxTime:
		return invalid("Too large timestamp %d. Max allowed value is %d", int64(t), int64(core.MaxTime))
	}
	return nil
}

// invalid makes a refusal in the form that clients of the contract match on.
func invalid(format string, args ...any) error {
	return core.Errorf(core.Invalid, "IllegalArgumentException: "+format, args...)
}
