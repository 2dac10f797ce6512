// Package memstore is the oracle: a complete [core.Store] made of maps and sort, slow and obvious. It says what every backend must answer; the
// suite core/storetest compares others with it. Nothing in it is clever, and nothing in production uses it.
//
// The parts of a batch take effect in one order: documents, series deletes, property deletes, samples, messages, properties, alerts. A batch can
// therefore delete and rewrite at once, and a metric that a batch describes is described before its first sample.
package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Store is the oracle. Its zero value is not usable; see New. Now and Zone are what expressions read dates with; set them before the first use.
type Store struct {
	Now  func() core.Time // nil: an expression with a relative date is an error
	Zone *time.Location   // nil = UTC

	mu         sync.RWMutex
	series     map[string]*series // by canonical key; a series without samples does not exist
	created    uint64             // series so far
	documents  map[core.DocKind]map[string][]byte
	messages   []core.Message // in order of arrival
	properties map[string]*core.PropertyRecord
	history    []core.AlertRow          // in order of arrival
	versions   map[string][]core.Entity // of each entity, the latest last
	events     map[string]bool          // of every alert change that was stored
}

type series struct {
	key     core.SeriesKey
	serial  uint64
	samples map[core.Time][]sample // versions, the latest last; a single one unless the metric keeps versions
}

type sample struct {
	value   float64 // NaN = no number
	text    *string
	decimal *core.Decimal
	version *core.VersionAt
}

// New returns an empty store.
func New() *Store {
	return &Store{series: map[string]*series{}, documents: map[core.DocKind]map[string][]byte{}, properties: map[string]*core.PropertyRecord{},
		versions: map[string][]core.Entity{}, events: map[string]bool{}}
}

// Apply takes the batch as a whole or, with an error, nothing of it. A batch whose alert changes were all stored before is a replay: it is
// skipped entirely.
func (s *Store) Apply(_ context.Context, e core.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := e.Batch
	if err := checkShape(b); err != nil {
		return err
	}
	if s.replayed(b.Alerts) {
		return nil
	}
	if err := s.checkDocuments(b); err != nil {
		return err
	}
	for _, c := range b.Documents {
		s.change(c, b.Received)
	}
	for _, d := range b.Series {
		s.deleteSamples(d)
	}
	for _, k := range b.Removed {
		if k.Type != core.EntityTagsType {
			delete(s.properties, recordKey(k))
		}
	}
	for i := range b.Samples.Len() {
		s.write(b, i)
	}
	for _, m := range b.Messages {
		if m.Flags&core.Stored != 0 {
			s.createEntity(m.Entity, b.Received)
			s.keepMessage(m.Clone())
		}
	}
	for _, p := range b.Properties {
		if p.Flags&core.Stored != 0 {
			s.merge(p, b.Received) // before the entity is made: tags that it comes with are no change of it
			s.createEntity(p.Entity, b.Received)
		}
	}
	for _, c := range b.Alerts {
		s.keepChange(c)
	}
	return nil
}

func checkShape(b *core.Batch) error {
	s := &b.Samples
	n := s.Len()
	bad := core.Errorf(core.Invalid, "malformed batch: sample columns disagree")
	if len(s.Series) != n || len(s.Values) != n || len(s.Flags) != n {
		return bad
	}
	for _, ref := range s.Series {
		if uint64(ref) >= uint64(len(b.Keys)) {
			return bad
		}
	}
	return nil
}

func (s *Store) replayed(changes []core.AlertChange) bool {
	for _, c := range changes {
		if c.Event == "" || !s.events[c.Event] {
			return false
		}
	}
	return len(changes) > 0
}

// checkDocuments applies the document changes to a copy of what they touch, to see whether one of them fails.
func (s *Store) checkDocuments(b *core.Batch) error {
	type name struct {
		kind core.DocKind
		key  string
	}
	after := map[name][]byte{}
	for _, c := range b.Documents {
		n := name{c.Kind, c.Key}
		before, ok := after[n]
		if !ok {
			before = s.documents[c.Kind][c.Key]
		}
		body, err := c.Apply(before, b.Received)
		if err == nil && body != nil {
			err = checkBody(c.Kind, c.Key, body)
		}
		if err != nil {
			return err
		}
		if c.Op == core.DocRename {
			n.key, err = c.NewName(func(key string) bool {
				if body, ok := after[name{c.Kind, key}]; ok {
					return body != nil
				}
				return s.documents[c.Kind][key] != nil
			})
			if err != nil {
				return err
			}
			after[name{c.Kind, c.Key}] = nil
		}
		after[n] = body
	}
	return nil
}

func checkBody(kind core.DocKind, key string, body []byte) error {
	var into any
	switch kind {
	case core.DocMetric:
		into = new(core.Metric)
	case core.DocEntity:
		into = new(core.Entity)
	case core.DocGroup:
		into = new(core.Group)
	case core.DocCollection:
		into = new(core.Collection)
	default:
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return core.Wrap(core.Invalid, err, "malformed "+string(kind)+" "+key)
	}
	return nil
}

// change applies one document change that checkDocuments has let pass. Deleting an entity or a metric deletes its data; alert history stays.
func (s *Store) change(c core.DocChange, now core.Time) {
	body, err := c.Apply(s.documents[c.Kind][c.Key], now)
	if err != nil {
		return
	}
	if c.Op == core.DocRename {
		s.rename(c, body, now)
		return
	}
	if body != nil {
		s.put(c.Kind, strings.Clone(c.Key), body)
		return
	}
	delete(s.documents[c.Kind], c.Key)
	switch c.Kind {
	case core.DocMetric:
		s.dropSeries(func(k core.SeriesKey) bool { return k.Metric == c.Key })
	case core.DocEntity:
		s.forgetEntity(c.Key, now)
	}
}

func (s *Store) put(kind core.DocKind, key string, body []byte) {
	if s.documents[kind] == nil {
		s.documents[kind] = map[string][]byte{}
	}
	s.documents[kind][key] = body
	if kind == core.DocEntity {
		s.keepVersion(key)
	}
}

func (s *Store) dropSeries(match func(core.SeriesKey) bool) {
	for id, one := range s.series {
		if match(one.key) {
			delete(s.series, id)
		}
	}
}

func (s *Store) forgetEntity(entity string, now core.Time) {
	delete(s.versions, entity)
	s.dropSeries(func(k core.SeriesKey) bool { return k.Entity == entity })
	s.messages = slices.DeleteFunc(s.messages, func(m core.Message) bool { return m.Entity == entity })
	for id, r := range s.properties {
		if r.Entity == entity {
			delete(s.properties, id)
		}
	}
	s.replaceMember(entity, "", now)
}

// replaceMember puts another entity in the place of one in the groups that list it; "" = none.
func (s *Store) replaceMember(entity, by string, now core.Time) {
	for key := range s.documents[core.DocGroup] {
		group := s.group(key)
		if rest := slices.DeleteFunc(slices.Clone(group.Members), func(m string) bool { return m == entity }); len(rest) < len(group.Members) {
			if i, found := slices.BinarySearch(rest, by); by != "" && !found {
				rest = slices.Insert(rest, i, by)
			}
			patch, _ := json.Marshal(map[string]any{"members": rest}) // a list of texts: cannot fail
			s.change(core.DocChange{Kind: core.DocGroup, Key: key, Op: core.DocPatch, Body: patch}, now)
		}
	}
}

func (s *Store) deleteSamples(d core.SeriesDelete) {
	id := string(d.Key.Append(nil))
	one := s.series[id]
	if one == nil {
		return
	}
	for t := range one.samples {
		if d.Range.Contains(t) {
			delete(one.samples, t)
		}
	}
	if len(one.samples) == 0 {
		delete(s.series, id)
	}
}

func (s *Store) createEntity(name string, now core.Time) {
	if _, ok := s.documents[core.DocEntity][name]; !ok {
		body, _ := json.Marshal(core.NewEntity(name, now)) // plain struct: cannot fail
		s.put(core.DocEntity, strings.Clone(name), body)
	}
}

// createMetric makes a metric as its first sample does: a sample with version fields makes a versioned one.
func (s *Store) createMetric(name string, version *core.VersionAt, now core.Time) {
	if _, ok := s.documents[core.DocMetric][name]; !ok {
		m := core.NewMetric(name, now)
		m.Versioned = version != nil
		body, _ := json.Marshal(m) // plain struct: cannot fail
		s.put(core.DocMetric, strings.Clone(name), body)
	}
}

// write stores sample i of the batch.
func (s *Store) write(b *core.Batch, i int) {
	flags := b.Samples.Flags[i]
	if flags&core.Stored == 0 {
		return
	}
	key := b.Keys[b.Samples.Series[i]]
	in := incoming(b, i)
	s.createEntity(key.Entity, b.Received)
	s.createMetric(key.Metric, in.version, b.Received)
	id := string(key.Append(nil))
	one := s.series[id]
	if one == nil {
		s.created++
		one = &series{key: key.Clone(), serial: s.created, samples: map[core.Time][]sample{}}
		s.series[id] = one
	}
	t := b.Samples.Times[i]
	if m, _ := s.metric(key.Metric); m.Versioned {
		if in.version == nil {
			in.version = &core.VersionAt{}
		}
		if in.version.Written == 0 {
			in.version.Written = b.Received
		}
		one.samples[t] = addVersion(one.samples[t], in)
		return
	}
	in.version = nil
	if old := one.samples[t]; len(old) > 0 {
		in = combine(old[len(old)-1], in, flags)
	}
	one.samples[t] = []sample{in}
}

// addVersion puts a version in its place: by the time it was written, then in order of arrival. What was stored while the metric kept no versions is
// older than all of them. Every version stands alone.
func addVersion(all []sample, in sample) []sample {
	all = append(slices.Clone(all), in)
	slices.SortStableFunc(all, func(a, b sample) int {
		if a.version == nil || b.version == nil {
			return cmp.Compare(order(a), order(b))
		}
		return cmp.Compare(a.version.Written, b.version.Written)
	})
	return all
}

// order is 0 for a sample from before its metric kept versions, else 1.
func order(s sample) int {
	if s.version == nil {
		return 0
	}
	return 1
}

// incoming gathers what the batch says of sample i.
func incoming(b *core.Batch, i int) sample {
	in := sample{value: math.NaN()}
	if b.Samples.Flags[i]&core.HasValue != 0 {
		in.value = b.Samples.Values[i]
	}
	for _, at := range b.Samples.Texts {
		if int(at.Index) == i {
			text := strings.Clone(at.Text)
			in.text = &text
		}
	}
	for _, at := range b.Samples.Decimals {
		if int(at.Index) == i {
			in.decimal = &at.Decimal
		}
	}
	for _, at := range b.Samples.Versions {
		if int(at.Index) == i {
			in.version = &core.VersionAt{Source: strings.Clone(at.Source), Status: strings.Clone(at.Status), Written: at.Written}
		}
	}
	return in
}

// textSeparator joins appended texts.
const textSeparator = ";\n"

// combine is what a second write of one time gives: a number alone keeps the text; a text alone resets the number, except when it is appended.
func combine(old, in sample, flags core.Flags) sample {
	if in.text == nil {
		in.text = old.text
		return in
	}
	if flags&core.AppendText == 0 {
		return in
	}
	if flags&core.HasValue == 0 {
		in.value, in.decimal = old.value, old.decimal
	}
	if old.text != nil {
		text := *old.text
		if !slices.Contains(strings.Split(text, textSeparator), *in.text) {
			text += textSeparator + *in.text
		}
		in.text = &text
	}
	return in
}

func sameMessage(a, b core.Message) bool {
	return a.Time == b.Time && a.Entity == b.Entity && a.Type == b.Type && a.Source == b.Source && a.Severity == b.Severity &&
		a.Text == b.Text && a.Tags.Equal(b.Tags)
}

// keepMessage appends m unless a message with the same fields is there.
func (s *Store) keepMessage(m core.Message) {
	if !slices.ContainsFunc(s.messages, func(o core.Message) bool { return sameMessage(m, o) }) {
		s.messages = append(s.messages, m)
	}
}

func recordKey(k core.PropertyKey) string {
	return string(core.SeriesKey{Metric: k.Entity, Entity: k.Type, Tags: k.Key}.Append(nil))
}

// merge applies one property update. An update older than a stored tag leaves that tag alone; an empty value removes the tag.
func (s *Store) merge(p core.Property, now core.Time) {
	if p.Type == core.EntityTagsType {
		s.mergeEntityTags(p, now)
		return
	}
	id := recordKey(p.PropertyKey)
	r := s.properties[id]
	if r == nil {
		r = &core.PropertyRecord{PropertyKey: p.PropertyKey.Clone()}
		s.properties[id] = r
	}
	for _, tag := range p.Tags {
		i := slices.IndexFunc(r.Tags, func(o core.PropertyTag) bool { return o.Name == tag.Name })
		switch {
		case i >= 0 && r.Tags[i].Time > p.Time:
		case i >= 0 && tag.Value == "":
			r.Tags = slices.Delete(r.Tags, i, i+1)
		case i >= 0:
			r.Tags[i] = core.PropertyTag{Tag: core.Tag{Name: r.Tags[i].Name, Value: strings.Clone(tag.Value)}, Time: p.Time}
		case tag.Value != "":
			r.Tags = append(r.Tags, core.PropertyTag{Tag: core.Tags{tag}.Clone()[0], Time: p.Time})
		}
	}
	if len(r.Tags) == 0 {
		delete(s.properties, id)
		return
	}
	slices.SortFunc(r.Tags, func(a, b core.PropertyTag) int { return strings.Compare(a.Name, b.Name) })
	r.Time = slices.MaxFunc(r.Tags, func(a, b core.PropertyTag) int { return cmp.Compare(a.Time, b.Time) }).Time
}

// mergeEntityTags turns an update of the reserved type into a patch of the entity: keys and tags alike become tags of the entity.
func (s *Store) mergeEntityTags(p core.Property, now core.Time) {
	entity, _ := s.entity(p.Entity)
	tags := map[string]any{}
	for _, tag := range slices.Concat(p.Key, p.Tags) {
		switch old, ok := entity.Tags[tag.Name]; {
		case tag.Value == "" && ok:
			tags[tag.Name] = nil
		case tag.Value != "" && tag.Value != old:
			tags[tag.Name] = tag.Value
		}
	}
	if len(tags) == 0 {
		return
	}
	patch, _ := json.Marshal(map[string]any{"tags": tags}) // texts: cannot fail
	s.change(core.DocChange{Kind: core.DocEntity, Key: p.Entity, Op: core.DocPatch, Body: patch}, now)
}

// keepChange stores the history row of a change that is not stored yet.
func (s *Store) keepChange(c core.AlertChange) {
	if c.Event != "" {
		if s.events[c.Event] {
			return
		}
		s.events[strings.Clone(c.Event)] = true
	}
	if c.Row != nil {
		s.history = append(s.history, cloneRow(*c.Row))
	}
}

func cloneRow(r core.AlertRow) core.AlertRow {
	for _, text := range []*string{&r.Entity, &r.Metric, &r.Rule, &r.Text, &r.Condition, &r.Filter, &r.Window, &r.Schedule} {
		*text = strings.Clone(*text)
	}
	r.Type, r.Tags = core.Status(strings.Clone(string(r.Type))), r.Tags.Clone()
	return r
}
