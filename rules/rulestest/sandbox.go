package rulestest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/glob"
)

// Sandbox is a log, a store and a catalog in memory, just enough for rules to run on. Its clock is set by the test. It is safe for concurrent use.
type Sandbox struct {
	mu       sync.Mutex
	now      core.Time
	entries  []core.Entry
	appended chan struct{} // closed, and replaced, by Append
	fail     error
	series   map[string]*series
	messages []core.Message
	props    map[string]*core.PropertyRecord
	history  []core.AlertRow
	docs     map[string]core.Document
	events   map[string]bool
	groups   map[string][]string // members by group
}

type series struct {
	key    core.SeriesKey
	times  []core.Time
	values []float64
}

// NewSandbox returns an empty sandbox whose clock stands at now.
func NewSandbox(now core.Time) *Sandbox {
	return &Sandbox{now: now, appended: make(chan struct{}), series: map[string]*series{}, props: map[string]*core.PropertyRecord{},
		docs: map[string]core.Document{}, events: map[string]bool{}, groups: map[string][]string{}}
}

// Now is the clock.
func (s *Sandbox) Now() core.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// SetClock moves the clock; it never goes back.
func (s *Sandbox) SetClock(t core.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = max(s.now, t)
}

// Fail makes Ingest and Append return err until it is called with nil.
func (s *Sandbox) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// AddEntity creates an entity with tags and groups.
func (s *Sandbox) AddEntity(e core.Entity, groups ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := json.Marshal(e) // plain values
	s.docs[docKey(core.DocEntity, e.Name)] = core.Document{Kind: core.DocEntity, Key: e.Name, Body: body}
	for _, g := range groups {
		s.groups[g] = append(s.groups[g], e.Name)
	}
}

// PutDocuments changes documents without an entry in the log.
func (s *Sandbox) PutDocuments(changes []core.DocChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(&core.Batch{Documents: changes})
}

// Ingest implements core.Ingester without checks.
func (s *Sandbox) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	if b.Origin.Depth > core.MaxDepth {
		return core.Receipt{}, core.Errorf(core.Invalid, "hop depth above %d", core.MaxDepth)
	}
	return s.Append(ctx, b)
}

// Append implements core.Log.
func (s *Sandbox) Append(_ context.Context, b *core.Batch) (core.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return core.Receipt{}, s.fail
	}
	b.Received = s.now
	e := core.Entry{Position: core.Position(len(s.entries) + 1), Batch: b}
	s.entries = append(s.entries, e)
	s.apply(b)
	close(s.appended)
	s.appended = make(chan struct{})
	return core.Receipt{Position: e.Position, Durability: core.Volatile, Received: b.Received}, nil
}

// Tail implements core.Log.
func (s *Sandbox) Tail(ctx context.Context, p core.Position) iter.Seq2[core.Entry, error] {
	return func(yield func(core.Entry, error) bool) {
		for {
			s.mu.Lock()
			if int(p) >= len(s.entries) {
				s.mu.Unlock()
				return
			}
			e := s.entries[p]
			s.mu.Unlock()
			if err := ctx.Err(); err != nil {
				yield(core.Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
			p = e.Position
		}
	}
}

// Wait implements core.Log.
func (s *Sandbox) Wait(ctx context.Context, p core.Position) error {
	for {
		s.mu.Lock()
		n, appended := len(s.entries), s.appended
		s.mu.Unlock()
		if core.Position(n) > p {
			return nil
		}
		select {
		case <-appended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// End implements core.Log.
func (s *Sandbox) End() core.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return core.Position(len(s.entries))
}

// Forget empties the entry of b, as a restart does with records that are not to be stored.
func (s *Sandbox) Forget(b *core.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.entries {
		if s.entries[i].Batch == b {
			s.entries[i].Batch = &core.Batch{Received: b.Received, Origin: b.Origin}
		}
	}
}

// Prefix returns a sandbox that holds the first n entries of s, with the clock of the last of them: what a crash after it leaves.
func (s *Sandbox) Prefix(n int) *Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := NewSandbox(0)
	maps.Copy(out.groups, s.groups)
	for _, e := range s.entries[:n] {
		out.entries = append(out.entries, e)
		out.now = max(out.now, e.Batch.Received)
		out.apply(e.Batch)
	}
	return out
}

func docKey(kind core.DocKind, key string) string { return string(kind) + "\x00" + key }

func (s *Sandbox) apply(b *core.Batch) {
	for i, ref := range b.Samples.Series {
		if b.Samples.Flags[i]&core.Stored != 0 {
			s.addSample(b.Keys[ref], b.Samples.Times[i], b.Samples.Values[i])
		}
	}
	for _, m := range b.Messages {
		if m.Flags&core.Stored != 0 {
			s.messages = append(s.messages, m.Clone())
		}
	}
	for _, p := range b.Properties {
		s.addProperty(p)
	}
	for _, c := range b.Alerts {
		if !s.events[c.Event] && c.Row != nil {
			s.history = append(s.history, *c.Row)
		}
		s.events[c.Event] = true
	}
	for _, d := range b.Documents {
		key := docKey(d.Kind, d.Key)
		var before []byte
		if old, ok := s.docs[key]; ok {
			before = old.Body
		}
		body, err := d.Apply(before, s.now)
		if err != nil || body == nil {
			delete(s.docs, key)
			continue
		}
		s.docs[key] = core.Document{Kind: d.Kind, Key: d.Key, Body: body}
	}
}

func (s *Sandbox) addSample(k core.SeriesKey, t core.Time, v float64) {
	id := string(k.Append(nil))
	row := s.series[id]
	if row == nil {
		row = &series{key: k.Clone()}
		s.series[id] = row
	}
	i, found := slices.BinarySearch(row.times, t)
	if found {
		row.values[i] = v
		return
	}
	row.times, row.values = slices.Insert(row.times, i, t), slices.Insert(row.values, i, v)
}

func (s *Sandbox) addProperty(p core.Property) {
	id := p.Entity + "\x00" + p.Type + "\x00" + fmt.Sprint(p.Key)
	r := s.props[id]
	if r == nil {
		r = &core.PropertyRecord{PropertyKey: p.PropertyKey.Clone()}
		s.props[id] = r
	}
	r.Time = max(r.Time, p.Time)
	for _, t := range p.Tags {
		r.Tags = slices.DeleteFunc(r.Tags, func(o core.PropertyTag) bool { return o.Name == t.Name })
		if t.Value != "" {
			r.Tags = append(r.Tags, core.PropertyTag{Tag: t, Time: p.Time})
		}
	}
	slices.SortFunc(r.Tags, func(a, b core.PropertyTag) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *Sandbox) entitySelected(f core.EntityFilter, name string) bool {
	if len(f.Names)+len(f.Patterns) > 0 && !slices.Contains(f.Names, name) &&
		!slices.ContainsFunc(f.Patterns, func(p string) bool { return glob.Compile(p).Match(name) }) {
		return false
	}
	if f.Group != "" && !slices.Contains(s.groups[f.Group], name) {
		return false
	}
	if f.Expression == "" {
		return true
	}
	x, err := filter.Compile(filter.Entities, f.Expression)
	if err != nil {
		return false
	}
	e := s.entity(name)
	ok, err := x.Match(filter.EntityEnv{Entity: &e})
	return ok && err == nil
}

func (s *Sandbox) entity(name string) core.Entity {
	e := core.NewEntity(name, s.now)
	if d, ok := s.docs[docKey(core.DocEntity, name)]; ok && json.Unmarshal(d.Body, &e) != nil {
		return core.NewEntity(name, s.now)
	}
	return e
}

func tagsSelected(tags core.Tags, filters []core.TagFilter) bool {
	for _, f := range filters {
		v, ok := tags.Get(f.Name)
		if !ok || !slices.ContainsFunc(f.Patterns, func(p string) bool { return glob.Compile(p).Match(v) }) {
			return false
		}
	}
	return true
}

// selected returns the matching series by key.
func (s *Sandbox) selected(q core.SeriesQuery) []*series {
	var out []*series
	for _, id := range slices.Sorted(maps.Keys(s.series)) {
		r := s.series[id]
		if (q.Metric == "" || q.Metric == r.key.Metric) && s.entitySelected(q.Entities, r.key.Entity) && tagsSelected(r.key.Tags, q.Tags) &&
			(!q.ExactTags || len(r.key.Tags) == len(q.Tags)) {
			out = append(out, r)
		}
	}
	return out
}

// Series implements core.Reader.
func (s *Sandbox) Series(_ context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return func(yield func(core.Block, error) bool) {
		s.mu.Lock()
		var blocks []core.Block
		for _, r := range s.selected(q) {
			from, _ := slices.BinarySearch(r.times, q.Range.Start)
			to, _ := slices.BinarySearch(r.times, q.Range.End)
			if q.Limit > 0 && to-from > q.Limit {
				if q.NewestFirst {
					from = to - q.Limit
				} else {
					to = from + q.Limit
				}
			}
			if from < to {
				blocks = append(blocks, core.Block{Key: r.key, Times: slices.Clone(r.times[from:to]), Values: slices.Clone(r.values[from:to])})
			}
		}
		s.mu.Unlock()
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// Keys implements core.Reader.
func (s *Sandbox) Keys(_ context.Context, q core.SeriesQuery) iter.Seq2[core.KeyInfo, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.KeyInfo
	for _, r := range s.selected(q) {
		out = append(out, core.KeyInfo{Key: r.key, Last: r.times[len(r.times)-1]})
	}
	return all(out)
}

// Messages implements core.Reader.
func (s *Sandbox) Messages(_ context.Context, q core.MessageQuery) iter.Seq2[core.Message, error] {
	match, err := filter.Compile(filter.Messages, cmp.Or(q.Expression, "true"))
	if err != nil {
		return failed[core.Message](err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Message
	for i, m := range s.messages {
		if s.entitySelected(q.Entities, m.Entity) && (q.Type == "" || q.Type == m.Type) && (q.Source == "" || q.Source == m.Source) &&
			tagsSelected(m.Tags, q.Tags) && q.Range.Contains(m.Time) {
			ok, err := match.Match(filter.MessageEnv{Message: &s.messages[i]})
			if err != nil {
				return failed[core.Message](err)
			}
			if ok {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b core.Message) int { return cmp.Compare(b.Time, a.Time) })
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return all(out)
}

// Properties implements core.Reader.
func (s *Sandbox) Properties(_ context.Context, q core.PropertyQuery) iter.Seq2[core.PropertyRecord, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.PropertyRecord
	for _, id := range slices.Sorted(maps.Keys(s.props)) {
		r := s.props[id]
		if s.entitySelected(q.Entities, r.Entity) && (q.Type == "" || q.Type == r.Type) && q.Range.Contains(r.Time) && (!q.ExactKey || r.Key.Equal(q.Key)) {
			out = append(out, *r)
		}
	}
	return all(out)
}

// AlertHistory implements core.Reader.
func (s *Sandbox) AlertHistory(context.Context, core.AlertHistoryQuery) iter.Seq2[core.AlertRow, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.history)
	slices.Reverse(out)
	return all(out)
}

// Documents implements core.Reader.
func (s *Sandbox) Documents(_ context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Document
	for _, id := range slices.Sorted(maps.Keys(s.docs)) {
		if d := s.docs[id]; d.Kind == q.Kind && (q.Key == "" || q.Key == d.Key) {
			out = append(out, d)
		}
	}
	return all(out)
}

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// Entities implements rules.Metadata: it lists the entities that have data or were set.
func (s *Sandbox) Entities(_ context.Context, q core.MetaQuery) iter.Seq2[core.EntityInfo, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.EntityInfo
	for _, name := range s.names(core.DocEntity, func(k core.SeriesKey) string { return k.Entity }) {
		if q.Name == "" || q.Name == name {
			e := s.entity(name)
			last, some := s.newest(func(k core.SeriesKey) bool { return k.Entity == name })
			out = append(out, core.EntityInfo{Entity: &e, Last: last, Inserted: some})
		}
	}
	return all(out)
}

// Metrics implements rules.Metadata.
func (s *Sandbox) Metrics(_ context.Context, q core.MetaQuery) iter.Seq2[core.MetricInfo, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.MetricInfo
	for _, name := range s.names(core.DocMetric, func(k core.SeriesKey) string { return k.Metric }) {
		if q.Name == "" || q.Name == name {
			m, _ := s.metric(name)
			last, some := s.newest(func(k core.SeriesKey) bool { return k.Metric == name })
			out = append(out, core.MetricInfo{Metric: &m, Last: last, Inserted: some})
		}
	}
	return all(out)
}

// names are those of documents of a kind and of series, sorted.
func (s *Sandbox) names(kind core.DocKind, of func(core.SeriesKey) string) []string {
	var out []string
	for _, d := range s.docs {
		if d.Kind == kind {
			out = append(out, d.Key)
		}
	}
	for _, r := range s.series {
		out = append(out, of(r.key))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// newest is the time of the newest sample of some series.
func (s *Sandbox) newest(of func(core.SeriesKey) bool) (last core.Time, some bool) {
	for _, r := range s.series {
		if t := r.times[len(r.times)-1]; of(r.key) && (!some || t > last) {
			last, some = t, true
		}
	}
	return last, some
}

// Metric implements core.Catalog.
func (s *Sandbox) Metric(name string) (core.Metric, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.metric(name)
}

func (s *Sandbox) metric(name string) (core.Metric, bool) {
	d, ok := s.docs[docKey(core.DocMetric, name)]
	m := core.NewMetric(name, s.now)
	return m, ok && json.Unmarshal(d.Body, &m) == nil
}

// Entity implements core.Catalog.
func (s *Sandbox) Entity(name string) (core.Entity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.docs[docKey(core.DocEntity, name)]
	return s.entity(name), ok
}

// TagKnown implements core.Catalog.
func (s *Sandbox) TagKnown(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.series {
		if _, ok := r.key.Tags.Get(name); ok {
			return true
		}
	}
	return false
}

// Member implements core.Catalog.
func (s *Sandbox) Member(entity, group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.groups[group], strings.ToLower(entity))
}
