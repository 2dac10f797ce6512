package exec

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// series turns the blocks of one series after the other into batches. It serves one goroutine.
type series struct {
	*metricScan
	key       core.SeriesKey
	intervals []plan.Interval
	condition expr.Node   // on the series; nil = none
	sieve     *sieve      // on rows; nil = none
	entity    core.Entity // where a column needs it
	needed    bool        // a column does
	found     bool        // the entity is known

	batch  column.Batch
	values []column.Value // of the columns that do not change within a series, which keep their vectors while these stay the same
	time   column.Vector
	value  column.Vector
	text   column.Vector
	number column.Vector // of the interval
	zero   [1]float64
}

func (m *metricScan) newSeries() *series {
	s := &series{metricScan: m, intervals: m.op.Intervals}
	if f := m.op.Fill; f != nil && f.Boundary == boundaryAround {
		s.intervals = []plan.Interval{{Range: core.AllTime}} // the neighbours outside are wanted
	}
	if m.op.Series != nil {
		s.condition = m.op.Series.Clone()
	}
	if m.op.Filter != nil {
		s.sieve = newSieve(m.op.Filter.Clone())
	}
	s.batch.Columns = make([]*column.Vector, len(m.op.Columns))
	s.values = make([]column.Value, len(m.op.Columns))
	s.needed = slices.ContainsFunc(m.op.Columns, func(c plan.Source) bool {
		switch c.Kind {
		case plan.SourceEntityField, plan.SourceEntityTags, plan.SourceEntityTagsJSON, plan.SourceEntityTag:
			return true
		}
		return false
	})
	return s
}

// enter begins a series and reports whether its rows exist for the query.
func (s *series) enter(key core.SeriesKey) (wanted bool, err error) {
	same := s.key.Entity == key.Entity
	if s.key.Metric != key.Metric {
		s.key.Metric = strings.Clone(key.Metric)
	}
	if !same {
		s.key.Entity = strings.Clone(key.Entity)
	}
	s.key.Tags = key.Tags.Clone()
	if s.needed && (!same || !s.found) {
		if s.entity, s.found, err = s.env.Facts.Entity(s.key.Entity, s.env.Version); err != nil {
			return false, err
		}
	}
	for i, c := range s.op.Columns {
		if s.batch.Columns[i], err = s.source(i, c); err != nil {
			return false, err
		}
	}
	if s.condition == nil {
		return true, nil
	}
	s.resize(1)
	v, err := s.condition.Eval(s.env, s.one())
	return err == nil && isTrue(v, 0), err
}

// resize makes the batch n rows long.
func (s *series) resize(n int) {
	s.batch.Len = n
	for _, v := range s.batch.Columns {
		v.Len = n
	}
}

// one is a batch of one row, of whose columns only those that do not change within the series mean anything.
func (s *series) one() *column.Batch {
	s.time.Ints = append(s.time.Ints[:0], 0)
	s.value.Floats, s.value.Exact = s.zero[:], nil // otherwise they are those of a block
	s.setTexts(nil, 1)
	s.number.Ints = append(s.number.Ints[:0], 1)
	return &s.batch
}

// source returns the vector of column i: a constant, or one that rows fills.
func (s *series) source(i int, c plan.Source) (*column.Vector, error) {
	switch c.Kind {
	case plan.SourceTime:
		s.time.Type = c.Type
		return &s.time, nil
	case plan.SourceValue:
		s.value.Type = c.Type
		return &s.value, nil
	case plan.SourceText:
		s.text.Type = c.Type
		return &s.text, nil
	case plan.SourceInterval:
		s.number = column.Vector{Type: c.Type, Const: true}
		return &s.number, nil
	}
	value, err := s.constant(c)
	if v := s.batch.Columns[i]; v != nil && value == s.values[i] {
		return v, err
	}
	s.values[i] = value
	return constant(c.Type, value), err
}

// constant returns the value of a column that does not change within a series.
func (s *series) constant(c plan.Source) (column.Value, error) {
	switch c.Kind {
	case plan.SourceMetric:
		return column.TextValue(s.key.Metric), nil
	case plan.SourceEntity:
		return column.TextValue(s.key.Entity), nil
	case plan.SourceTags:
		return textOrNull(tagText(s.key.Tags)), nil
	case plan.SourceTagsJSON:
		return tagJSON(s.key.Tags)
	case plan.SourceTag:
		return tagValue(s.key.Tags, c.Name), nil
	case plan.SourceEntityField:
		if !s.found {
			return column.NullValue, nil
		}
		if c.Name == "lastInsertTime" {
			return s.entityLast()
		}
		return s.entityField(&s.entity, c.Name)
	case plan.SourceEntityTags:
		return textOrNull(tagText(core.TagsOf(s.entity.Tags))), nil
	case plan.SourceEntityTagsJSON:
		return tagJSON(core.TagsOf(s.entity.Tags))
	case plan.SourceEntityTag:
		return mapValue(s.entity.Tags, c.Name), nil
	case plan.SourceMetricField:
		return metricField(&s.metric, s.last, c.Name), nil
	case plan.SourceMetricTags:
		return textOrNull(tagText(core.TagsOf(s.metric.Tags))), nil
	case plan.SourceMetricTagsJSON:
		return tagJSON(core.TagsOf(s.metric.Tags))
	case plan.SourceMetricTag:
		return mapValue(s.metric.Tags, c.Name), nil
	case plan.SourceLastTime:
		last, ok := s.lasts[string(s.key.Append(nil))]
		if !ok {
			return column.NullValue, nil
		}
		return column.IntValue(column.Bigint, int64(last)), nil
	}
	return column.NullValue, nil
}

// entityLast returns the time of the newest sample of the entity.
func (s *series) entityLast() (column.Value, error) {
	for info, err := range s.Metadata.Entities(s.ctx, core.MetaQuery{Name: s.key.Entity}) {
		if err != nil {
			return column.NullValue, err
		}
		return newest(info.Last, info.Inserted), nil
	}
	return column.NullValue, nil
}

// rows yields the rows of a block that lie in the intervals and pass the filter, with key of the series that was entered.
func (s *series) rows(b *core.Block) parts {
	return func(yield func(part, error) bool) {
		for n := firstAfter(s.intervals, b.Times); n < len(s.intervals); n++ {
			in := s.intervals[n]
			lo := calc.Before(b.Times, in.Start)
			if lo == len(b.Times) {
				return
			}
			hi := lo + calc.Before(b.Times[lo:], in.End)
			for step := max(hi-lo, 1); lo < hi; lo += step {
				if s.most > 0 {
					step = min(hi-lo, s.most)
				}
				if err := s.halted(); err != nil {
					yield(part{}, err)
					return
				}
				out, err := s.sieve.pass(s.env, s.cut(b, span{lo, lo + step}, n+1))
				if err != nil {
					yield(part{}, err)
					return
				}
				if out.Len > 0 && !yield(part{s, out}, nil) {
					return
				}
			}
		}
	}
}

// firstAfter returns the first of the intervals that may contain one of the ascending times.
func firstAfter(intervals []plan.Interval, times []core.Time) int {
	if len(times) == 0 {
		return len(intervals)
	}
	return sort.Search(len(intervals), func(n int) bool { return intervals[n].End > times[0] })
}

// cut makes a run of a block a batch.
func (s *series) cut(b *core.Block, r span, interval int) *column.Batch {
	n := r.to - r.from
	if cap(s.time.Ints) < n {
		s.time.Ints = make([]int64, n)
	}
	s.time.Ints = s.time.Ints[:n]
	for i, t := range b.Times[r.from:r.to] {
		s.time.Ints[i] = int64(t)
	}
	s.value.Floats = b.Values[r.from:r.to]
	s.value.Exact = sideOf(b.Decimals, r, func(e *core.DecimalAt) *uint32 { return &e.Index })
	if s.op.Needs.Text {
		s.setTexts(sideOf(b.Texts, r, func(e *core.TextAt) *uint32 { return &e.Index }), n)
	} else {
		s.setTexts(nil, n)
	}
	s.number.Ints = append(s.number.Ints[:0], int64(interval))
	s.resize(n)
	return &s.batch
}

// sideOf returns the entries of a side column that belong to a run of the rows, numbered from its start; the list itself when that is the same.
func sideOf[E any](list []E, r span, index func(*E) *uint32) []E {
	lo := sort.Search(len(list), func(i int) bool { return int(*index(&list[i])) >= r.from })
	hi := lo + sort.Search(len(list)-lo, func(i int) bool { return int(*index(&list[lo+i])) >= r.to })
	if lo == hi {
		return nil
	}
	if r.from == 0 {
		return list[lo:hi]
	}
	out := append([]E(nil), list[lo:hi]...)
	for i := range out {
		*index(&out[i]) -= uint32(r.from)
	}
	return out
}

// setTexts makes the text column of n rows.
func (s *series) setTexts(list []core.TextAt, n int) {
	v := &s.text
	if v.Const = len(list) == 0; v.Const {
		v.Strings, v.Nulls = append(v.Strings[:0], ""), append(v.Nulls[:0], true)
		return
	}
	if cap(v.Strings) < n || cap(v.Nulls) < n {
		v.Strings, v.Nulls = make([]string, n), make([]bool, n)
	}
	v.Strings, v.Nulls = v.Strings[:n], v.Nulls[:n]
	for i := range v.Nulls {
		v.Nulls[i] = true
	}
	for _, e := range list {
		v.Strings[e.Index], v.Nulls[e.Index] = e.Text, false
	}
}

// tagText is the text of a whole set of tags: name1=value1;name2=value2.
func tagText(tags core.Tags) string {
	if len(tags) == 0 {
		return ""
	}
	var b strings.Builder
	for i, t := range tags {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(t.Name)
		b.WriteByte('=')
		b.WriteString(t.Value)
	}
	return b.String()
}

// tagJSON is the same as a JSON object with the names in order; NULL without tags.
func tagJSON(tags core.Tags) (column.Value, error) {
	if len(tags) == 0 {
		return column.NullValue, nil
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(tags.Map())
	return column.TextValue(strings.TrimSuffix(b.String(), "\n")), err
}

func tagValue(tags core.Tags, name string) column.Value {
	if v, ok := tags.Get(name); ok {
		return column.TextValue(v)
	}
	return column.NullValue
}

func mapValue(tags map[string]string, name string) column.Value {
	if v, ok := tags[name]; ok {
		return column.TextValue(v)
	}
	return column.NullValue
}

// entityField returns a field of an entity.
func (x *execution) entityField(e *core.Entity, name string) (column.Value, error) {
	switch name {
	case "name":
		return column.TextValue(e.Name), nil
	case "label":
		return textOrNull(e.Label), nil
	case "timeZone":
		return textOrNull(e.TimeZone), nil
	case "interpolate":
		return textOrNull(e.Interpolate), nil
	case "enabled":
		return column.BoolValue(e.Enabled), nil
	case "creationTime":
		return column.IntValue(column.Bigint, int64(e.Created)), nil
	case "versionTime":
		return column.IntValue(column.Bigint, int64(e.VersionDate())), nil
	case "groups":
		groups, err := x.env.Facts.Groups(e.Name)
		return textOrNull(strings.Join(groups, ";")), err
	}
	return column.NullValue, nil
}

// metricField returns a field of a metric; last is the time of its newest sample.
func metricField(m *core.Metric, last column.Value, name string) column.Value {
	switch name {
	case "name":
		return column.TextValue(m.Name)
	case "label":
		return textOrNull(m.Label)
	case "description":
		return textOrNull(m.Description)
	case "timeZone":
		return textOrNull(m.TimeZone)
	case "interpolate":
		return textOrNull(m.Interpolate)
	case "filter":
		return textOrNull(m.Filter)
	case "invalidValueAction":
		return textOrNull(string(m.InvalidAction))
	case "units":
		return textOrNull(m.Units)
	case "dataType":
		return textOrNull(string(m.DataType))
	case "enabled":
		return column.BoolValue(m.Enabled)
	case "persistent":
		return column.BoolValue(m.Persistent)
	case "versioning":
		return column.BoolValue(m.Versioned)
	case "creationTime":
		return column.IntValue(column.Bigint, int64(m.Created))
	case "retentionIntervalDays":
		return column.IntValue(column.Integer, int64(m.RetentionDays))
	case "lastInsertTime":
		return last
	case "minValue":
		return limitValue(m.MinValue)
	case "maxValue":
		return limitValue(m.MaxValue)
	}
	return column.NullValue
}

func limitValue(v *float64) column.Value {
	if v == nil {
		return column.NullValue
	}
	return column.FloatValue(column.Double, *v)
}
