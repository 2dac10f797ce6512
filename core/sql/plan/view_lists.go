package plan

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// wholes are the columns from which those of a list follow.
var wholes = map[string][]string{"tags": {"tags"}, "entity": {"entity"}, "entity.tags": {"entity.tags", "entity"}, "metric": {"metric"}, "metric.tags": {"metric.tags", "metric"}}

// viewListed is listed of a view: of the columns that it selects one by one, and of those that follow from what it selects as a whole, which it gets.
func (b *binder) viewListed(s *ast.Star, table int, of string) ([]string, error) {
	v := b.tables[table].view
	names := v.under(of)
	for _, name := range wholes[of] {
		r, ok := v.whole(name)
		if !ok {
			continue
		}
		if of == "entity" || of == "metric" {
			v.requestList(of, fieldList(of))
			return fieldList(of), nil
		}
		b.handDown(table)
		more, err := v.tagsOf(s, r)
		if err != nil {
			return nil, err
		}
		v.requestList(of, more)
		return union(names, more), nil
	}
	if len(names) > 0 || v.lists(of) {
		return names, nil
	}
	column := strings.TrimSuffix(of, ".tags")
	if wholes[of] == nil || v.labelled(column) >= 0 {
		return nil, notListed(s, of) // keys; an expression; a column that has neither fields nor tags
	}
	return nil, s.Errorf("%s cannot be expanded: the subquery must select the column %s", lists[of], column)
}

// whole returns the column of the view's own tables that it selects under a name of wholes; ok is false when it selects something else, or nothing.
func (v *view) whole(name string) (r ref, ok bool) {
	if v.plain(name) == nil {
		return ref{}, false
	}
	if r, ok = v.column(v.labelled(name)); !ok {
		return ref{}, false
	}
	switch of, _, _ := strings.Cut(name, "."); of {
	case "entity":
		return r, r.source.ofEntity()
	case "metric":
		return r, r.source.ofMetric()
	}
	return r, r.source.ofTags() || r.source.ofEntity() || r.source.ofMetric() // atsd_entity and atsd_metric call theirs tags as well
}

// tagsOf lists the names of the tags that follow from a column of the view's own tables.
func (v *view) tagsOf(s *ast.Star, r ref) (names []string, err error) {
	of := "tags"
	switch {
	case r.source.ofEntity():
		of = "entity.tags"
	case r.source.ofMetric():
		of = "metric.tags"
	}
	for i := range v.inner.tables {
		if r.table != i && r.table != joined {
			continue
		}
		more, err := v.inner.listed(s, i, of)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return union(names), nil
}

// under lists the columns of a view whose names begin with that of a list.
func (v *view) under(of string) (names []string) {
	for _, c := range v.query.Columns[:v.visible] {
		if len(c.Label) > len(of)+1 && strings.EqualFold(c.Label[:len(of)+1], of+".") {
			names = append(names, c.Label[len(of)+1:])
		}
	}
	return names
}

// lists reports whether the view itself selects a list, which may have no columns.
func (v *view) lists(of string) bool {
	return slices.ContainsFunc(v.stmt.Items, func(i ast.Item) bool {
		star, ok := i.Expr.(*ast.Star)
		return ok && strings.HasSuffix("."+lower(pathOf(star.Parts)), "."+of)
	})
}

// column returns the column of the view's own tables that its column i is.
func (v *view) column(i int) (r ref, ok bool) {
	n, ok := v.inner.items[i].expr.(*ast.Name)
	if !ok {
		return ref{}, false
	}
	return v.inner.resolve(n)
}

// requestList asks for the columns of a list all at once, but for names, which are there. What the view refuses is asked for again, one by one.
func (v *view) requestList(of string, names []string) {
	var paths []string
	for _, name := range names {
		if path := of + "." + name; v.labelled(path) < 0 && !v.isName(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) > 0 && v.request(paths...) {
		return
	}
	for _, path := range paths {
		delete(v.refused, path)
	}
}

// handDown tells the tables of a view which conditions on its rows hold for theirs: those on columns that the view hands on as they are.
func (b *binder) handDown(table int) {
	v := b.tables[table].view
	for i, t := range v.inner.tables {
		t.outer = slices.DeleteFunc(b.narrowed(table), func(term ast.Expr) bool {
			return contains(term, func(e ast.Expr) bool {
				n, ok := e.(*ast.Name)
				return ok && !v.hands(n, b, i)
			})
		})
	}
}

// hands reports whether a column of the view, by its name in the outer query, is the same one of the view's table i, which knows it by that name then.
func (v *view) hands(n *ast.Name, outer *binder, i int) bool {
	r, _ := outer.resolve(n)
	place, err := v.place(r.source)
	if err != nil {
		return false
	}
	own, ok := v.column(place)
	if !ok || own.source != r.source || own.table != i && own.table != joined {
		return false
	}
	if _, known := v.inner.resolve(n); !known {
		v.inner.refs[n.Parts[0].Text] = own
	}
	return true
}
