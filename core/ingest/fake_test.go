package ingest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
)

const now core.Time = 1620036000000

// fakeLog keeps what it is given.
type fakeLog struct {
	batches []*core.Batch
	err     error
}

func (l *fakeLog) Append(_ context.Context, b *core.Batch) (core.Receipt, error) {
	if l.err != nil {
		return core.Receipt{}, l.err
	}
	l.batches = append(l.batches, b)
	return core.Receipt{Position: core.Position(len(l.batches)), Durability: core.Synced, Received: now}, nil
}

func (l *fakeLog) Tail(context.Context, core.Position) iter.Seq2[core.Entry, error] {
	return func(func(core.Entry, error) bool) {}
}
func (l *fakeLog) Wait(context.Context, core.Position) error { return errors.New("not used") }
func (l *fakeLog) End() core.Position                        { return core.Position(len(l.batches)) }

// fakeCatalog knows what is in its maps, and counts questions.
type fakeCatalog struct {
	metrics  map[string]core.Metric
	entities map[string]core.Entity
	groups   map[string][]string // entity -> groups
	lookups  int
}

func (c *fakeCatalog) Metric(name string) (core.Metric, bool) {
	c.lookups++
	m, ok := c.metrics[name]
	return m, ok
}

func (c *fakeCatalog) Entity(name string) (core.Entity, bool) {
	c.lookups++
	e, ok := c.entities[name]
	return e, ok
}

func (c *fakeCatalog) TagKnown(string) bool { return false }

func (c *fakeCatalog) Member(entity, group string) bool {
	for _, g := range c.groups[entity] {
		if g == group {
			return true
		}
	}
	return false
}

// fixture is a pipeline over fakes.
type fixture struct {
	log     fakeLog
	catalog fakeCatalog
	pipe    *Pipeline
}

func newFixture(opts Options) *fixture {
	f := &fixture{catalog: fakeCatalog{metrics: map[string]core.Metric{}, entities: map[string]core.Entity{}, groups: map[string][]string{}}}
	opts.Now = func() core.Time { return now }
	f.pipe = New(&f.log, &f.catalog, opts)
	return f
}

func (f *fixture) metric(name string, change func(m *core.Metric)) {
	m := core.NewMetric(name, 0)
	change(&m)
	f.catalog.metrics[name] = m
}

// ingest sends a batch as the administrator over HTTP and returns what the log got, nil for nothing.
func (f *fixture) ingest(t *testing.T, b *core.Batch) (*core.Batch, error) {
	t.Helper()
	if b.Origin.Door == "" {
		b.Origin = core.Origin{User: "admin", Door: core.DoorHTTP, Grants: core.SystemGrants}
	}
	before := len(f.log.batches)
	_, err := f.pipe.Ingest(t.Context(), b)
	if len(f.log.batches) == before {
		return nil, err
	}
	return f.log.batches[before], err
}

func (f *fixture) mustIngest(t *testing.T, b *core.Batch) *core.Batch {
	t.Helper()
	got, err := f.ingest(t, b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantError(t *testing.T, err error, code core.Code, text string) {
	t.Helper()
	var e *core.Error
	if !errors.As(err, &e) || e.Code != code || text != "" && e.Text != text {
		t.Errorf("got error %v, want code %v and text %q", err, code, text)
	}
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(core.Batch{}), cmpopts.EquateEmpty(),
		cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" {
		t.Errorf("want(-) got(+):\n%s", d)
	}
}

// sample adds one sample and returns its index.
func sample(b *core.Batch, metric string, at core.Time, v float64) uint32 {
	return uint32(b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: "e"}), at, v))
}
