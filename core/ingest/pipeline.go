// Package ingest is the only writer of the database. Every batch, from whatever door, passes three steps:
//
//	accept     names and values in their stored form, limits, settings of metrics and entities   normal.go samples.go records.go
//	authorise  roles, and write permission on each entity                                       authorise.go
//	append     the log takes the batch, and the rule engine gets a moment to react               pipeline.go
//
// It is everything or nothing: the first fault refuses the batch. Records that settings tell to drop are no fault, they are left out.
package ingest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// webhookDoor is the door of webhook messages (see package webhook).
const webhookDoor core.Door = "webhook"

const (
	// defaultRulesWait is long enough for an engine that keeps up and short enough not to be felt when it does not.
	defaultRulesWait = 250 * time.Millisecond
	maxTags          = 1024
)

// Options of a pipeline. The zero value is the default.
type Options struct {
	Now        func() core.Time // nil: the clock of the system
	RulesWait  time.Duration    // how long an insert waits for the rule engine; 0 = 250 ms, negative = not at all
	MaxRecords int              // of one batch; 0 = no limit
	Filter     filter.Compiler  // compiles the persistence filters of metrics
	Logger     *slog.Logger     // nil: no log
}

// Pipeline implements core.Ingester. It is safe for concurrent use once Watch has been called.
type Pipeline struct {
	log     core.Log
	catalog core.Catalog
	opts    Options
	passer  core.Passer
	filters filterCache
	scratch sync.Pool // of *acceptance

	counters counters
}

// New returns the pipeline that writes to log.
func New(log core.Log, catalog core.Catalog, opts Options) *Pipeline {
	if opts.Now == nil {
		opts.Now = func() core.Time { return core.TimeOf(time.Now()) }
	}
	if opts.RulesWait == 0 {
		opts.RulesWait = defaultRulesWait
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pipeline{log: log, catalog: catalog, opts: opts}
	p.filters.compiler = opts.Filter
	return p
}

// Watch sets the rule engine that inserts wait for. It must be called before the first Ingest.
func (p *Pipeline) Watch(engine core.Passer) { p.passer = engine }

// Ingest takes b as a whole or not at all. A batch whose records were all dropped by settings is acknowledged and not appended. The batch belongs to
// the pipeline from the call on, and is changed by it.
func (p *Pipeline) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	if err := p.check(b); err != nil {
		return core.Receipt{}, err
	}
	needs, sent := rolesOf(b), sentIn(b)
	a := p.acceptance(b)
	defer p.release(a)
	if err := a.accept(); err != nil {
		p.counters.refuse(sent)
		return core.Receipt{}, err
	}
	if err := a.authorise(needs); err != nil {
		return core.Receipt{}, err
	}
	if b.Len() == 0 {
		p.counters.count(b, sent, &a.counts)
		return core.Receipt{Position: p.log.End(), Durability: core.Volatile, Received: a.now}, nil
	}
	receipt, err := p.log.Append(ctx, b)
	if err != nil {
		return core.Receipt{}, err
	}
	p.counters.count(b, sent, &a.counts)
	p.wait(ctx, receipt.Position, b)
	return receipt, nil
}

// check refuses what no step should have to look at.
func (p *Pipeline) check(b *core.Batch) error {
	if b.Origin.Depth > core.MaxDepth {
		return core.Errorf(core.Invalid, "record was derived by rules from derived records more than %d times: the rules feed each other", core.MaxDepth)
	}
	if n := b.Len(); p.opts.MaxRecords > 0 && n > p.opts.MaxRecords {
		return core.Errorf(core.TooLarge, "batch has %d records: at most %d are allowed, send them in several requests", n, p.opts.MaxRecords)
	}
	return columnsFit(b)
}

// columnsFit checks the invariants of the sample columns, which a door may have broken.
func columnsFit(b *core.Batch) error {
	s := &b.Samples
	n := s.Len()
	ok := len(s.Series) == n && len(s.Values) == n && len(s.Flags) == n &&
		ascending(len(s.Texts), n, func(i int) uint32 { return s.Texts[i].Index }) &&
		ascending(len(s.Decimals), n, func(i int) uint32 { return s.Decimals[i].Index }) &&
		ascending(len(s.Versions), n, func(i int) uint32 { return s.Versions[i].Index })
	for _, ref := range s.Series {
		ok = ok && int(ref) < len(b.Keys)
	}
	if !ok {
		return core.Errorf(core.Invalid, "sample columns do not fit together: %d times, %d values, %d series", n, len(s.Values), len(b.Keys))
	}
	return nil
}

// ascending reports whether the indexes of a side column ascend and stay below limit.
func ascending(n, limit int, index func(int) uint32) bool {
	for i := range n {
		if at := index(i); int(at) >= limit || i > 0 && at <= index(i-1) {
			return false
		}
	}
	return true
}

// wait gives the rule engine its moment. The batch is stored by now, so that whatever happens here is no error of the insert. What rules and the server
// write themselves never waits: the engine would wait for itself.
func (p *Pipeline) wait(ctx context.Context, at core.Position, b *core.Batch) {
	door := b.Origin.Door
	if p.passer == nil || p.opts.RulesWait < 0 || door == core.DoorRule || door == core.DoorSystem {
		return
	}
	limit := &patience{Context: ctx, span: p.opts.RulesWait}
	defer limit.end()
	if err := p.passer.Passed(limit, at, b); err != nil && core.CodeOf(err) != core.Canceled {
		p.opts.Logger.Warn("rule engine did not confirm a batch", "position", uint64(at), "error", err)
	}
}
