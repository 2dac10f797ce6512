package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// expand replaces the expansions of the SELECT list by the columns they stand for.
func (b *binder) expand() error {
	var out []*item
	for _, it := range b.items {
		star, ok := it.ast.(*ast.Star)
		if !ok {
			out = append(out, it)
			continue
		}
		list, err := b.star(star)
		if err != nil {
			return err
		}
		out = append(out, list...)
	}
	b.items = out
	return nil
}

// star resolves one expansion.
func (b *binder) star(s *ast.Star) ([]*item, error) {
	if len(b.tables) == 0 {
		return nil, s.Errorf("Unexpected expression: '%s'", ast.Text(s))
	}
	if len(s.Parts) == 0 {
		var out []*item
		for i := range b.tables {
			list, err := b.allColumns(s, i)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		}
		return out, nil
	}
	if i, ok := b.tableNamed(pathOf(s.Parts)); ok {
		return b.allColumns(s, i)
	}
	// What a list is of stands at the end: tags, entity, entity.tags, metric, metric.tags. Before it may be a table.
	for n := min(2, len(s.Parts)); n > 0; n-- {
		of := lower(pathOf(s.Parts[len(s.Parts)-n:]))
		if of != "tags" && of != "entity" && of != "metric" && of != "entity.tags" && of != "metric.tags" && of != "key" {
			continue
		}
		prefix := s.Parts[:len(s.Parts)-n]
		if len(prefix) == 0 {
			if len(b.tables) > 1 && !b.Meta {
				return nil, s.Errorf("%s ambiguously defined", lists[of])
			}
			return b.list(s, 0, of)
		}
		if i, ok := b.tableNamed(pathOf(prefix)); ok {
			return b.list(s, i, of)
		}
	}
	prefix := s.Parts
	for len(prefix) > 1 && lists[lower(prefix[len(prefix)-1].Text)] != "" {
		prefix = prefix[:len(prefix)-1]
	}
	return nil, ast.Errorf("Invalid identifier '%s'", pathOf(prefix))
}

// lists names expansions in errors.
var lists = map[string]string{"tags": "Tags list", "metric.tags": "Metric tags list", "entity.tags": "Entity tags list", "entity": "Entity fields list", "metric": "Metric fields list",
	"key": "Key list"}

// allColumns are those that * stands for.
func (b *binder) allColumns(s *ast.Star, table int) ([]*item, error) {
	t := b.tables[table]
	var labels []string
	switch t.kind {
	case seriesTable:
		labels = []string{"time", "datetime", "value", "text", "metric", "entity", "tags"}
	case viewTable:
		for _, c := range t.view.query.Columns[:t.view.visible] {
			labels = append(labels, c.Label)
		}
	case entityTable:
		labels = append(namesOf(entityFields[:8]), "tags")
	case metricTable:
		labels = append(namesOf(metricFields), "tags")
	default:
		labels = append(append([]string{"time", "datetime", "entity"}, namesOf(recordFields[t.kind])...), "tags")
	}
	prefix := ""
	if len(b.tables) > 1 {
		prefix = t.alias + "."
	}
	var out []*item
	for _, label := range labels {
		source, datetime, ok := t.find([]ast.Ident{{Start: s.Start, Text: label}})
		if ok {
			out = append(out, b.expanded(s, ref{table, source, datetime}, prefix+label))
		}
	}
	return out, nil
}

// expanded is one column of an expansion.
func (b *binder) expanded(s *ast.Star, r ref, label string) *item {
	name := b.nameOf(r, s.Start)
	parts := strings.Split(label, ".")
	written := &ast.Name{Start: s.Start}
	for _, p := range parts {
		written.Parts = append(written.Parts, ast.Ident{Start: s.Start, Text: p})
	}
	b.origin[name] = written
	return &item{label: label, name: label, expr: name, done: true}
}

// list expands tags.*, entity.*, metric.* and the tags of these.
func (b *binder) list(s *ast.Star, table int, of string) ([]*item, error) {
	t := b.tables[table]
	prefix := pathOf(s.Parts) + "."
	var names []string
	var err error
	switch {
	case of == "entity" && t.kind != viewTable:
		names = append(namesOf(entityFields[:8]), "tags")
		names = slices.DeleteFunc(names, func(n string) bool { return n == "versionTime" })
	case of == "metric" && (t.kind == seriesTable || t.kind == metricTable):
		names = append(namesOf(metricFields), "tags")
	case t.kind == viewTable:
		names = t.view.under(of)
	case of == "tags" && t.kind == seriesTable:
		return b.tagList(s, table, prefix)
	case of == "metric.tags" && t.kind == seriesTable, strings.HasSuffix(of, "tags") && t.kind == metricTable:
		names, err = b.metricTags(t)
	case of == "entity.tags" && t.kind != metricTable, of == "tags" && t.kind == entityTable:
		names, err = b.entityTags(table)
	default:
		names, err = b.recordNames(s, table, of)
	}
	if err != nil {
		return nil, err
	}
	var out []*item
	for _, name := range names {
		path := append(identsOf(of), ast.Ident{Start: s.Start, Text: name})
		source, datetime, ok := t.find(path)
		if ok {
			out = append(out, b.expanded(s, ref{table, source, datetime}, prefix+name))
		}
	}
	return out, nil
}

func identsOf(path string) (out []ast.Ident) {
	for _, p := range strings.Split(path, ".") {
		out = append(out, ast.Ident{Text: p})
	}
	return out
}

// under lists the columns of a view whose names begin with that of a list.
func (v *view) under(of string) (names []string) {
	for _, c := range v.query.Columns {
		if len(c.Label) > len(of)+1 && strings.EqualFold(c.Label[:len(of)+1], of+".") {
			names = append(names, c.Label[len(of)+1:])
		}
	}
	if len(names) > 0 || of != "tags" {
		return names
	}
	// The view selects tags as a whole: its own tables know the names.
	for i, t := range v.inner.tables {
		switch t.kind {
		case seriesTable:
			sets, err := v.inner.tagNames(i)
			if err != nil {
				return nil
			}
			for _, set := range sets {
				names = append(names, set...)
			}
		case viewTable:
			names = append(names, t.view.under(of)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = of + "." + name
	}
	v.request(paths...) // all at once; what the view refuses is asked for again, one by one
	for _, path := range paths {
		delete(v.refused, path)
	}
	return names
}

// tagList expands the tags of series: of one metric after another, where there are several.
func (b *binder) tagList(s *ast.Star, table int, prefix string) ([]*item, error) {
	t := b.tables[table]
	sets, err := b.tagNames(table)
	if err != nil {
		return nil, err
	}
	var out []*item
	for i, names := range sets {
		for _, name := range names {
			source := Source{Kind: SourceTag, Name: name, Type: column.String}
			it := b.expanded(s, ref{table, source, false}, prefix+name)
			if it.table = t.metrics[i]; len(sets) > 1 {
				it.name = t.metrics[i] + "." + prefix + name
				metric := b.nameOf(ref{table: table, source: Source{Kind: SourceMetric, Type: column.String}}, s.Start)
				own := &ast.Binary{Start: s.Start, Op: "=", L: metric, R: textLiteral(s.Start, t.metrics[i])}
				only := &ast.Case{Start: s.Start, Whens: []ast.When{{Conditions: []ast.Expr{own}, Then: it.expr}}}
				b.origin[only] = b.origin[it.expr]
				it.expr, it.property = only, properties[SourceTag]
			}
			out = append(out, it)
		}
	}
	return out, nil
}

// tagNames lists the names of the tags of the series that take part: sorted, one list a metric.
func (b *binder) tagNames(table int) ([][]string, error) {
	t := b.tables[table]
	out := make([][]string, len(t.metrics))
	for i, metric := range t.metrics {
		names := map[string]bool{}
		err := b.series(table, metric, func(k core.SeriesKey) {
			for _, tag := range k.Tags {
				if !names[tag.Name] {
					names[strings.Clone(tag.Name)] = true
				}
			}
		})
		if err != nil {
			return nil, err
		}
		out[i] = slices.Sorted(maps.Keys(names))
	}
	return out, nil
}

// keyBlock is how many series are tested at once.
const keyBlock = 512

// series calls each for the series of a metric that satisfy the conditions on names and tags.
func (b *binder) series(table int, metric string, each func(core.SeriesKey)) error {
	if _, ok := b.Catalog.Metric(metric); !ok {
		return nil
	}
	push, rest := pushDown(narrowing(b.tables[table].filter, b.ofTable(table), table), b.ofTable(table), table)
	test, err := b.keyTest(table, rest)
	if err != nil {
		return err
	}
	q := core.SeriesQuery{Scope: b.Scope, Metric: metric, Entities: push.entities, Tags: push.tags, Range: core.AllTime}
	var block []core.SeriesKey
	flush := func() error {
		kept, err := test(block)
		for i, key := range block {
			if err == nil && kept[i] {
				each(key)
			}
		}
		block = block[:0]
		return err
	}
	for info, err := range b.Reader.Keys(b.ctx, q) {
		if err != nil {
			return err
		}
		if len(rest) == 0 {
			each(info.Key)
			continue
		}
		if block = append(block, info.Key.Clone()); len(block) == keyBlock {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// keyTest makes a test of series by conditions on their names and tags.
func (b *binder) keyTest(table int, terms []ast.Expr) (func([]core.SeriesKey) ([]bool, error), error) {
	sc := b.probe()
	sc.table = table
	t := sc.tables[table]
	condition, err := sc.conditions(terms)
	if err != nil || condition == nil {
		return func(keys []core.SeriesKey) ([]bool, error) { return slices.Repeat([]bool{true}, len(keys)), nil }, err
	}
	return func(keys []core.SeriesKey) ([]bool, error) {
		batch := &column.Batch{Len: len(keys)}
		for _, s := range t.columns {
			batch.Columns = append(batch.Columns, keyColumn(keys, s))
		}
		out := make([]bool, len(keys))
		if len(keys) == 0 {
			return out, nil
		}
		v, err := condition.Eval(b.env, batch)
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i] = v.Value(i).IsTrue()
		}
		return out, nil
	}, nil
}

// keyColumn is a column of a scan over series without their samples.
func keyColumn(keys []core.SeriesKey, s Source) *column.Vector {
	v := &column.Vector{Type: column.String, Len: len(keys), Strings: make([]string, len(keys)), Nulls: make([]bool, len(keys))}
	for i, k := range keys {
		ok := true
		switch s.Kind {
		case SourceMetric:
			v.Strings[i] = k.Metric
		case SourceEntity:
			v.Strings[i] = k.Entity
		case SourceTag:
			v.Strings[i], ok = k.Tags.Get(s.Name)
		case SourceTags:
			v.Strings[i], ok = tagText(k.Tags), len(k.Tags) > 0
		default:
			ok = false
		}
		v.Nulls[i] = !ok
	}
	if s.Kind == SourceTime {
		return &column.Vector{Type: column.Bigint, Len: len(keys), Ints: make([]int64, len(keys))}
	}
	return v
}

// tagText is a whole tag set as the column tags shows it.
func tagText(tags core.Tags) string {
	pairs := make([]string, len(tags))
	for i, tag := range tags {
		pairs[i] = tag.Name + "=" + tag.Value
	}
	return strings.Join(pairs, ";")
}

// metricTags lists the names of the tags of the metrics of a table.
func (b *binder) metricTags(t *table) ([]string, error) {
	names := map[string]bool{}
	add := func(m *core.Metric) {
		for name := range m.Tags {
			names[name] = true
		}
	}
	if t.kind == metricTable {
		for m, err := range b.Metadata.Metrics(b.ctx, core.MetaQuery{}) {
			if err != nil {
				return nil, err
			}
			add(m.Metric)
		}
	}
	for _, name := range t.metrics {
		if m, ok := b.Catalog.Metric(name); ok {
			add(&m)
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// entityTags lists the names of the tags of the entities that have rows in a table.
func (b *binder) entityTags(table int) ([]string, error) {
	t := b.tables[table]
	names := map[string]bool{}
	add := func(entity string) {
		if e, ok, err := b.Env.Facts.Entity(entity, b.env.Version); ok && err == nil {
			for name := range e.Tags {
				names[name] = true
			}
		}
	}
	if t.kind == entityTable {
		for e, err := range b.Metadata.Entities(b.ctx, core.MetaQuery{}) {
			if err != nil {
				return nil, err
			}
			add(e.Name)
		}
	}
	seen := map[string]bool{}
	once := func(k core.SeriesKey) {
		if !seen[k.Entity] {
			entity := strings.Clone(k.Entity)
			seen[entity] = true
			add(entity)
		}
	}
	for _, metric := range t.metrics {
		if err := b.series(table, metric, once); err != nil {
			return nil, err
		}
	}
	if t.kind != seriesTable && t.kind != entityTable {
		if err := b.records(table, func(n record) { once(n.SeriesKey) }); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
