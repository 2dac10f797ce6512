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
	if of == "tags" && t.kind == seriesTable {
		return b.tagList(s, table, prefix)
	}
	names, err := b.listed(s, table, of)
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
	if len(out) == 0 && len(names) > 0 {
		return nil, notListed(s, of)
	}
	return out, nil
}

func notListed(s *ast.Star, of string) error {
	return s.Errorf("%s cannot be expanded: name its columns", lists[of])
}

// listed returns what the columns that a list of a table expands to are called behind the name of the list.
func (b *binder) listed(s *ast.Star, table int, of string) ([]string, error) {
	t := b.tables[table]
	switch {
	case t.kind == viewTable:
		return b.viewListed(s, table, of)
	case of == "entity" && t.kind != metricTable, of == "metric" && (t.kind == seriesTable || t.kind == metricTable):
		return fieldList(of), nil
	case of == "tags" && t.kind == seriesTable:
		sets, err := b.tagNames(table)
		return union(sets...), err
	case of == "metric.tags" && t.kind == seriesTable, (of == "tags" || of == "metric.tags") && t.kind == metricTable:
		return b.metricTags(table)
	case of == "entity.tags" && t.kind != metricTable, of == "tags" && t.kind == entityTable:
		return b.entityTags(table)
	case of == "tags", of == "key" && t.kind == propertyTable:
		return b.recordNames(table, of)
	}
	return nil, notListed(s, of)
}

// fieldList is what entity.* or metric.* stands for.
func fieldList(of string) []string {
	if of == "metric" {
		return append(namesOf(metricFields), "tags")
	}
	names := slices.DeleteFunc(namesOf(entityFields[:8]), func(n string) bool { return n == "versionTime" })
	return append(names, "tags")
}

// union sorts names and drops repetitions.
func union(sets ...[]string) []string {
	all := slices.Concat(sets...)
	slices.Sort(all)
	return slices.Compact(all)
}

func identsOf(path string) (out []ast.Ident) {
	for _, p := range strings.Split(path, ".") {
		out = append(out, ast.Ident{Text: p})
	}
	return out
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
				it.name, it.property = t.metrics[i]+"."+prefix+name, properties[SourceTag]
				it.expr = b.ofOneMetric(s, table, t.metrics[i], it.expr)
			}
			out = append(out, it)
		}
	}
	return out, nil
}

// ofOneMetric limits a column of a table to the rows of one metric. The rows of a group that is not of one metric have their tags in common: there is nothing to
// limit.
func (b *binder) ofOneMetric(s *ast.Star, table int, name string, e ast.Expr) ast.Expr {
	metric := b.nameOf(ref{table: table, source: Source{Kind: SourceMetric, Type: column.String}}, s.Start)
	if len(b.stmt.GroupBy) > 0 && !b.groupedBy(metric) {
		return e
	}
	own := &ast.Binary{Start: s.Start, Op: "=", L: metric, R: textLiteral(s.Start, name)}
	only := &ast.Case{Start: s.Start, Whens: []ast.When{{Conditions: []ast.Expr{own}, Then: e}}}
	b.origin[only] = b.origin[e]
	return only
}

// groupedBy reports whether a column is a key of GROUP BY. What is wrong with a key is said when the keys are made.
func (b *binder) groupedBy(n *ast.Name) bool {
	return slices.ContainsFunc(b.stmt.GroupBy, func(e ast.Expr) bool {
		key, err := b.canonical(e, aliasFirst)
		return err == nil && ast.Key(key) == ast.Key(n)
	})
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

// narrowed are the conditions that say which series or records of a table give lists their columns.
func (b *binder) narrowed(table int) []ast.Expr {
	t := b.tables[table]
	return narrowing(slices.Concat(t.filter, t.outer), b.ofTable(table), table)
}

// keyBlock is how many series are tested at once.
const keyBlock = 512

// series calls each for the series of a metric that satisfy the conditions on names and tags.
func (b *binder) series(table int, metric string, each func(core.SeriesKey)) error {
	if _, ok := b.Catalog.Metric(metric); !ok {
		return nil
	}
	push, rest := pushDown(b.narrowed(table), b.ofTable(table), table)
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
func (b *binder) metricTags(table int) ([]string, error) {
	t := b.tables[table]
	names := map[string]bool{}
	add := func(metric string) {
		m, _ := b.Catalog.Metric(metric)
		for name := range m.Tags {
			names[name] = true
		}
	}
	if t.kind == metricTable {
		err := b.eachName(table, SourceMetric, add)
		return slices.Sorted(maps.Keys(names)), err
	}
	n := narrower{b.ofTable(table), table}
	test, err := b.keyTest(table, slices.DeleteFunc(b.narrowed(table), func(term ast.Expr) bool {
		return !n.over(term, func(k SourceKind) bool { return k == SourceMetric })
	}))
	if err != nil {
		return nil, err
	}
	keys := make([]core.SeriesKey, len(t.metrics))
	for i, metric := range t.metrics {
		keys[i].Metric = metric
	}
	kept, err := test(keys)
	for i := range kept {
		if kept[i] {
			add(t.metrics[i])
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}

// entityTags lists the names of the tags of the entities that have rows in a table.
func (b *binder) entityTags(table int) ([]string, error) {
	t := b.tables[table]
	names := map[string]bool{}
	var failed error
	add := func(entity string) {
		e, _, err := b.Env.Facts.Entity(entity, b.env.Version)
		if err != nil {
			failed = err
		}
		for name := range e.Tags {
			names[name] = true
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
	var err error
	switch t.kind {
	case entityTable:
		err = b.eachName(table, SourceEntity, add)
	case seriesTable:
		for _, metric := range t.metrics {
			if err == nil {
				err = b.series(table, metric, once)
			}
		}
	default:
		err = b.records(table, func(n record) { once(n.SeriesKey) })
	}
	if err == nil {
		err = failed
	}
	return slices.Sorted(maps.Keys(names)), err
}
