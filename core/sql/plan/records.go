package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// record is what expansions ask of a message, a property record or an alert.
type record struct {
	core.SeriesKey           // the entity and the tags; the metric of an alert
	key            core.Tags // of a property
}

// selects fills what the conditions of a table of records imply, so that less is read.
func (b *binder) selects(op *Table, t *table) {
	op.Range = core.AllTime
	switch n := len(t.intervals); {
	case n == 0:
		op.Range = core.Range{}
	default:
		op.Range = core.Range{Start: t.intervals[0].Start, End: t.intervals[n-1].End}
	}
	named := SourceEntity
	if t.kind == metricTable {
		named = SourceMetric
	}
	op.Names = b.exact(t.filter, func(r ref) bool { return r.source.Kind == named }, lower)
	if t.kind == messageTable || t.kind == propertyTable {
		op.Types = b.exact(t.filter, func(r ref) bool { return r.source.Kind == SourceRecord && r.source.Name == "type" }, func(s string) string { return s })
	}
}

// records calls each for the records that the conditions on entities, types, times and tags of a table select.
func (b *binder) records(table int, each func(record)) error {
	t := b.tables[table]
	var op Table
	b.selects(&op, t)
	if len(t.intervals) == 0 || op.Names != nil && len(op.Names) == 0 {
		return nil
	}
	terms := b.narrowed(table)
	test, err := b.keyTest(table, terms)
	if err != nil {
		return err
	}
	var block []record
	flush := func() error {
		keys := make([]core.SeriesKey, len(block))
		for i := range block {
			keys[i] = block[i].SeriesKey
		}
		kept, err := test(keys)
		for i := range block {
			if err == nil && kept[i] {
				each(block[i])
			}
		}
		block = block[:0]
		return err
	}
	take := func(n record, kind string) error {
		if op.Types != nil && !slices.Contains(op.Types, kind) {
			return nil
		}
		if len(terms) == 0 {
			each(n)
			return nil
		}
		if block = append(block, record{n.Clone(), n.key.Clone()}); len(block) < keyBlock {
			return nil
		}
		return flush()
	}
	if err := b.eachRecord(t, &op, take); err != nil {
		return err
	}
	return flush()
}

// eachName calls each for the entities or metrics whose rows of a table satisfy its conditions, as far as these are known: placeholders are not.
func (b *binder) eachName(table int, kind SourceKind, each func(name string)) error {
	if b.Names == nil {
		return b.tables[table].from.Errorf("the names of '%s' are not available here", b.tables[table].name)
	}
	sc := b.probe()
	t := sc.tables[table]
	t.filter = slices.DeleteFunc(slices.Concat(t.filter, t.outer), func(term ast.Expr) bool { return contains(term, isPlaceholder) })
	t.columns = []Source{{Kind: kind, Type: column.String}}
	op, err := sc.records(table)
	if err != nil {
		return err
	}
	return b.Names(b.ctx, &Query{Root: op, Env: b.env, notes: sc.notes}, each)
}

// eachRecord reads a table of records, until take returns an error.
func (b *binder) eachRecord(t *table, op *Table, take func(n record, kind string) error) error {
	entities := core.EntityFilter{Names: op.Names}
	kind := ""
	if len(op.Types) == 1 {
		kind = op.Types[0]
	}
	switch t.kind {
	case messageTable:
		for m, err := range b.Reader.Messages(b.ctx, core.MessageQuery{Scope: b.Scope, Entities: entities, Type: kind, Range: op.Range}) {
			if err == nil {
				err = take(record{SeriesKey: core.SeriesKey{Entity: m.Entity, Tags: m.Tags}}, m.Type)
			}
			if err != nil {
				return err
			}
		}
	case propertyTable:
		for p, err := range b.Reader.Properties(b.ctx, core.PropertyQuery{Scope: b.Scope, Entities: entities, Type: kind, Range: op.Range}) {
			if err == nil {
				tags := make(core.Tags, len(p.Tags))
				for i, tag := range p.Tags {
					tags[i] = tag.Tag
				}
				err = take(record{core.SeriesKey{Entity: p.Entity, Tags: tags}, p.Key}, p.Type)
			}
			if err != nil {
				return err
			}
		}
	case historyTable:
		for r, err := range b.Reader.AlertHistory(b.ctx, core.AlertHistoryQuery{Scope: b.Scope, Entities: entities, Range: op.Range}) {
			if err == nil {
				err = take(record{SeriesKey: core.SeriesKey{Entity: r.Entity, Tags: r.Tags}}, "")
			}
			if err != nil {
				return err
			}
		}
	case alertTable:
		if b.Alerts == nil {
			return nil
		}
		list, err := b.Alerts.Query(b.ctx, core.AlertFilter{Scope: b.Scope, Entities: entities, Range: core.AllTime})
		for _, a := range list {
			if err == nil {
				err = take(record{SeriesKey: core.SeriesKey{Entity: a.Entity, Tags: a.Tags}}, "")
			}
		}
		return err
	}
	return nil
}

// recordNames lists the names of the tags or keys of the records of a table, sorted.
func (b *binder) recordNames(table int, of string) ([]string, error) {
	names := map[string]bool{}
	err := b.records(table, func(n record) {
		list := n.Tags
		if of == "key" {
			list = n.key
		}
		for _, tag := range list {
			if !names[tag.Name] {
				names[strings.Clone(tag.Name)] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(names)), err
}
