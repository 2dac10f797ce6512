package plan

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// notes remember how the statement spells the expressions of operators: an expression itself knows numbers of columns only.
type notes map[expr.Node]ast.Expr

func (n notes) note(node expr.Node, e ast.Expr) {
	if n != nil && node != nil && reflect.TypeOf(node).Comparable() {
		n[node] = e
	}
}

// Computed returns how many expressions of the query are computed row by row: each keeps the values of a batch.
func (q *Query) Computed() (n int) {
	for node := range q.notes {
		if expr.Computed(node) {
			n++
		}
	}
	return n
}

// Scans returns how many scans an operator reads from, which may all be open at one time.
func Scans(op Operator) (n int) {
	switch op := op.(type) {
	case *Scan:
		return 1
	case *View:
		return Scans(op.Query.Root)
	case *Join:
		for _, in := range op.Inputs {
			n += Scans(in.In)
		}
		return n
	case *Filter:
		return Scans(op.In)
	case *RowNumber:
		return Scans(op.In)
	case *Group:
		return Scans(op.In)
	case *Window:
		return Scans(op.In)
	case *Project:
		return Scans(op.In)
	case *Distinct:
		return Scans(op.In)
	case *Sort:
		return Scans(op.In)
	case *Limit:
		return Scans(op.In)
	}
	return 0
}

func (n notes) of(node expr.Node) string {
	if node == nil {
		return ""
	}
	if reflect.TypeOf(node).Comparable() && n[node] != nil {
		return ast.Text(n[node])
	}
	return "..."
}

func (n notes) list(nodes []expr.Node) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = n.of(node)
	}
	return strings.Join(texts, ", ")
}

func (n notes) keys(keys []Key) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = n.of(k.Expr)
		if k.Desc {
			texts[i] += " desc"
		}
	}
	return strings.Join(texts, ", ")
}

// Explain describes the plan of a query: an operator a line, each indented below the one that reads it.
func Explain(q *Query) []string {
	p := explanation{notes: q.notes}
	p.operator(q.Root, 0)
	return p.lines
}

type explanation struct {
	notes
	lines []string
}

// line adds a line of the parts that are not empty.
func (p *explanation) line(depth int, head string, details ...string) {
	var some []string
	for _, d := range details {
		if d != "" {
			some = append(some, d)
		}
	}
	if len(some) > 0 {
		head += ": " + strings.Join(some, "; ")
	}
	p.lines = append(p.lines, strings.Repeat("  ", depth)+head)
}

// labelled is "label text", "" without text.
func labelled(label, text string) string {
	if text == "" {
		return ""
	}
	return label + " " + text
}

func (p *explanation) operator(op Operator, depth int) {
	switch op := op.(type) {
	case *Row:
		p.line(depth, "row")
	case *Scan:
		p.scan(op, depth)
	case *Table:
		p.line(depth, "table "+op.Kind, labelled("names", strings.Join(op.Names, ", ")), labelled("types", strings.Join(op.Types, ", ")),
			timeText([]Interval{{Range: op.Range, HasFrom: op.Range.Start != core.AllTime.Start, HasTo: op.Range.End != core.AllTime.End}}), labelled("where", p.of(op.Filter)))
	case *View:
		p.line(depth, "view", timeText(op.Intervals), fillText(op.Fill), labelled("where", p.of(op.Filter)))
		inner := explanation{notes: op.Query.notes}
		inner.operator(op.Query.Root, depth+1)
		p.lines = append(p.lines, inner.lines...)
	case *Join:
		p.line(depth, "join", joinText(op), fillText(op.Detail))
		for _, in := range op.Inputs {
			p.operator(in.In, depth+1)
		}
	case *Filter:
		p.line(depth, "filter", p.of(op.Condition))
		p.operator(op.In, depth+1)
	case *RowNumber:
		condition := ""
		if op.Op != "" {
			condition = "number " + op.Op + " " + strconv.FormatInt(op.Number, 10)
		}
		p.line(depth, "row number", labelled("partition by", p.list(op.Partition)), labelled("order by", p.keys(op.Order)), condition)
		p.operator(op.In, depth+1)
	case *Group:
		p.line(depth, "group", labelled("by", p.list(op.Keys)), aggregateText(p.notes, op.Aggregates), labelled("carry", p.list(op.Carried)), periodText(op.Period))
		p.operator(op.In, depth+1)
	case *Window:
		var functions []string
		for _, f := range op.Functions {
			functions = append(functions, f.Func+"("+p.list(f.Args)+")")
		}
		p.line(depth, "window", labelled("partition by", p.list(op.Partition)), strings.Join(functions, ", "), frameText(op.Frame))
		p.operator(op.In, depth+1)
	case *Project:
		p.line(depth, "project", p.list(op.Exprs))
		p.operator(op.In, depth+1)
	case *Distinct:
		p.line(depth, "distinct")
		p.operator(op.In, depth+1)
	case *Sort:
		keep := ""
		if op.Keep > 0 {
			keep = "keep " + strconv.FormatInt(op.Keep, 10)
		}
		p.line(depth, "sort", labelled("by", p.keys(op.Keys)), keep)
		p.operator(op.In, depth+1)
	case *Limit:
		p.line(depth, "limit", limitText(op))
		p.operator(op.In, depth+1)
	}
}

func (p *explanation) scan(op *Scan, depth int) {
	var tags, columns []string
	for _, t := range op.Tags {
		tags = append(tags, t.Name+"="+strings.Join(t.Patterns, "|"))
	}
	for _, c := range op.Columns[ScanColumns:] {
		columns = append(columns, sourceText(c))
	}
	order := ""
	if op.Unordered {
		order = "in any order"
	}
	entities := op.Entities.Names
	for _, pattern := range op.Entities.Patterns {
		entities = append(entities[:len(entities):len(entities)], pattern)
	}
	p.line(depth, "scan "+strings.Join(op.Metrics, ", "), labelled("entities", strings.Join(entities, ", ")), labelled("group", op.Entities.Group), labelled("tags", strings.Join(tags, ", ")),
		labelled("series", p.of(op.Series)), timeText(op.Intervals), fillText(op.Fill), labelled("where", p.of(op.Filter)), labelled("columns", strings.Join(columns, ", ")), order)
}

func limitText(op *Limit) string {
	text := "all"
	if op.Count >= 0 {
		text = strconv.FormatInt(op.Count, 10)
	}
	if op.Skip > 0 {
		text += " after " + strconv.FormatInt(op.Skip, 10)
	}
	return text
}

func timeText(list []Interval) string {
	var texts []string
	for _, in := range list {
		from, to := "", ""
		if in.HasFrom {
			from = dates.FormatISO(in.Start)
		}
		if in.HasTo {
			to = dates.FormatISO(in.End)
		}
		if from+to != "" {
			texts = append(texts, "["+from+", "+to+")")
		}
	}
	return labelled("time", strings.Join(texts, " "))
}

func fillText(f *Interpolate) string {
	switch {
	case f == nil:
		return ""
	case f.Detail:
		return "interpolate detail " + f.Function + " " + f.Boundary
	}
	return fmt.Sprintf("interpolate %s %s %s", stepText(f.Step), f.Function, f.Boundary)
}

func periodText(p *Period) string {
	if p == nil {
		return ""
	}
	return "period " + stepText(p.Step)
}

// stepText is a length of time as statements have it.
func stepText(v dates.Interval) string { return fmt.Sprintf("%d %s", v.Count, v.Unit) }

func frameText(f Frame) string {
	switch {
	case f.Rows > 0:
		return "last " + strconv.FormatInt(f.Rows, 10) + " rows"
	case f.Span != nil:
		return "last " + stepText(*f.Span)
	}
	return ""
}

func aggregateText(n notes, list []Aggregate) string {
	texts := make([]string, len(list))
	for i, a := range list {
		args := n.list(a.Args)
		switch {
		case len(a.Args) == 0:
			args = "*"
		case a.Distinct:
			args = "distinct " + args
		}
		texts[i] = a.Func + "(" + args + ")"
	}
	return strings.Join(texts, ", ")
}

func joinText(op *Join) string {
	var texts []string
	for _, in := range op.Inputs[1:] {
		text := "inner"
		if in.Outer {
			text = "outer"
		}
		text += " on time"
		if in.UseEntity {
			text += ", entity"
		}
		if in.UseTags {
			text += ", tags"
		}
		texts = append(texts, text)
	}
	if op.ByMetric {
		texts = append(texts, "by metric")
	}
	return strings.Join(texts, "; ")
}

// sourceText is a column as statements name it.
func sourceText(s Source) string {
	names := map[SourceKind]string{SourceTime: "time", SourceValue: "value", SourceText: "text", SourceMetric: "metric", SourceEntity: "entity", SourceTags: "tags", SourceTagsJSON: "tags (json)",
		SourceEntityTags: "entity.tags", SourceEntityTagsJSON: "entity.tags (json)", SourceMetricTags: "metric.tags", SourceMetricTagsJSON: "metric.tags (json)",
		SourceInterval: "interval_number()", SourceLastTime: "last_time"}
	switch s.Kind {
	case SourceTag:
		return "tags." + s.Name
	case SourceEntityField:
		return "entity." + s.Name
	case SourceEntityTag:
		return "entity.tags." + s.Name
	case SourceMetricField:
		return "metric." + s.Name
	case SourceMetricTag:
		return "metric.tags." + s.Name
	case SourceRecord:
		return s.Name
	}
	return names[s.Kind]
}
