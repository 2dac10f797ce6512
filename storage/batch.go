package storage

import (
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// checkShape refuses a batch whose columns do not fit together. Everything behind it may index without looking.
func checkShape(b *core.Batch) error {
	s := &b.Samples
	n := s.Len()
	if len(s.Series) != n || len(s.Values) != n || len(s.Flags) != n {
		return core.Errorf(core.Invalid, "malformed batch: sample columns of lengths %d, %d, %d, %d", len(s.Series), n, len(s.Values), len(s.Flags))
	}
	for _, ref := range s.Series {
		if uint64(ref) >= uint64(len(b.Keys)) {
			return core.Errorf(core.Invalid, "malformed batch: sample of series %d of %d", ref, len(b.Keys))
		}
	}
	if !ascending(s.Texts, n, func(at core.TextAt) uint32 { return at.Index }) ||
		!ascending(s.Decimals, n, func(at core.DecimalAt) uint32 { return at.Index }) ||
		!ascending(s.Versions, n, func(at core.VersionAt) uint32 { return at.Index }) {
		return core.Errorf(core.Invalid, "malformed batch: a side column is out of order or longer than %d samples", n)
	}
	for i := range b.Keys {
		if !cleanKey(&b.Keys[i]) {
			return core.Errorf(core.Invalid, "malformed batch: bytes 0x00 and 0x01 are not allowed in the series key %q", b.Keys[i].Metric)
		}
	}
	return nil
}

func ascending[T any](list []T, n int, index func(T) uint32) bool {
	for i, at := range list {
		if uint64(index(at)) >= uint64(n) || i > 0 && index(at) <= index(list[i-1]) {
			return false
		}
	}
	return true
}

// cleanKey reports whether the canonical form of k can be taken apart again.
func cleanKey(k *core.SeriesKey) bool {
	clean := func(s string) bool {
		for i := range len(s) {
			if s[i] <= 1 {
				return false
			}
		}
		return true
	}
	if !clean(k.Metric) || !clean(k.Entity) {
		return false
	}
	for _, t := range k.Tags {
		if !clean(t.Name) || !clean(t.Value) {
			return false
		}
	}
	return true
}

// storedPart returns what of b is to be stored, b itself when that is all, nil when it is nothing.
func storedPart(b *core.Batch) *core.Batch {
	samples, messages, properties := 0, 0, 0
	for _, f := range b.Samples.Flags {
		samples += int(f & core.Stored)
	}
	for _, m := range b.Messages {
		messages += int(m.Flags & core.Stored)
	}
	for _, p := range b.Properties {
		properties += int(p.Flags & core.Stored)
	}
	others := len(b.Series) + len(b.Removed) + len(b.Alerts) + len(b.Documents)
	switch {
	case samples+messages+properties+others == 0:
		return nil
	case samples == b.Samples.Len() && messages == len(b.Messages) && properties == len(b.Properties):
		return b
	}
	part := &core.Batch{Origin: b.Origin, Keys: b.Keys, Series: b.Series, Removed: b.Removed, Alerts: b.Alerts, Documents: b.Documents}
	part.Samples = storedSamples(&b.Samples)
	part.Messages = slices.DeleteFunc(slices.Clone(b.Messages), func(m core.Message) bool { return m.Flags&core.Stored == 0 })
	part.Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(p core.Property) bool { return p.Flags&core.Stored == 0 })
	return part
}

func storedSamples(s *core.Samples) core.Samples {
	var out core.Samples
	moved := make([]uint32, s.Len()) // index of each sample in out
	for i, f := range s.Flags {
		if f&core.Stored == 0 {
			continue
		}
		moved[i] = uint32(out.Len())
		out.Series, out.Times = append(out.Series, s.Series[i]), append(out.Times, s.Times[i])
		out.Values, out.Flags = append(out.Values, s.Values[i]), append(out.Flags, f)
	}
	kept := func(i uint32) bool { return s.Flags[i]&core.Stored != 0 }
	for _, at := range s.Texts {
		if kept(at.Index) {
			out.Texts = append(out.Texts, core.TextAt{Index: moved[at.Index], Text: at.Text})
		}
	}
	for _, at := range s.Decimals {
		if kept(at.Index) {
			out.Decimals = append(out.Decimals, core.DecimalAt{Index: moved[at.Index], Decimal: at.Decimal})
		}
	}
	for _, at := range s.Versions {
		if kept(at.Index) {
			at.Index = moved[at.Index]
			out.Versions = append(out.Versions, at)
		}
	}
	return out
}

// keep returns a copy of b for the ring: it takes over the columns, which belong to the log from Append on, and clones every string that may
// point into a request. shared holds the keys that the index has already, by reference; nil entries are cloned.
func keep(b *core.Batch, shared []*series) *core.Batch {
	k := &core.Batch{Origin: keepOrigin(b.Origin), Received: b.Received, Samples: b.Samples, Series: slices.Clone(b.Series),
		Keys: make([]core.SeriesKey, len(b.Keys)), Messages: make([]core.Message, len(b.Messages)), Removed: make([]core.PropertyKey, len(b.Removed)),
		Properties: make([]core.Property, len(b.Properties)), Alerts: make([]core.AlertChange, len(b.Alerts)),
		Documents: make([]core.DocChange, len(b.Documents))}
	for i := range b.Keys {
		if i < len(shared) && shared[i] != nil {
			k.Keys[i] = shared[i].key
		} else {
			k.Keys[i] = b.Keys[i].Clone()
		}
	}
	// A sample without a number has none on disk either: whoever follows the log sees the same from both.
	for i, f := range k.Samples.Flags {
		if f&core.HasValue == 0 {
			k.Samples.Values[i] = math.NaN()
		}
	}
	for i := range k.Samples.Texts {
		k.Samples.Texts[i].Text = strings.Clone(k.Samples.Texts[i].Text)
	}
	for i := range k.Samples.Versions {
		v := &k.Samples.Versions[i]
		v.Source, v.Status = strings.Clone(v.Source), strings.Clone(v.Status)
	}
	for i, m := range b.Messages {
		k.Messages[i] = m.Clone()
	}
	for i, p := range b.Properties {
		p.PropertyKey, p.Tags = p.PropertyKey.Clone(), p.Tags.Clone()
		k.Properties[i] = p
	}
	for i, r := range b.Removed {
		k.Removed[i] = r.Clone()
	}
	for i := range k.Series {
		k.Series[i].Key = k.Series[i].Key.Clone()
	}
	for i, c := range b.Alerts {
		k.Alerts[i] = keepAlert(c)
	}
	for i, d := range b.Documents {
		d = d.Clone()
		d.Kind = core.DocKind(strings.Clone(string(d.Kind)))
		k.Documents[i] = d
	}
	return k
}

func keepOrigin(o core.Origin) core.Origin {
	o.User, o.Address, o.Door = strings.Clone(o.User), strings.Clone(o.Address), core.Door(strings.Clone(string(o.Door)))
	return o
}

func keepAlert(c core.AlertChange) core.AlertChange {
	a := &c.Alert
	for _, text := range []*string{&c.Event, &a.Rule, &a.Window, &a.Metric, &a.Entity, &a.TextValue, &a.Message, &a.State} {
		*text = strings.Clone(*text)
	}
	a.Tags = a.Tags.Clone()
	if c.Row != nil {
		row := cloneRow(*c.Row)
		c.Row = &row
	}
	return c
}
