package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// Options are what binding needs to know beside the statement.
type Options struct {
	Catalog  core.Catalog
	Reader   core.Reader
	Metadata core.Metadata
	Alerts   core.OpenAlerts // optional: that are open
	Scope    core.Scope      // what the caller may read; it goes into every operator that reads
	Env      *expr.Env

	EncodeTags bool // columns of the result that are whole tag sets are JSON objects
	Meta       bool // only the columns are wanted: nothing need exist, and fewer rules are checked
	LikeLimit  int  // metrics that a pattern may select; 0 = 50
	Columns    int  // items of a SELECT list, and keys of a clause; 0 = DefaultColumns

	// Instants runs the query of BETWEEN (SELECT ...). nil: such conditions are an error.
	Instants func(ctx context.Context, s *ast.Select) ([]core.Time, error)

	// Names runs a query whose first column is a name, which is valid during the call. nil: expansions that need the rows of entities or metrics are an error.
	Names func(ctx context.Context, q *Query, each func(name string)) error

	with ast.With // of outer queries: their time zone and calendar hold for inner ones
}

// Bind plans a SELECT. What is wrong with the statement is an *ast.Error.
func Bind(ctx context.Context, s *ast.Select, o Options) (*Query, error) {
	b := newBinder(ctx, s, o)
	if err := b.prepare(); err != nil {
		return nil, err
	}
	return b.settle()
}

// BindDelete plans the rows that a DELETE removes. Its columns are metric, entity, tags as JSON, time.
func BindDelete(ctx context.Context, d *ast.Delete, o Options) (*Query, error) {
	s := &ast.Select{Start: d.Start, From: d.Table, Where: d.Where}
	b := newBinder(ctx, s, o)
	if err := b.loadTables(); err != nil {
		return nil, err
	}
	if b.tables[0].kind != seriesTable {
		return nil, d.Table.Errorf("DELETE removes samples only: name a metric or atsd_series, not '%s'", d.Table.Table)
	}
	for _, source := range []Source{{Kind: SourceMetric, Type: column.String}, {Kind: SourceEntity, Type: column.String}, {Kind: SourceTagsJSON, Type: column.String},
		{Kind: SourceTime, Type: column.Bigint}} {
		b.items = append(b.items, &item{expr: b.nameOf(ref{source: source}, s.Start), done: true})
	}
	if err := b.prepareRest(); err != nil {
		return nil, err
	}
	return b.settle()
}

// WholeSeries returns the scan of a query that selects samples by series and time alone, so that whole series are meant within its intervals.
func WholeSeries(q *Query) (*Scan, bool) {
	p, ok := q.Root.(*Project)
	if !ok {
		return nil, false
	}
	scan, ok := p.In.(*Scan)
	return scan, ok && scan.Filter == nil && scan.Fill == nil
}

// Cut returns the operator that yields the first n rows of root.
func Cut(root Operator, n int64) Operator {
	l, ok := root.(*Limit)
	if !ok {
		l = &Limit{In: root, Count: n}
	} else if l.Count < 0 || l.Count > n {
		l = &Limit{In: l.In, Skip: l.Skip, Count: n}
	}
	if s, ok := l.In.(*Sort); ok {
		sorted := *s
		sorted.Keep = keep(l)
		l.In = &sorted
	}
	return l
}

// keep is how many of the rows below a limit are needed; 0 = all.
func keep(l *Limit) int64 {
	sum := l.Skip + l.Count
	if l.Count < 0 || sum < l.Skip {
		return 0
	}
	return max(sum, 1) // 0 would be all
}

// binder plans one SELECT. It works in two steps:
//
//	prepare   names become columns of tables: aliases and expansions are resolved, conditions are told apart
//	settle    operators and expressions are made, again and again until the numbers of all columns are known
//
// An operator's columns are numbered one after another, and which it must have is known only when all expressions above it are bound. So the statement
// is bound once to see what it needs, and a second time with the final numbers; layout is what is kept in between.
type binder struct {
	Options
	ctx   context.Context
	stmt  *ast.Select
	inner bool // it is a view of another SELECT

	tables   []*table
	items    []*item
	aliases  map[string][]*item          // items by their alias in lower case
	env      *expr.Env                   // of this SELECT
	instants map[*ast.Select][]core.Time // what queries of BETWEEN gave
	sizes    map[ast.Expr]int            // how many parts expressions have
	refs     map[string]ref              // what canonical names stand for
	origin   map[ast.Expr]ast.Expr       // expressions in canonical names -> as the statement has them

	condition  ast.Expr   // of WHERE, in canonical names like all that follows
	unprefixed bool       // while names of WHERE are resolved: entity needs no prefix there
	terms      []ast.Expr // of WHERE
	after      []ast.Expr // those that need joined rows
	late       []ast.Expr // those that look at other rows
	intervals  []Interval // that WHERE selects
	group      []ast.Expr
	period     *ast.Period // among group; nil = none
	having     ast.Expr
	order      []ast.OrderItem
	before     *ast.RowNumber // WITH ROW_NUMBER on rows
	afterGroup *ast.RowNumber // on groups
	grouped    bool           // rows are grouped: by keys, or all into one group

	layout *layout
	bound  int // expressions so far
}

// likeLimit is the default of Options.LikeLimit.
const likeLimit = 50

func newBinder(ctx context.Context, s *ast.Select, o Options) *binder {
	o.LikeLimit = cmp.Or(o.LikeLimit, likeLimit)
	return &binder{Options: o, ctx: ctx, stmt: s, refs: map[string]ref{}, origin: map[ast.Expr]ast.Expr{},
		instants: map[*ast.Select][]core.Time{}, sizes: map[ast.Expr]int{}, aliases: map[string][]*item{}}
}

// item is one column of the SELECT list.
type item struct {
	ast   ast.Expr // as written; nil of an expansion
	alias *ast.Ident
	label string // "" = alias, otherwise the text
	name  string
	expr  ast.Expr // in canonical names
	table string   // metric, of expansions over several

	property string // propertyUrl; "" = what expr says

	done, busy bool // expr is made; is being made
	hidden     bool // asked for by an outer query
}

// layout numbers what operators must compute. Texts are those of expressions in canonical names.
type layout struct {
	aggregates numbering
	carried    numbering
	analytics  numbering
	lags       numbering // functions of windows in WHERE
}

// size sums up what is numbered. It never becomes less.
func (l *layout) size() int {
	return len(l.aggregates) + len(l.carried) + len(l.analytics) + len(l.lags)
}

// numbering gives numbers to texts, in the order in which they come.
type numbering map[string]int

func (n *numbering) place(text string) int {
	if i, ok := (*n)[text]; ok {
		return i
	}
	if *n == nil {
		*n = numbering{}
	}
	i := len(*n)
	(*n)[text] = i
	return i
}

// DefaultColumns is how wide statements may be. Each expression has buffers of its own, so that a statement of a megabyte could take gigabytes.
const DefaultColumns = 4096

// checkWidth refuses lists that are too long. Their setting is sql.columns.
func (b *binder) checkWidth() error {
	most := cmp.Or(b.Options.Columns, DefaultColumns)
	s := b.stmt
	lists := map[string]int{"columns": len(s.Items), "keys of GROUP BY": len(s.GroupBy), "keys of ORDER BY": len(s.OrderBy)}
	for _, r := range s.RowNumbers {
		lists["keys of ROW_NUMBER"] = max(len(r.Partition), len(r.Order))
	}
	for _, what := range slices.Sorted(maps.Keys(lists)) {
		if n := lists[what]; n > most {
			return ast.Errorf("the query has %d %s, sql.columns allows %d", n, what, most)
		}
	}
	return nil
}

// prepare makes names canonical.
func (b *binder) prepare() error {
	if err := b.checkWidth(); err != nil {
		return err
	}
	if err := b.loadTables(); err != nil {
		return err
	}
	for _, it := range b.stmt.Items {
		listed := &item{ast: it.Expr, alias: it.Alias}
		b.items = append(b.items, listed)
		if it.Alias != nil {
			alias := lower(it.Alias.Text)
			b.aliases[alias] = append(b.aliases[alias], listed)
		}
	}
	return b.prepareRest()
}

func (b *binder) prepareRest() error {
	for _, step := range []func() error{b.prepareWhere, b.expand, b.prepareItems, b.prepareGroup, b.prepareOrder, b.prepareRowNumbers, b.checkGroup} {
		if err := step(); err != nil {
			return err
		}
	}
	return b.checkWhere()
}

// settle binds until no operator needs another column.
func (b *binder) settle() (*Query, error) {
	b.layout = &layout{}
	for {
		before := b.widths()
		q, err := b.assemble()
		if err != nil {
			return nil, err
		}
		if before == b.widths() {
			return q, nil
		}
	}
}

// widths sums up how many columns there are. They never become fewer, so that an equal sum is the same layout.
func (b *binder) widths() int {
	sum := b.layout.size()
	for _, t := range b.tables {
		sum += t.width()
	}
	return sum
}

func lower(s string) string { return strings.ToLower(s) }
