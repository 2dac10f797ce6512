package plan

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// pushed is what a reader can do of a WHERE.
type pushed struct {
	entities core.EntityFilter
	tags     []core.TagFilter
}

// pushDown moves terms on the entity and on series tags of a table into filters of the reader, as far as these say exactly the same, and returns the rest.
func pushDown(terms []ast.Expr, resolve func(*ast.Name) (ref, bool), table int) (push pushed, rest []ast.Expr) {
	p := pusher{resolve, table}
	taken := make([]bool, len(terms))
	// Names first: they select less than patterns, and only one of the two can be had.
	for _, exact := range []bool{true, false} {
		for i, term := range terms {
			if f, ok := p.filter(term); ok && !taken[i] && (len(f.patterns) == 0) == exact {
				taken[i] = push.take(f)
			}
		}
	}
	for i, term := range terms {
		if !taken[i] {
			rest = append(rest, term)
		}
	}
	return push, rest
}

// take adds a filter. Entities can be selected only once: the reader unites names and patterns, it does not intersect them.
func (p *pushed) take(f seriesFilter) bool {
	if f.source.Kind == SourceTag {
		p.tags = append(p.tags, core.TagFilter{Name: f.source.Name, Patterns: f.allPatterns()})
		return true
	}
	if p.entities.All() {
		p.entities.Names, p.entities.Patterns = f.names, f.patterns
		return true
	}
	if len(p.entities.Patterns) > 0 || len(f.patterns) > 0 {
		return false
	}
	before := make(map[string]bool, len(p.entities.Names))
	for _, name := range p.entities.Names {
		before[name] = true
	}
	common := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return !before[name] })
	if len(common) == 0 {
		return false // an empty filter would select all
	}
	p.entities.Names = common
	return true
}

// seriesFilter selects series whose entity or tag has one of the names or matches one of the patterns.
type seriesFilter struct {
	source   Source
	names    []string
	patterns []string
}

// allPatterns returns names and patterns as patterns.
func (f seriesFilter) allPatterns() []string {
	all := make([]string, 0, len(f.names)+len(f.patterns))
	for _, name := range f.names {
		all = append(all, glob.Escape(name))
	}
	return append(all, f.patterns...)
}

type pusher struct {
	resolve func(*ast.Name) (ref, bool)
	table   int
}

// column returns the entity name or series tag that e is.
func (p pusher) column(e ast.Expr) (Source, bool) {
	n, ok := e.(*ast.Name)
	if !ok {
		return Source{}, false
	}
	r, ok := p.resolve(n)
	ok = ok && (r.table == p.table || r.table == joined) && (r.source.Kind == SourceEntity || r.source.Kind == SourceTag)
	return r.source, ok
}

// filter makes a filter that selects the same series as the term; ok is false when there is none.
func (p pusher) filter(term ast.Expr) (seriesFilter, bool) {
	switch e := term.(type) {
	case *ast.Binary:
		switch e.Op {
		case "or":
			return p.either(e)
		case "=":
			source, ok := p.column(e.L)
			other := e.R
			if !ok {
				source, ok = p.column(e.R)
				other = e.L
			}
			if text, isText := textOf(other); ok && isText {
				return named(source, []string{text})
			}
		}
	case *ast.In:
		source, ok := p.column(e.X)
		if names, isText := textsOf(e.List); ok && isText && !e.Not && e.Set == nil {
			return named(source, names)
		}
	case *ast.Like:
		source, ok := p.column(e.X)
		if text, isText := textOf(e.Pattern); ok && isText && !e.Not {
			return matched(source, globOf(text, e.Escape))
		}
	case *ast.IsNull:
		if source, ok := p.column(e.X); ok && e.Not && source.Kind == SourceTag {
			return seriesFilter{source, nil, []string{"*"}}, true
		}
	}
	return seriesFilter{}, false
}

// named selects exact names: of entities whatever their case, of tag values as written. No name at all selects nothing, which a filter cannot say.
func named(source Source, names []string) (seriesFilter, bool) {
	if source.Kind == SourceEntity {
		names = loweredAll(names)
	}
	names = unique(names)
	return seriesFilter{source, names, nil}, len(names) > 0 && !slices.Contains(names, "")
}

// unique drops repetitions and keeps the order.
func unique(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// matched selects by a pattern. Readers take patterns of entities in lower case; one with capital letters matches nothing.
func matched(source Source, pattern string) (seriesFilter, bool) {
	if source.Kind == SourceEntity && pattern != strings.ToLower(pattern) {
		return seriesFilter{}, false
	}
	return seriesFilter{source, nil, []string{pattern}}, true
}

// either unites two filters on the same column.
func (p pusher) either(e *ast.Binary) (seriesFilter, bool) {
	left, ok := p.filter(e.L)
	if !ok {
		return left, false
	}
	right, ok := p.filter(e.R)
	if !ok || right.source.Kind != left.source.Kind || right.source.Name != left.source.Name {
		return left, false
	}
	left.names = unique(slices.Concat(left.names, right.names))
	left.patterns = slices.Concat(left.patterns, right.patterns)
	return left, true
}

// narrowing returns the terms that say which series give tags.* its columns: those on metric and entity names, and plain ones on a series tag. Conditions
// on tags under NOT or OR are not among them, nor are those on anything else.
func narrowing(terms []ast.Expr, resolve func(*ast.Name) (ref, bool), table int) []ast.Expr {
	n := narrower{resolve, table}
	return slices.DeleteFunc(slices.Clone(terms), func(term ast.Expr) bool { return !n.plain(term) && !n.names(term) })
}

type narrower struct {
	resolve func(*ast.Name) (ref, bool)
	table   int
}

// plain reports whether a term is a single test of a series tag.
func (n narrower) plain(term ast.Expr) bool {
	switch e := term.(type) {
	case *ast.Not:
		return false
	case *ast.Binary:
		if e.Op == "and" || e.Op == "or" {
			return false
		}
	}
	return n.over(term, func(k SourceKind) bool { return k == SourceTag || k == SourceTags })
}

// names reports whether a term, of whatever shape, speaks of the metric and the entity alone.
func (n narrower) names(term ast.Expr) bool {
	return n.over(term, func(k SourceKind) bool { return k == SourceMetric || k == SourceEntity })
}

// over reports whether e has columns of the table, all of the given kinds, and no functions, whose answers may depend on anything.
func (n narrower) over(e ast.Expr, kinds func(SourceKind) bool) bool {
	found := false
	other := contains(e, func(part ast.Expr) bool {
		switch part := part.(type) {
		case *ast.Name:
			r, ok := n.resolve(part)
			found = true
			return !ok || r.table != n.table && r.table != joined || !kinds(r.source.Kind)
		case *ast.Call:
			return part.Name != "metrics" && part.Name != "collection"
		case *ast.Placeholder:
			return true
		}
		return false
	})
	return found && !other
}
