package rules

import (
	"context"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
)

// loadHistory fills a window that is being created with stored values of its series from before the command, silently. A failure leaves it empty.
func (e *Engine) loadHistory(w *window, cmd *command) {
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: cmd.metric, Entities: core.EntityFilter{Names: []string{cmd.entity}},
		Range: core.Range{Start: core.MinTime, End: cmd.time}, NewestFirst: true, Limit: w.rule.Window.MaxSamples}
	for _, t := range w.tags {
		q.Tags = append(q.Tags, core.TagFilter{Name: t.Name, Patterns: []string{glob.Escape(t.Value)}})
	}
	if w.rule.Window.Timed() {
		q.Range.Start = max(core.MinTime, cmd.received-w.rule.Window.Span())
	} else {
		q.Limit = w.rule.Window.Count
	}
	q.Limit = max(1, min(q.Limit, e.limits.samples-e.total.samples)) // what a cap leaves out is what the next command would evict
	ev := w.rule.compiled.ev
	ev.begin(w, cmd, cmd.received)
	err := ev.reading(func(ctx context.Context, r core.Reader) error {
		for b, err := range r.Series(ctx, q) {
			if err != nil {
				return err
			}
			for i, t := range b.Times {
				w.add(t, b.Values[i], q.Limit)
			}
		}
		return nil
	})
	if err != nil {
		ev.report(err)
	}
}

// loadProperty gives a window of a property rule the record as it was before the command. What the command itself wrote is already stored, so only tags
// that are older than it count.
func (e *Engine) loadProperty(w *window, cmd *command) {
	q := core.PropertyQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{cmd.entity}}, Type: cmd.typ, Key: cmd.keys, ExactKey: true,
		Range: core.AllTime}
	ev := w.rule.compiled.ev
	ev.begin(w, cmd, cmd.received)
	err := ev.reading(func(ctx context.Context, r core.Reader) error {
		for p, err := range r.Properties(ctx, q) {
			if err != nil {
				return err
			}
			for _, t := range p.Tags {
				if t.Time < cmd.time {
					w.current = append(w.current, t.Tag)
				}
			}
		}
		return nil
	})
	if err != nil {
		ev.report(err)
		return
	}
	w.current = slices.Clip(w.current.Clone().Normal())
}
