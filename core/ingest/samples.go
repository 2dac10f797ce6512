package ingest

import (
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// overflow is how the doors mark a number whose significand does not fit 64 bits (command.Overflow).
var overflow = core.Decimal{Significand: 0, Exponent: math.MaxInt32}

// invalidStatus is the version status of a value outside the limits of its metric.
const invalidStatus = "Invalid"

// acceptSamples checks times and values, and applies the settings of the metrics.
func (a *acceptance) acceptSamples() error {
	s := &a.b.Samples
	for i, t := range s.Times {
		if err := checkTime(t); err != nil {
			return err
		}
		if math.IsInf(s.Values[i], 0) { // has no form in any answer
			s.Values[i] = math.NaN()
		}
	}
	for i := range s.Texts {
		s.Texts[i].Text = normalText(s.Texts[i].Text)
	}
	if err := a.acceptDecimals(); err != nil {
		return err
	}
	if err := a.acceptVersions(); err != nil {
		return err
	}
	a.applySettings()
	if len(a.dropped) > 0 {
		compact(s, a.dropped)
		pruneKeys(a.b)
	}
	return nil
}

// acceptDecimals keeps exact values for exact metrics only; all others hold the nearest double.
func (a *acceptance) acceptDecimals() error {
	s := &a.b.Samples
	kept := s.Decimals[:0]
	for _, d := range s.Decimals {
		if a.keys[s.Series[d.Index]].work&decimal == 0 {
			continue
		}
		if d.Decimal == overflow {
			return invalid("BigDecimal significand overflows the long type")
		}
		kept = append(kept, d)
	}
	s.Decimals = kept
	return nil
}

// acceptVersions gives every sample of a versioned metric its version, and takes version fields from all others. An unknown metric becomes versioned
// when its first sample has them.
func (a *acceptance) acceptVersions() error {
	s := &a.b.Samples
	for i := range s.Versions {
		v := &s.Versions[i]
		v.Source, v.Status = normalText(v.Source), normalText(v.Status)
		m := a.keys[s.Series[v.Index]].metric
		if state := &a.metrics[m]; !state.known && state.work&versioned == 0 {
			state.work |= versioned
			a.newlyVersions = append(a.newlyVersions, m)
		}
	}
	// A metric of several keys may have become versioned by the sample of one of them.
	for i := range a.keys {
		a.keys[i].work |= a.metrics[a.keys[i].metric].work & versioned
	}
	total := 0
	for _, ref := range s.Series {
		if a.keys[ref].work&versioned != 0 {
			total++
		}
	}
	if total == 0 {
		s.Versions = nil
		return nil
	}
	sent, out := s.Versions, make([]core.VersionAt, 0, total)
	for i, ref := range s.Series {
		v := core.VersionAt{Index: uint32(i)}
		if len(sent) > 0 && sent[0].Index == v.Index {
			v, sent = sent[0], sent[1:]
		}
		if a.keys[ref].work&versioned != 0 {
			v.Written = 0 // the log knows when: its clock never goes back, so that versions stay in order
			out = append(out, v)
		}
	}
	s.Versions = out
	return nil
}

// applySettings walks the samples once more when any metric or entity of the batch has settings that touch them.
func (a *acceptance) applySettings() {
	var any work
	for i := range a.keys {
		any |= a.keys[i].work
	}
	if any&exotic == 0 {
		return
	}
	s := &a.b.Samples
	texts, versions := s.Texts, s.Versions
	for i, ref := range s.Series {
		text, version := "", (*core.VersionAt)(nil)
		if len(texts) > 0 && int(texts[0].Index) == i {
			text, texts = texts[0].Text, texts[1:]
		}
		if len(versions) > 0 && int(versions[0].Index) == i {
			version, versions = &versions[0], versions[1:]
		}
		k := a.keys[ref]
		m := &a.metrics[k.metric]
		if k.work&exotic == 0 {
			continue
		}
		switch {
		case m.work&drop != 0:
			a.counts.metric++
			a.drop(i)
			continue
		case k.work&drop != 0:
			a.counts.entity++
			a.drop(i)
			continue
		case k.work&limited != 0 && !a.limit(m, i, version):
			a.counts.limits++
			a.drop(i)
			continue
		}
		if k.work&derived != 0 {
			s.Flags[i] &^= core.ForRules
		}
		if k.work&unstored != 0 || k.work&filtered != 0 && !a.passes(m, i, text) {
			s.Flags[i] &^= core.Stored
		}
	}
	if len(a.clamped) > 0 {
		forgetClamped(s, a.clamped)
	}
}

// drop marks a sample to be left out. The marks are made with the first one: most batches have none.
func (a *acceptance) drop(i int) {
	if len(a.dropped) == 0 {
		n := a.b.Samples.Len()
		if cap(a.dropped) < n {
			a.dropped = make([]bool, n)
		}
		a.dropped = a.dropped[:n]
		clear(a.dropped)
	}
	a.dropped[i] = true
}

// limit applies the limits of a metric to sample i; false drops it. A sample that only carries a text has no value to limit.
func (a *acceptance) limit(m *metricState, i int, version *core.VersionAt) (keep bool) {
	s := &a.b.Samples
	if s.Flags[i]&core.HasValue == 0 {
		return true
	}
	v := s.Values[i]
	low, high := m.min != nil && v < *m.min, m.max != nil && v > *m.max
	if m.action == core.InvalidSetStatus {
		if version != nil && version.Status == "" && (low || high || math.IsNaN(v)) {
			version.Status = invalidStatus
		}
		return true
	}
	switch {
	case !low && !high:
	case m.action == core.InvalidDiscard:
		return false
	case m.action == core.InvalidTransform:
		bound := m.max
		if low {
			bound = m.min
		}
		s.Values[i] = *bound
		a.clamped = append(a.clamped, uint32(i))
	case m.action == core.InvalidRaiseError:
		m.outOfRange++
	}
	return true
}

// forgetClamped removes the exact values of samples whose value was replaced by a limit. clamped ascends.
func forgetClamped(s *core.Samples, clamped []uint32) {
	kept := s.Decimals[:0]
	for _, d := range s.Decimals {
		if _, gone := slices.BinarySearch(clamped, d.Index); !gone {
			kept = append(kept, d)
		}
	}
	s.Decimals = kept
}

// passes reports whether the persistence filter of a metric keeps sample i. A filter that cannot be evaluated, or gives no boolean, keeps it.
func (a *acceptance) passes(m *metricState, i int, text string) bool {
	s := &a.b.Samples
	k := &a.b.Keys[s.Series[i]]
	return !m.filter.Refutes(&filter.SampleEnv{Entity: k.Entity, Time: s.Times[i], Value: s.Values[i], Text: text, Tags: k.Tags})
}

// pruneKeys removes the keys that no sample refers to any more: a store would take them for new series.
func pruneKeys(b *core.Batch) {
	const unused = math.MaxUint32
	refs := make([]uint32, len(b.Keys))
	for i := range refs {
		refs[i] = unused
	}
	var kept []core.SeriesKey
	for i, ref := range b.Samples.Series {
		if refs[ref] == unused {
			refs[ref] = uint32(len(kept))
			kept = append(kept, b.Keys[ref])
		}
		b.Samples.Series[i] = refs[ref]
	}
	b.Keys = kept
}

// compact removes the dropped samples from all columns, in place.
func compact(s *core.Samples, dropped []bool) {
	moved := make([]uint32, len(dropped)) // old index -> new index
	n := 0
	for i, gone := range dropped {
		moved[i] = uint32(n)
		if gone {
			continue
		}
		s.Series[n], s.Times[n], s.Values[n], s.Flags[n] = s.Series[i], s.Times[i], s.Values[i], s.Flags[i]
		n++
	}
	s.Series, s.Times, s.Values, s.Flags = s.Series[:n], s.Times[:n], s.Values[:n], s.Flags[:n]
	s.Texts = compactSide(s.Texts, dropped, moved, func(t *core.TextAt) *uint32 { return &t.Index })
	s.Decimals = compactSide(s.Decimals, dropped, moved, func(d *core.DecimalAt) *uint32 { return &d.Index })
	s.Versions = compactSide(s.Versions, dropped, moved, func(v *core.VersionAt) *uint32 { return &v.Index })
}

// compactSide does this for one side column.
func compactSide[E any](column []E, dropped []bool, moved []uint32, index func(*E) *uint32) []E {
	kept := column[:0]
	for _, e := range column {
		at := index(&e)
		if dropped[*at] {
			continue
		}
		*at = moved[*at]
		kept = append(kept, e)
	}
	return kept
}
