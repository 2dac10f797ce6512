package ingest

import (
	"encoding/json"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// work says what a sample needs beyond the check of its time.
type work uint8

const (
	drop      work = 1 << iota // metric or entity is disabled
	unstored                   // metric is not persistent
	limited                    // metric has an action for values out of its limits
	filtered                   // metric has a persistence filter
	versioned                  // metric keeps versions
	decimal                    // metric is exact
	derived                    // of a forecast: nothing that rules watch
	exotic    = drop | unstored | limited | filtered | derived
)

// metricState is what the samples of one metric need to know of it.
type metricState struct {
	name       string
	known      bool
	work       work
	action     core.InvalidAction
	min, max   *float64
	filter     *filter.Expr
	outOfRange int // values that RAISE_ERROR will report
}

// entityState is what the records of one entity need to know of it.
type entityState struct {
	name    string
	known   bool
	enabled bool
}

// keyState joins both for one series key.
type keyState struct {
	metric uint32 // index into acceptance.metrics
	work   work
}

// acceptance is the first step on one batch. Each distinct name is looked up once. The struct is pooled: a big batch costs its maps only once.
type acceptance struct {
	*Pipeline
	b   *core.Batch
	now core.Time

	metrics       []metricState
	entities      []entityState
	metricByName  map[string]uint32
	entityByName  map[string]uint32
	changes       map[document][]int // of documents, by their place in the batch
	indexed       bool               // changes is filled
	lastMetric    int                // index of the state asked for last
	lastEntity    int
	keys          []keyState
	dropped       []bool   // by sample; empty = none
	clamped       []uint32 // samples that TRANSFORM changed, ascending
	newlyVersions []uint32 // unknown metrics whose first sample has version fields
	counts        droppedSamples
}

func (p *Pipeline) acceptance(b *core.Batch) *acceptance {
	a, ok := p.scratch.Get().(*acceptance)
	if !ok {
		a = &acceptance{metricByName: make(map[string]uint32), entityByName: make(map[string]uint32), changes: make(map[document][]int)}
	}
	a.Pipeline, a.b, a.now = p, b, p.opts.Now()
	return a
}

// release gives the memory back, without what it held of the request.
func (p *Pipeline) release(a *acceptance) {
	clear(a.metricByName)
	clear(a.entityByName)
	clear(a.changes)
	a.indexed = false
	clear(a.metrics)
	clear(a.entities)
	a.metrics, a.entities, a.keys = a.metrics[:0], a.entities[:0], a.keys[:0]
	a.dropped, a.clamped, a.newlyVersions = a.dropped[:0], a.clamped[:0], a.newlyVersions[:0]
	a.lastMetric, a.lastEntity = 0, 0
	a.counts = droppedSamples{}
	a.b = nil
	p.scratch.Put(a)
}

// accept brings every record into its stored form, or refuses the batch.
func (a *acceptance) accept() error {
	// Documents come last: properties of the reserved type turn into some.
	for _, step := range []func() error{a.acceptKeys, a.acceptSamples, a.acceptMessages, a.acceptProperties, a.acceptDeletes, a.acceptDocuments} {
		if err := step(); err != nil {
			return err
		}
	}
	a.createVersioned()
	a.report()
	return nil
}

// metric returns the index of a metric's state.
func (a *acceptance) metric(name string) uint32 {
	// Keys come metric by metric, or entity by entity with the same metrics in turn: the metric before or the one after it is the most likely.
	for _, i := range [...]int{a.lastMetric, a.lastMetric + 1, 0} {
		if i < len(a.metrics) && a.metrics[i].name == name {
			a.lastMetric = i
			return uint32(i)
		}
	}
	if i, ok := a.metricByName[name]; ok {
		a.lastMetric = int(i)
		return i
	}
	s := metricState{name: name} // an unknown metric gets the defaults, under which nothing has to be done
	m, known := a.catalog.Metric(name)
	if m, known = settled(a, core.DocMetric, name, m, known); known {
		s.known = true
		a.settings(&s, m)
	}
	i := uint32(len(a.metrics))
	a.metrics = append(a.metrics, s)
	a.metricByName[name] = i
	a.lastMetric = int(i)
	return i
}

// settings reads what of a metric's document matters on the way in.
func (a *acceptance) settings(s *metricState, m core.Metric) {
	if !m.Enabled {
		s.work |= drop
	}
	if !m.Persistent {
		s.work |= unstored
	}
	if m.Versioned {
		s.work |= versioned
	}
	if m.DataType == core.TypeDecimal {
		s.work |= decimal
	}
	if m.Filter != "" {
		if s.filter = a.filters.compile(m.Filter); s.filter != nil {
			s.work |= filtered
		}
	}
	s.action, s.min, s.max = m.InvalidAction, m.MinValue, m.MaxValue
	statusOfNaN := s.action == core.InvalidSetStatus && m.Versioned // also for values without limits
	if s.action != "" && s.action != core.InvalidNone && (s.min != nil || s.max != nil || statusOfNaN) {
		s.work |= limited
	}
}

// entity returns the state of an entity.
func (a *acceptance) entity(name string) *entityState {
	for _, i := range [...]int{a.lastEntity, a.lastEntity + 1, 0} {
		if i < len(a.entities) && a.entities[i].name == name {
			a.lastEntity = i
			return &a.entities[i]
		}
	}
	if i, ok := a.entityByName[name]; ok {
		a.lastEntity = int(i)
		return &a.entities[i]
	}
	e, known := a.catalog.Entity(name)
	e, exists := settled(a, core.DocEntity, name, e, known) // who may write depends on what is stored
	a.lastEntity = len(a.entities)
	a.entityByName[name] = uint32(a.lastEntity)
	a.entities = append(a.entities, entityState{name: name, known: known, enabled: e.Enabled || !exists})
	return &a.entities[len(a.entities)-1]
}

// acceptKeys normalises the key table once per distinct key. Keys that become equal by that are joined.
func (a *acceptance) acceptKeys() error {
	b := a.b
	changed, err := normalKeys(b.Keys)
	if err != nil {
		return err
	}
	if changed {
		joinKeys(b)
	}
	for i := range b.Keys {
		k := &b.Keys[i]
		m := a.metric(k.Metric)
		w := a.metrics[m].work
		if !a.entity(k.Entity).enabled {
			w |= drop
		}
		if !k.IsMeasured() {
			w |= derived
		}
		a.keys = append(a.keys, keyState{metric: m, work: w})
	}
	return nil
}

// joinKeys rebuilds the key table of a batch so that each key is in it once.
func joinKeys(b *core.Batch) {
	var table core.Batch
	refs := make([]uint32, len(b.Keys))
	for i, k := range b.Keys {
		refs[i] = table.Ref(k)
	}
	b.Keys = table.Keys
	for i, ref := range b.Samples.Series {
		b.Samples.Series[i] = refs[ref]
	}
}

// createVersioned makes the metrics versioned whose first sample came with version fields.
func (a *acceptance) createVersioned() {
	for _, m := range a.newlyVersions {
		a.b.Documents = append(a.b.Documents, core.DocChange{Kind: core.DocMetric, Key: a.metrics[m].name, Op: core.DocPatch, Body: []byte(`{"versioned":true}`)})
	}
}

// report logs values outside their limits, once a metric and batch.
func (a *acceptance) report() {
	for i := range a.metrics {
		if m := &a.metrics[i]; m.outOfRange > 0 {
			a.opts.Logger.Error("values outside the limits of their metric", "metric", m.name, "values", m.outOfRange, "user", a.b.Origin.User)
		}
	}
}

// entityTags makes the change of an entity's tags that a record of the reserved property type stands for. Keys and tags both are tags; an empty value
// deletes.
func entityTags(p core.Property) (core.DocChange, error) {
	tags := make(map[string]*string, len(p.Key)+len(p.Tags))
	for _, list := range []core.Tags{p.Key, p.Tags} {
		for _, t := range list {
			tags[t.Name] = nil
			if t.Value != "" {
				tags[t.Name] = &t.Value
			}
		}
	}
	body, err := json.Marshal(map[string]any{"tags": tags})
	if err != nil {
		return core.DocChange{}, core.Wrap(core.Internal, err, "cannot write entity tags")
	}
	return core.DocChange{Kind: core.DocEntity, Key: p.Entity, Op: core.DocPatch, Body: body}, nil
}
