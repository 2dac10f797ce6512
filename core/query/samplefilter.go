package query

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
)

// sampleFilters narrow the samples of a series before any transformation. The zero value lets everything pass.
type sampleFilters struct {
	sample  *filter.Expr // nil: all
	version *filter.Expr // nil: all; only with versions
	moment  dates.Moment
	merge   bool // transformations follow: of each time only the latest version that is left
}

// compileFilters judges both expressions. Dates in them are relative to the moment of the request.
func (p *Plan) compileFilters(m dates.Moment) error {
	f := &p.filters
	f.moment, f.merge = m, p.versions() && p.computes()
	c := filter.Compiler{Zone: m.Zone, Now: func() core.Time { return m.Now }, Calendar: m.Calendar, Calendars: m.Calendars}
	var err error
	if text := p.request.SampleFilter; !blank(text) {
		if f.sample, err = c.Compile(filter.RawSamples, text); err != nil {
			return err
		}
	}
	if text := p.request.VersionFilter; !blank(text) {
		if f.version, err = c.Compile(filter.Versions, text); err != nil || !p.versions() {
			f.version = nil
		}
	}
	return err
}

// versions reports whether every version is loaded. The last value of a series is one sample.
func (p *Plan) versions() bool { return p.request.Versioned && !p.request.Cache }

// idle reports whether all samples pass as they are.
func (f *sampleFilters) idle() bool { return f.sample == nil && f.version == nil && !f.merge }

// apply keeps the samples that pass. Of a time with several versions the latest decides about all of them whether the sample passes.
func (f *sampleFilters) apply(s *Samples) error {
	if f.idle() {
		return nil
	}
	keep := make([]bool, s.Len())
	if err := f.samples(s, keep); err != nil {
		return err
	}
	if f.version != nil {
		if err := f.versions(s, keep); err != nil {
			return err
		}
	}
	if f.merge {
		latestOnly(s, keep)
	}
	s.keep(keep)
	if f.merge {
		s.Versions = nil
	}
	return nil
}

// samples marks the rows whose latest version fulfils the sample filter.
func (f *sampleFilters) samples(s *Samples, keep []bool) error {
	env := filter.RawSampleEnv{Zone: f.moment.Zone}
	for end := s.Len(); end > 0; {
		latest, pass := end-1, true
		if f.sample != nil {
			env.Time, env.Value = s.Times[latest], s.Values[latest]
			var err error
			if pass, err = f.sample.Match(&env); err != nil {
				return err
			}
		}
		for end > 0 && s.Times[end-1] == s.Times[latest] {
			end--
			keep[end] = pass
		}
	}
	return nil
}

// versions takes the marks from the rows that do not fulfil the version filter. A row without version fields is tested with empty ones.
func (f *sampleFilters) versions(s *Samples, keep []bool) error {
	var env filter.VersionEnv
	versions := s.Versions
	for i, v := range s.Values {
		env.Value, env.Version = v, core.VersionAt{}
		if len(versions) > 0 && int(versions[0].Index) == i {
			env.Version, versions = versions[0], versions[1:]
		}
		if !keep[i] {
			continue
		}
		var err error
		if keep[i], err = f.version.Match(&env); err != nil {
			return err
		}
	}
	return nil
}

// latestOnly takes the marks from all rows of a time but the last that has one.
func latestOnly(s *Samples, keep []bool) {
	taken := core.Time(-1)
	for i, t := range slices.Backward(s.Times) {
		if !keep[i] {
			continue
		}
		keep[i] = t != taken
		taken = t
	}
}

// keep removes the rows that are not marked.
func (s *Samples) keep(marks []bool) {
	if !slices.Contains(marks, false) {
		return
	}
	moved := make([]uint32, len(marks))
	n := 0
	for i, marked := range marks {
		moved[i] = uint32(n)
		if marked {
			s.Times[n], s.Values[n] = s.Times[i], s.Values[i]
			n++
		}
	}
	s.Times, s.Values = s.Times[:n], s.Values[:n]
	s.Texts = keepSide(s.Texts, marks, moved, func(t *core.TextAt) *uint32 { return &t.Index })
	s.Decimals = keepSide(s.Decimals, marks, moved, func(d *core.DecimalAt) *uint32 { return &d.Index })
	s.Versions = keepSide(s.Versions, marks, moved, func(v *core.VersionAt) *uint32 { return &v.Index })
}

// keepSide does this for one side column.
func keepSide[E any](list []E, marks []bool, moved []uint32, index func(*E) *uint32) []E {
	kept := list[:0]
	for _, e := range list {
		if at := index(&e); marks[*at] {
			*at = moved[*at]
			kept = append(kept, e)
		}
	}
	return kept
}
