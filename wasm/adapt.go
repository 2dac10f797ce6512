package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// AppendBatch adds what a plugin wrote to dst. Names are lowered, tags sorted. Tags to be copied are those of the catalog; with nil nothing has any.
// Strings are shared with src; nothing else is, so that src may be decoded into again.
func AppendBatch(dst *core.Batch, src *abi.Batch, catalog core.Catalog) error {
	a := adapter{catalog}
	a.appendSamples(dst, src)
	for _, m := range src.Messages {
		entity := strings.ToLower(m.Entity)
		dst.Messages = append(dst.Messages, core.Message{Time: core.Time(m.Time), Entity: entity, Type: strings.ToLower(m.Type),
			Source: m.Source, Severity: core.Severity(m.Severity), Text: m.Text, Tags: a.tags(m.Tags, entity, ""), Flags: flagsOf(m.Persist)})
	}
	for _, p := range src.Properties {
		key := core.PropertyKey{Entity: strings.ToLower(p.Entity), Type: strings.ToLower(p.Type), Key: tagsOf(p.Keys)}
		dst.Properties = append(dst.Properties, core.Property{PropertyKey: key, Time: core.Time(p.Time), Tags: a.tags(p.Tags, key.Entity, ""), Flags: flagsOf(p.Persist)})
	}
	for _, records := range []struct {
		kind core.DocKind
		list []abi.Record
	}{{core.DocEntity, src.Entities}, {core.DocMetric, src.Metrics}} {
		for _, r := range records.list {
			body, err := patchOf(r)
			if err != nil {
				return fmt.Errorf("%s %q: %w", records.kind, r.Name, err)
			}
			dst.Documents = append(dst.Documents, core.DocChange{Kind: records.kind, Key: strings.ToLower(r.Name), Op: core.DocPatch, Body: body})
		}
	}
	return nil
}

// adapter makes core records of those of a plugin.
type adapter struct{ catalog core.Catalog }

// tags makes the tags of a command. A copied tag has the value that the entity has, else that of the metric, else the one that stands beside it.
func (a adapter) tags(pairs []abi.Pair, entity, metric string) core.Tags {
	if !slices.ContainsFunc(pairs, isCopy) {
		return tagsOf(pairs)
	}
	var tags core.Tags
	add := func(name, value string) {
		if value != "" {
			tags = append(tags, core.Tag{Name: strings.ToLower(name), Value: value})
		}
	}
	for _, p := range pairs {
		if !isCopy(p) {
			add(p.Name, p.Value)
		}
	}
	if m, ok := a.metric(metric); ok {
		eachCopy(pairs, abi.CopyMetric, func(name string) { add(name, m.Tags[strings.ToLower(name)]) })
	}
	if e, ok := a.entity(entity); ok {
		eachCopy(pairs, abi.CopyEntity, func(name string) { add(name, e.Tags[strings.ToLower(name)]) })
	}
	return tags.Normal() // which keeps the last of equal names
}

func isCopy(p abi.Pair) bool {
	return strings.HasPrefix(p.Name, abi.CopyEntity) || strings.HasPrefix(p.Name, abi.CopyMetric)
}

func eachCopy(pairs []abi.Pair, prefix string, do func(name string)) {
	for _, p := range pairs {
		if name, ok := strings.CutPrefix(p.Name, prefix); ok {
			do(name)
		}
	}
}

func (a adapter) metric(name string) (core.Metric, bool) {
	if a.catalog == nil || name == "" {
		return core.Metric{}, false
	}
	return a.catalog.Metric(name)
}

func (a adapter) entity(name string) (core.Entity, bool) {
	if a.catalog == nil {
		return core.Entity{}, false
	}
	return a.catalog.Entity(name)
}

// series makes the key of a series, and the version that its reserved tags give to each of its samples.
func (a adapter) series(s *abi.Series) (core.SeriesKey, core.VersionAt) {
	key := core.SeriesKey{Metric: strings.ToLower(s.Metric), Entity: strings.ToLower(s.Entity)}
	var version core.VersionAt
	key.Tags = slices.DeleteFunc(a.tags(s.Tags, key.Entity, key.Metric), func(t core.Tag) bool { return version.TakeTag(t.Name, t.Value) })
	return key, version
}

func (a adapter) appendSamples(batch *core.Batch, src *abi.Batch) {
	refs, versions := make([]uint32, len(src.Series)), map[abi.SeriesRef]core.VersionAt{}
	for i := range src.Series {
		key, version := a.series(&src.Series[i])
		refs[i] = batch.Ref(key)
		if version != (core.VersionAt{}) {
			versions[abi.SeriesRef(i)] = version
		}
	}
	dst := &batch.Samples
	base := uint32(dst.Len())
	for i, s := range src.Samples {
		if len(versions) > 0 {
			if version, ok := versions[s.Series]; ok {
				version.Index = base + uint32(i)
				dst.Versions = append(dst.Versions, version)
			}
		}
		flags := core.Default
		if s.Flags&abi.TextOnly == 0 {
			flags |= core.HasValue
		}
		if s.Flags&abi.AppendText != 0 {
			flags |= core.AppendText
		}
		v := s.Value
		if s.Flags&abi.TextOnly != 0 {
			v = math.NaN()
		}
		dst.Series = append(dst.Series, refs[s.Series])
		dst.Times = append(dst.Times, core.Time(s.Time))
		dst.Values = append(dst.Values, v)
		dst.Flags = append(dst.Flags, flags)
	}
	for _, t := range src.Texts {
		dst.Texts = append(dst.Texts, core.TextAt{Index: base + uint32(t.Index), Text: t.Text})
	}
	for _, d := range src.Decimals {
		if exact, ok := parseDecimal(d.Text); ok && !isShortest(d.Text, src.Samples[d.Index].Value) {
			dst.Decimals = append(dst.Decimals, core.DecimalAt{Index: base + uint32(d.Index), Decimal: exact})
		}
	}
}

// isShortest reports whether the float alone gives the number back, so that no side column is needed.
func isShortest(text string, v float64) bool {
	back, ok := parseDecimal(strconv.FormatFloat(v, 'e', -1, 64))
	exact, _ := parseDecimal(text)
	return ok && back == exact
}

// parseDecimal reads a decimal text, normalised to have no trailing zeros in the significand; not ok when that does not fit
// 64 bits, and then the float stands alone.
func parseDecimal(text string) (core.Decimal, bool) {
	number, exponentText, hasExponent := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if hasExponent {
		var err error
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent > 1<<20 || exponent < -1<<20 {
			return core.Decimal{}, false
		}
	}
	whole, fraction, _ := strings.Cut(number, ".")
	digits := whole + strings.TrimRight(fraction, "0")
	exponent -= len(strings.TrimRight(fraction, "0"))
	significand, err := strconv.ParseInt(digits, 10, 64)
	for err != nil && strings.HasSuffix(digits, "0") {
		digits = digits[:len(digits)-1]
		exponent++
		significand, err = strconv.ParseInt(digits, 10, 64)
	}
	if err != nil {
		return core.Decimal{}, false
	}
	for significand != 0 && significand%10 == 0 {
		significand /= 10
		exponent++
	}
	if significand == 0 {
		exponent = 0
	}
	return core.Decimal{Significand: significand, Exponent: int32(exponent)}, true
}

func flagsOf(persist bool) core.Flags {
	if persist {
		return core.Default
	}
	return core.ForRules
}

func tagsOf(pairs []abi.Pair) core.Tags {
	if len(pairs) == 0 {
		return nil
	}
	tags := make(core.Tags, len(pairs))
	for i, p := range pairs {
		tags[i] = core.Tag{Name: strings.ToLower(p.Name), Value: p.Value}
	}
	return tags.Normal()
}

// fieldNames maps the fields of entity and metric records to members of the documents, with how to read the text.
var fieldNames = map[string]struct {
	member string
	read   func(string) (any, error)
}{
	"label": {"label", readText}, "description": {"description", readText}, "units": {"units", readText}, "filter": {"filter", readText},
	"interpolate": {"interpolate", readUpper}, "time_zone": {"timeZone", readText}, "data_type": {"dataType", readUpper},
	"invalid_action": {"invalidAction", readUpper}, "enabled": {"enabled", readBool}, "persistent": {"persistent", readBool},
	"versioned": {"versioned", readBool}, "retention_days": {"retentionDays", readInt},
	"min_value": {"minValue", readFloat}, "max_value": {"maxValue", readFloat},
}

func readText(s string) (any, error)  { return s, nil }
func readUpper(s string) (any, error) { return strings.ToUpper(s), nil }
func readBool(s string) (any, error)  { return strconv.ParseBool(s) }
func readInt(s string) (any, error)   { return strconv.Atoi(s) }

func readFloat(s string) (any, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = errors.New("it must be finite")
	}
	return v, err
}

// patchOf returns the JSON merge patch of a record.
func patchOf(r abi.Record) ([]byte, error) {
	patch := make(map[string]any)
	for _, f := range r.Fields {
		field, ok := fieldNames[f.Name]
		if !ok {
			return nil, fmt.Errorf("unknown field %q", f.Name)
		}
		v, err := field.read(f.Value)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		patch[field.member] = v
	}
	if len(r.Tags) > 0 {
		patch["tags"] = tagsOf(r.Tags).Map()
	}
	return json.Marshal(patch)
}

// Renderers is the core.AlertRenderer of a host.
type Renderers struct{ Host *Host }

// Render renders events with the named plugin. An event that the plugin leaves to the server has an empty text.
func (r Renderers) Render(ctx context.Context, plugin string, events []core.AlertEvent) ([]core.RenderedAlert, error) {
	p := r.Host.Plugin(plugin)
	if p == nil {
		return nil, core.Errorf(core.NotFound, "unknown plugin %q", plugin)
	}
	flat := make([]abi.Event, len(events))
	for i := range events {
		flat[i] = flatEvent(&events[i])
	}
	out, err := p.Alert(ctx, abi.AppendEvents(nil, flat))
	if err != nil {
		return nil, coreError(err)
	}
	renderings, err := abi.DecodeRenderings(string(out), len(events), r.Host.options.Limits)
	if err != nil {
		return nil, coreError(faultf(plugin, FaultOutput, "%w", err))
	}
	rendered := make([]core.RenderedAlert, len(events))
	for i, g := range renderings {
		if g.BuiltIn {
			continue
		}
		if g.Body != "" && !json.Valid([]byte(g.Body)) {
			return nil, coreError(faultf(plugin, FaultOutput, "the body of event %d is not JSON", i))
		}
		rendered[i] = core.RenderedAlert{Text: g.Text, JSON: []byte(g.Body)}
	}
	return rendered, nil
}

func flatEvent(e *core.AlertEvent) abi.Event {
	flat := abi.Event{Time: int64(e.Time), Received: int64(e.Received), Opened: int64(e.Alert.OpenTime), Value: e.Alert.Value,
		OpenValue: e.Alert.OpenValue, Repeat: uint32(max(0, e.Alert.RepeatCount)), Severity: uint8(e.Alert.Severity),
		Tags: pairsOfTags(e.Tags), Variables: pairsOfTags(e.Fields)}
	switch e.Status {
	case core.StatusRepeat:
		flat.Status = abi.StatusRepeat
	case core.StatusCancel:
		flat.Status = abi.StatusCancel
	}
	flat.Texts[abi.EventRule], flat.Texts[abi.EventWindow], flat.Texts[abi.EventCondition] = e.Rule, e.Window, e.Condition
	flat.Texts[abi.EventEntity], flat.Texts[abi.EventMetric] = e.Alert.Entity, e.Alert.Metric
	flat.Texts[abi.EventType], flat.Texts[abi.EventSource] = e.Type, e.Source
	flat.Texts[abi.EventMessage] = e.Alert.Message
	flat.Texts[abi.EventID] = e.ID
	return flat
}

func pairsOfTags(tags core.Tags) []abi.Pair {
	ps := make([]abi.Pair, len(tags))
	for i, t := range tags {
		ps[i] = abi.Pair{Name: t.Name, Value: t.Value}
	}
	return ps
}

// coreError gives an error of a plugin its code for the user. What a plugin says of the data is for the user as it stands.
func coreError(err error) error {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	code, text := core.Internal, e.Error()
	switch e.Fault {
	case FaultData:
		code, text = core.Invalid, e.Text
	case FaultUnsupported:
		code = core.Unimplemented
	case FaultCanceled:
		code = core.Canceled
	case FaultModule, FaultBusy:
		code = core.Unavailable
	}
	if e.DeadLetter {
		text += fmt.Sprintf("; what came before byte %d is stored, the rest is not", e.Offset)
	}
	return &core.Error{Code: code, Text: text, Cause: err, RetryAfter: e.RetryAfter}
}
