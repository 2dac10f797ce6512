package command

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidemark-db/tidemark/core"
)

// Sample is one sample with its side columns, as a command writes it.
type Sample struct {
	Key     core.SeriesKey
	Time    core.Time
	Number  Number // without meaning unless Flags has HasValue
	Text    string
	HasText bool
	Flags   core.Flags // HasValue and AppendText count
	Source  string     // version fields
	Status  string
}

// AppendSeries appends a series command without a line end. The sample carries a number or a text; infinities have no form in the language.
func AppendSeries(dst []byte, s Sample) []byte {
	dst = append(dst, "series"...)
	dst = appendField(dst, "e", s.Key.Entity)
	for _, t := range s.Key.Tags {
		dst = appendNamed(dst, "t", t)
	}
	if s.Source != "" {
		dst = appendNamed(dst, "t", core.Tag{Name: core.VersionSourceTag, Value: s.Source})
	}
	if s.Status != "" {
		dst = appendNamed(dst, "t", core.Tag{Name: core.VersionStatusTag, Value: s.Status})
	}
	if s.Flags&core.HasValue != 0 {
		dst = appendName(append(dst, " m:"...), s.Key.Metric)
		dst = appendNumber(append(dst, '='), s.Number)
	}
	if s.HasText {
		dst = appendNamed(dst, "x", core.Tag{Name: s.Key.Metric, Value: s.Text})
	}
	if s.Flags&core.AppendText != 0 {
		dst = append(dst, " a:true"...)
	}
	return appendTime(dst, s.Time)
}

// AppendMessage appends a message command without a line end.
func AppendMessage(dst []byte, m core.Message) []byte {
	dst = append(dst, "message"...)
	dst = appendField(dst, "e", m.Entity)
	if m.Type != "" {
		dst = appendNamed(dst, "t", core.Tag{Name: "type", Value: m.Type})
	}
	if m.Source != "" {
		dst = appendNamed(dst, "t", core.Tag{Name: "source", Value: m.Source})
	}
	if m.Severity != core.Undefined {
		dst = appendNamed(dst, "t", core.Tag{Name: "severity", Value: m.Severity.String()})
	}
	for _, t := range m.Tags {
		dst = appendNamed(dst, "t", t)
	}
	if m.Text != "" {
		dst = appendField(dst, "m", m.Text)
	}
	return appendPersist(appendTime(dst, m.Time), m.Flags)
}

// AppendProperty appends a property command without a line end.
func AppendProperty(dst []byte, p core.Property) []byte {
	dst = append(dst, "property"...)
	dst = appendField(dst, "e", p.Entity)
	dst = appendField(dst, "t", p.Type)
	for _, t := range p.Key {
		dst = appendNamed(dst, "k", t)
	}
	for _, t := range p.Tags {
		dst = appendNamed(dst, "v", t)
	}
	return appendPersist(appendTime(dst, p.Time), p.Flags)
}

// settingField ties a prefix to a member of the document.
type settingField struct{ prefix, member string }

var metricFields = []settingField{{"b", "enabled"}, {"l", "label"}, {"d", "description"}, {"u", "units"}, {"p", "dataType"}, {"i", "interpolate"},
	{"f", "filter"}, {"z", "timeZone"}, {"v", "versioned"}, {"a", "invalidAction"}, {"pe", "persistent"}, {"rd", "retentionDays"}, {"min", "minValue"},
	{"max", "maxValue"}}

var entityFields = []settingField{{"b", "enabled"}, {"l", "label"}, {"i", "interpolate"}, {"z", "timeZone"}}

// AppendMetric appends the metric command of a merge patch, without a line end. Members that the language has no field for are refused.
func AppendMetric(dst []byte, name string, patch []byte) ([]byte, error) {
	return appendSettings(appendField(append(dst, "metric"...), "m", name), patch, metricFields)
}

// AppendEntity appends the entity command of a merge patch, without a line end. Members that the language has no field for are refused.
func AppendEntity(dst []byte, name string, patch []byte) ([]byte, error) {
	return appendSettings(appendField(append(dst, "entity"...), "e", name), patch, entityFields)
}

// appendSettings appends the fields of a merge patch in a fixed order, then its tags by name.
func appendSettings(dst, body []byte, fields []settingField) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return dst, core.Wrap(core.Invalid, err, "settings are not a JSON object")
	}
	for _, f := range fields {
		raw, ok := members[f.member]
		if !ok {
			continue
		}
		delete(members, f.member)
		value, err := scalar(raw)
		if err != nil {
			return dst, err
		}
		dst = appendField(dst, f.prefix, value)
	}
	tags := map[string]json.RawMessage{}
	if raw, ok := members["tags"]; ok {
		delete(members, "tags")
		if err := json.Unmarshal(raw, &tags); err != nil || tags == nil {
			return dst, core.Errorf(core.Invalid, "tags are not a JSON object: no command can express this")
		}
	}
	for name := range members {
		return dst, core.Errorf(core.Unsupported, "setting %q has no field in the command language", name)
	}
	list := make(core.Tags, 0, len(tags))
	for name, raw := range tags {
		value, err := scalar(raw)
		if err != nil {
			return dst, err
		}
		list = append(list, core.Tag{Name: name, Value: value})
	}
	slices.SortFunc(list, func(a, b core.Tag) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range list {
		dst = appendNamed(dst, "t", t)
	}
	return dst, nil
}

// scalar returns the text of a JSON string, number or boolean; null is the empty text, which resets.
func scalar(raw json.RawMessage) (string, error) {
	switch raw[0] {
	case 'n':
		return "", nil
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case '{', '[':
		return "", core.Errorf(core.Unsupported, "a setting that is an object or array has no form in the command language")
	}
	return string(raw), nil
}

// AppendBatch appends every sample, message and property, and every metric and entity patch of b, one command a line. What the language cannot
// express, such as deletes and other documents, is refused.
func AppendBatch(dst []byte, b *core.Batch) ([]byte, error) {
	if len(b.Series)+len(b.Removed)+len(b.Alerts) > 0 {
		return dst, core.Errorf(core.Unsupported, "deletes and alerts have no form in the command language")
	}
	for _, change := range b.Documents {
		var err error
		switch {
		case change.Kind == core.DocMetric && change.Op == core.DocPatch:
			dst, err = AppendMetric(dst, change.Key, change.Body)
		case change.Kind == core.DocEntity && change.Op == core.DocPatch:
			dst, err = AppendEntity(dst, change.Key, change.Body)
		default:
			err = core.Errorf(core.Unsupported, "a change of a %s has no form in the command language", change.Kind)
		}
		if err != nil {
			return dst, err
		}
		dst = append(dst, '\n')
	}
	for s := range samplesOf(b) {
		dst = append(AppendSeries(dst, s), '\n')
	}
	for _, m := range b.Messages {
		dst = append(AppendMessage(dst, m), '\n')
	}
	for _, p := range b.Properties {
		dst = append(AppendProperty(dst, p), '\n')
	}
	return dst, nil
}

// samplesOf walks the samples of a batch together with its side columns.
func samplesOf(b *core.Batch) func(yield func(Sample) bool) {
	return func(yield func(Sample) bool) {
		s := &b.Samples
		texts, decimals, versions := s.Texts, s.Decimals, s.Versions
		for i := range s.Len() {
			at := uint32(i)
			one := Sample{Key: b.Keys[s.Series[i]], Time: s.Times[i], Flags: s.Flags[i], Number: Number{Value: s.Values[i]}}
			if len(texts) > 0 && texts[0].Index == at {
				one.Text, one.HasText, texts = texts[0].Text, true, texts[1:]
			}
			if len(decimals) > 0 && decimals[0].Index == at {
				one.Number.Decimal, one.Number.Inexact, decimals = decimals[0].Decimal, true, decimals[1:]
			}
			if len(versions) > 0 && versions[0].Index == at {
				one.Source, one.Status, versions = versions[0].Source, versions[0].Status, versions[1:]
			}
			if !yield(one) {
				return
			}
		}
	}
}

// appendTime prints milliseconds: the shortest exact form, and the cheapest to read back.
func appendTime(dst []byte, t core.Time) []byte {
	return strconv.AppendInt(append(dst, " ms:"...), int64(t), 10)
}

// appendPersist prints the flag of records that only rules see.
func appendPersist(dst []byte, flags core.Flags) []byte {
	if flags&core.Stored == 0 {
		dst = append(dst, " p:false"...)
	}
	return dst
}

func appendField(dst []byte, prefix, value string) []byte {
	dst = append(append(append(dst, ' '), prefix...), ':')
	return appendQuoted(dst, value)
}

func appendNamed(dst []byte, prefix string, t core.Tag) []byte {
	dst = append(append(append(dst, ' '), prefix...), ':')
	dst = appendName(dst, t.Name)
	return appendQuoted(append(dst, '='), t.Value)
}

// appendName quotes a name where it has to be: a quote inside is only special in a quoted name.
func appendName(dst []byte, name string) []byte {
	if strings.ContainsAny(name, `"=`) {
		return quote(dst, name)
	}
	return append(dst, name...)
}

// appendQuoted quotes a value that is empty or holds anything but safe characters.
func appendQuoted(dst []byte, value string) []byte {
	unsafe := func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) || unicode.IsControl(r) }
	if value == "" || strings.ContainsFunc(value, unsafe) {
		return quote(dst, value)
	}
	return append(dst, value...)
}

func quote(dst []byte, text string) []byte {
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(text, `"`, `""`)...)
	return append(dst, '"')
}
