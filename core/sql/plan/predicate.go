package plan

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

func (sc *scope) like(e *ast.Like) (expr.Node, error) {
	list, err := sc.all([]ast.Expr{e.X, e.Pattern})
	if err != nil {
		return nil, err
	}
	return expr.Like(list[0], list[1], e.Escape)
}

func (sc *scope) regex(e *ast.Regex) (expr.Node, error) {
	list, err := sc.all([]ast.Expr{e.X, e.Pattern})
	if err != nil {
		return nil, err
	}
	return expr.Regex(list[0], list[1], e.Pattern.At())
}

func (sc *scope) in(e *ast.In) (expr.Node, error) {
	x, err := sc.bind(e.X)
	if err != nil {
		return nil, err
	}
	list, err := sc.elements(e.List)
	if err != nil {
		return nil, err
	}
	switch set := e.Set.(type) {
	case *ast.Name:
		groups, err := sc.bind(set)
		if err != nil {
			return nil, err
		}
		return expr.InGroups(groups, []expr.Node{x}), nil
	case *ast.Call:
		args, err := sc.all(set.Args)
		if err != nil {
			return nil, err
		}
		if set.Name == "metrics" {
			return expr.InMetrics(x, args), nil
		}
		if len(args) != 1 {
			return nil, set.Errorf("collection takes one argument, the name of a collection")
		}
		if values, ok, err := sc.nameCollection(e.X, set); ok || err != nil {
			return expr.In(x, values), err
		}
		return expr.InCollection(x, args[0], set.Start), nil
	}
	if sc.isGroups(e.X) {
		return expr.InGroups(x, list), nil
	}
	if _, literal := e.X.(*ast.Literal); literal || sc.isTime(e.X, x) {
		all := append([]expr.Node{x}, list...)
		err = sc.comparable(append([]ast.Expr{e.X}, e.List...), all)
		x, list = all[0], all[1:]
	} else if sc.isName(e.X) {
		for i := range list {
			if list[i], err = sc.stored(e.List[i], list[i]); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return expr.In(x, list), nil
}

// elements binds a list that may be very long: of its literals nothing is noted.
func (sc *scope) elements(list []ast.Expr) ([]expr.Node, error) {
	out := make([]expr.Node, len(list))
	for i, e := range list {
		l, ok := e.(*ast.Literal)
		if ok {
			out[i] = expr.Literal(l)
			continue
		}
		var err error
		if out[i], err = sc.bind(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nameCollection returns the values of a collection that names of entities or metrics are compared with, in the case of these; ok is false for other
// operands and for a collection that is found only when the query runs, or not at all.
func (sc *scope) nameCollection(x ast.Expr, set *ast.Call) (nodes []expr.Node, ok bool, err error) {
	name, isText := textOf(set.Args[0])
	if !isText || !sc.isName(x) {
		return nil, false, nil
	}
	values, ok, err := sc.env.Facts.Collection(name)
	for _, v := range values {
		nodes = append(nodes, expr.Const(column.TextValue(lower(v))))
	}
	return nodes, ok, err
}

// isGroups reports whether an expression is the column entity.groups.
func (sc *scope) isGroups(e ast.Expr) bool {
	n, ok := e.(*ast.Name)
	if !ok {
		return false
	}
	r, ok := sc.resolve(n)
	return ok && r.source.Kind == SourceEntityField && r.source.Name == "groups"
}

// comparable reads the texts among values that are compared with each other as dates, in place, when one of the values is an instant.
func (sc *scope) comparable(list []ast.Expr, nodes []expr.Node) error {
	for i, e := range list {
		if sc.isTime(e, nodes[i]) {
			return sc.instants(list, nodes)
		}
	}
	return nil
}

func (sc *scope) between(e *ast.Between) (expr.Node, error) {
	if e.View != nil {
		return sc.betweenView(e)
	}
	list, err := sc.all([]ast.Expr{e.X, e.Low, e.High})
	if err != nil {
		return nil, err
	}
	if err := sc.comparable([]ast.Expr{e.X, e.Low, e.High}, list); err != nil {
		return nil, err
	}
	return expr.Between(list[0], expr.Bounds{Low: list[1], High: list[2], LowExcl: e.LowExcl, HighExcl: e.HighExcl}), nil
}

// betweenView binds BETWEEN (SELECT ...) where it does not bound the time of the whole query: the instants are pairs, of which the last may lack its end.
func (sc *scope) betweenView(e *ast.Between) (expr.Node, error) {
	x, err := sc.bind(e.X)
	if err != nil {
		return nil, err
	}
	list, err := sc.times(e.View)
	if err != nil {
		return nil, err
	}
	any := expr.Const(column.BoolValue(false))
	at := func(t core.Time) expr.Node { return expr.Const(column.IntValue(column.Bigint, int64(t))) }
	for len(list) > 1 {
		if list[1] < list[0] {
			return nil, e.View.Errorf("Start date must be less than end date")
		}
		any = expr.Or(any, expr.Between(x, expr.Bounds{Low: at(list[0]), High: at(list[1])}))
		list = list[2:]
	}
	if len(list) == 1 {
		any = expr.Or(any, expr.Compare(">=", x, at(list[0])))
	}
	return any, nil
}

func (sc *scope) branches(e *ast.Case) (expr.Node, error) {
	var x, otherwise expr.Node
	var err error
	if e.X != nil {
		if x, err = sc.bind(e.X); err != nil {
			return nil, err
		}
	}
	if e.Else != nil {
		if otherwise, err = sc.bind(e.Else); err != nil {
			return nil, err
		}
	}
	whens := make([]expr.When, len(e.Whens))
	for i, w := range e.Whens {
		if whens[i].Then, err = sc.bind(w.Then); err != nil {
			return nil, err
		}
		if whens[i].Conditions, err = sc.alternatives(e.X, x, w.Conditions); err != nil {
			return nil, err
		}
	}
	return expr.Case(x, whens, otherwise), nil
}

// alternatives binds the conditions of a WHEN: what x, the operand of CASE bound as n, is compared with, or without x what must be true.
func (sc *scope) alternatives(x ast.Expr, n expr.Node, list []ast.Expr) ([]expr.Node, error) {
	nodes, err := sc.all(list)
	if err != nil {
		return nil, err
	}
	if x != nil {
		switch {
		case sc.isTime(x, n):
			err = sc.instants(list, nodes)
		case sc.isName(x):
			for i := range nodes {
				if nodes[i], err = sc.stored(list[i], nodes[i]); err != nil {
					break
				}
			}
		}
		return nodes, err
	}
	for i, c := range nodes {
		if !sc.isBoolean(c) {
			return nil, list[i].At().Errorf("Invalid expression: '%s'", sc.text(list[i]))
		}
	}
	return nodes, nil
}
