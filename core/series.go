package core

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Tag is one name and value. Names are lower case, values are kept as submitted.
type Tag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Tags are sorted by name and hold each name once. Whoever builds them otherwise calls Normal before passing them on.
type Tags []Tag

// Get returns the value of a tag.
func (t Tags) Get(name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(t, name, func(tag Tag, n string) int { return cmp.Compare(tag.Name, n) })
	if !ok {
		return "", false
	}
	return t[i].Value, true
}

// Value returns the value of a tag, "" when there is none.
func (t Tags) Value(name string) string {
	v, _ := t.Get(name)
	return v
}

// Normal sorts t in place by name and keeps the last of equal names.
func (t Tags) Normal() Tags {
	if slices.IsSortedFunc(t, compareNames) && !hasDuplicate(t) {
		return t
	}
	slices.SortStableFunc(t, compareNames)
	out := t[:0]
	for i, tag := range t {
		if i+1 < len(t) && t[i+1].Name == tag.Name {
			continue
		}
		out = append(out, tag)
	}
	return out
}

func compareNames(a, b Tag) int { return cmp.Compare(a.Name, b.Name) }

func hasDuplicate(t Tags) bool {
	for i := 1; i < len(t); i++ {
		if t[i].Name == t[i-1].Name {
			return true
		}
	}
	return false
}

// Compare orders tag sets by their first difference: names before values, fewer tags first.
func (t Tags) Compare(o Tags) int {
	return slices.CompareFunc(t, o, func(a, b Tag) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
}

// Equal reports whether both hold the same names and values.
func (t Tags) Equal(o Tags) bool { return slices.Equal(t, o) }

// Clone returns a copy that shares no memory with t, nor with the request that t's strings may point into. All strings of the copy lie
// in one allocation.
func (t Tags) Clone() Tags {
	if t == nil {
		return nil
	}
	size := 0
	for _, tag := range t {
		size += len(tag.Name) + len(tag.Value)
	}
	var b strings.Builder
	b.Grow(size)
	for _, tag := range t {
		b.WriteString(tag.Name)
		b.WriteString(tag.Value)
	}
	text, out := b.String(), make(Tags, len(t))
	for i, tag := range t {
		value := len(tag.Name)
		end := value + len(tag.Value)
		out[i] = Tag{text[:value], text[value:end]}
		text = text[end:]
	}
	return out
}

// Map returns t as a map; nil for no tags.
func (t Tags) Map() map[string]string {
	if len(t) == 0 {
		return nil
	}
	m := make(map[string]string, len(t))
	for _, tag := range t {
		m[tag.Name] = tag.Value
	}
	return m
}

// TagsOf makes Tags from a map.
func TagsOf(m map[string]string) Tags {
	if len(m) == 0 {
		return nil
	}
	t := make(Tags, 0, len(m))
	for name, value := range m {
		t = append(t, Tag{name, value})
	}
	slices.SortFunc(t, compareNames)
	return t
}

// SeriesKey names one series: metric, entity and the full set of tags.
type SeriesKey struct {
	Metric string
	Entity string
	Tags   Tags
}

// The canonical form of a series key is
//
//	metric 00 entity 00 (tag 01 value 00)*
//
// so that its bytes sort like Compare: both separators are below every byte that names and values may hold.
const (
	keyEnd   = 0x00
	keyValue = 0x01
)

// Append appends the canonical form of k to dst.
func (k SeriesKey) Append(dst []byte) []byte {
	dst = append(dst, k.Metric...)
	dst = append(dst, keyEnd)
	dst = append(dst, k.Entity...)
	dst = append(dst, keyEnd)
	for _, t := range k.Tags {
		dst = append(dst, t.Name...)
		dst = append(dst, keyValue)
		dst = append(dst, t.Value...)
		dst = append(dst, keyEnd)
	}
	return dst
}

// ParseSeriesKey is the inverse of Append. The result shares no memory with b.
func ParseSeriesKey(b []byte) (SeriesKey, error) {
	bad := Errorf(Internal, "malformed series key %q", b)
	metric, rest, ok1 := bytes.Cut(b, []byte{keyEnd})
	entity, rest, ok2 := bytes.Cut(rest, []byte{keyEnd})
	if !ok1 || !ok2 {
		return SeriesKey{}, bad
	}
	k := SeriesKey{Metric: string(metric), Entity: string(entity)}
	for len(rest) > 0 {
		var tag []byte
		var ok bool
		if tag, rest, ok = bytes.Cut(rest, []byte{keyEnd}); !ok {
			return SeriesKey{}, bad
		}
		name, value, ok := bytes.Cut(tag, []byte{keyValue})
		if !ok || bytes.IndexByte(value, keyValue) >= 0 {
			return SeriesKey{}, bad
		}
		k.Tags = append(k.Tags, Tag{string(name), string(value)})
	}
	return k, nil
}

func (k *SeriesKey) same(o *SeriesKey) bool {
	return k.Metric == o.Metric && k.Entity == o.Entity && k.Tags.Equal(o.Tags)
}

// Compare orders keys by metric, entity and tags, as their canonical forms sort.
func (k SeriesKey) Compare(o SeriesKey) int {
	return cmp.Or(cmp.Compare(k.Metric, o.Metric), cmp.Compare(k.Entity, o.Entity), k.Tags.Compare(o.Tags))
}

// Clone returns a copy that shares no memory with k.
func (k SeriesKey) Clone() SeriesKey {
	return SeriesKey{strings.Clone(k.Metric), strings.Clone(k.Entity), k.Tags.Clone()}
}

// Decimal is Significand x 10^Exponent, the exact value of a number whose shortest float64 text does not give it back.
type Decimal struct {
	Significand int64
	Exponent    int32
}

// Side columns are sparse: they hold an entry only for the samples that need one, ascending by Index, each index once.
type (
	TextAt struct {
		Index uint32
		Text  string
	}
	DecimalAt struct {
		Index uint32
		Decimal
	}
	VersionAt struct {
		Index   uint32
		Source  string
		Status  string
		Written Time // receive time of the write; 0 in a batch stands for the time at which the log receives it
	}
)

// The reserved tags of text commands and tables, which carry the fields of a version and are no tags of the series.
const (
	VersionSourceTag = "$version_source"
	VersionStatusTag = "$version_status"
)

// TakeTag takes the value of a tag that carries a field of the version, and reports whether it is such a tag. The name is in lower case. Versions are
// taken whether the metric has any or not: only the pipeline knows, and leaves them out if not.
func (v *VersionAt) TakeTag(name, value string) bool {
	switch name {
	case VersionSourceTag:
		v.Source = strings.TrimSpace(value)
	case VersionStatusTag:
		v.Status = strings.TrimSpace(value)
	default:
		return false
	}
	return true
}

// Block is a run of one series in columns, ascending by time. It is valid until the next iteration of the query that yielded it:
// whoever keeps something copies it.
//
// Times are distinct, and each row is the latest version of its time, unless the query asked for Versions: then rows of equal times follow
// each other in the order in which they were written, and the last of them is the latest. A block never ends between them unless the limit does.
type Block struct {
	Key      SeriesKey
	Times    []Time
	Values   []float64 // NaN = no number
	Texts    []TextAt
	Decimals []DecimalAt
	Versions []VersionAt

	// Places, when not 0, is one more than k where every value is the double nearest to i/10^k, with a whole number i below 2^31; none is NaN.
	Places int8
}
