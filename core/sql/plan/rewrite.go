package plan

import "github.com/tidemark-db/tidemark/core/sql/ast"

// canonical returns e with every name replaced: a column by its canonical name, an alias by the expression it stands for.
func (b *binder) canonical(e ast.Expr, c clause) (ast.Expr, error) {
	return rewriting{b, c}.expr(e)
}

type rewriting struct {
	*binder
	clause clause
}

// expr rewrites e and remembers what it came from.
func (r rewriting) expr(e ast.Expr) (ast.Expr, error) {
	out, err := r.parts(e)
	if err == nil && out != e {
		if _, known := r.origin[out]; !known { // an alias stands for an expression that is known
			r.origin[out] = e
		}
	}
	return out, err
}

func (r rewriting) parts(e ast.Expr) (ast.Expr, error) {
	var err error
	switch e := e.(type) {
	case nil:
		return nil, nil
	case *ast.Name:
		return r.name(e, r.clause)
	case *ast.Star:
		return nil, e.Errorf("Unexpected expression: '%s'", ast.Text(e))
	case *ast.Unary:
		out := *e
		out.X, err = r.expr(e.X)
		return &out, err
	case *ast.Binary:
		out := *e
		err = r.all(&out.L, &out.R)
		return &out, err
	case *ast.Not:
		out := *e
		out.X, err = r.expr(e.X)
		return &out, err
	case *ast.Like:
		out := *e
		err = r.all(&out.X, &out.Pattern)
		return &out, err
	case *ast.Regex:
		out := *e
		err = r.all(&out.X, &out.Pattern)
		return &out, err
	case *ast.IsNull:
		out := *e
		out.X, err = r.expr(e.X)
		return &out, err
	case *ast.Between:
		out := *e
		err = r.all(&out.X, &out.Low, &out.High)
		return &out, err
	case *ast.In:
		return r.in(e)
	case *ast.Case:
		return r.branches(e)
	case *ast.Cast:
		out := *e
		out.X, err = r.expr(e.X)
		return &out, err
	case *ast.Extract:
		out := *e
		err = r.all(&out.X, &out.Zone)
		return &out, err
	case *ast.Call:
		return r.call(e)
	}
	return e, nil // literals, words, spans, calendar keywords, periods, placeholders: without names
}

// all rewrites expressions in place.
func (r rewriting) all(list ...*ast.Expr) error {
	for _, e := range list {
		if *e == nil {
			continue
		}
		out, err := r.expr(*e)
		if err != nil {
			return err
		}
		*e = out
	}
	return nil
}

// each rewrites a list into another.
func (r rewriting) each(list []ast.Expr) ([]ast.Expr, error) {
	out := make([]ast.Expr, len(list))
	for i, e := range list {
		var err error
		if out[i], err = r.expr(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r rewriting) in(e *ast.In) (ast.Expr, error) {
	out := *e
	if err := r.all(&out.X, &out.Set); err != nil {
		return nil, err
	}
	var err error
	out.List, err = r.each(e.List)
	return &out, err
}

func (r rewriting) branches(e *ast.Case) (ast.Expr, error) {
	out := *e
	if err := r.all(&out.X, &out.Else); err != nil {
		return nil, err
	}
	out.Whens = make([]ast.When, len(e.Whens))
	for i, w := range e.Whens {
		conditions, err := r.each(w.Conditions)
		if err != nil {
			return nil, err
		}
		then, err := r.expr(w.Then)
		if err != nil {
			return nil, err
		}
		out.Whens[i] = ast.When{Conditions: conditions, Then: then}
	}
	return &out, nil
}

// call rewrites the arguments of a function. Inside an aggregate a name is a column first: avg(value) AS "value" must not contain itself.
func (r rewriting) call(e *ast.Call) (ast.Expr, error) {
	out := *e
	if isAggregate(e.Name) {
		r.clause = columnFirst
	}
	var err error
	out.Args, err = r.each(e.Args)
	return &out, err
}

// conjuncts appends the terms of e that AND connects, from left to right.
func conjuncts(e ast.Expr, to []ast.Expr) []ast.Expr {
	if and, ok := e.(*ast.Binary); ok && and.Op == "and" {
		return conjuncts(and.R, conjuncts(and.L, to))
	}
	if e == nil {
		return to
	}
	return append(to, e)
}

// walk calls visit for e and what it consists of, until visit returns false.
func walk(e ast.Expr, visit func(ast.Expr) bool) bool {
	if e == nil {
		return true
	}
	if !visit(e) {
		return false
	}
	for _, part := range parts(e) {
		if !walk(part, visit) {
			return false
		}
	}
	return true
}

// parts are the operands of an expression; some may be nil.
func parts(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.Unary:
		return []ast.Expr{e.X}
	case *ast.Binary:
		return []ast.Expr{e.L, e.R}
	case *ast.Not:
		return []ast.Expr{e.X}
	case *ast.Like:
		return []ast.Expr{e.X, e.Pattern}
	case *ast.Regex:
		return []ast.Expr{e.X, e.Pattern}
	case *ast.IsNull:
		return []ast.Expr{e.X}
	case *ast.Between:
		return []ast.Expr{e.X, e.Low, e.High}
	case *ast.In:
		return append([]ast.Expr{e.X, e.Set}, e.List...)
	case *ast.Case:
		list := []ast.Expr{e.X, e.Else}
		for _, w := range e.Whens {
			list = append(append(list, w.Conditions...), w.Then)
		}
		return list
	case *ast.Cast:
		return []ast.Expr{e.X}
	case *ast.Extract:
		return []ast.Expr{e.X, e.Zone}
	case *ast.Call:
		return e.Args
	}
	return nil
}

// contains reports whether e has a part for which is is true.
func contains(e ast.Expr, is func(ast.Expr) bool) bool {
	return !walk(e, func(part ast.Expr) bool { return !is(part) })
}
