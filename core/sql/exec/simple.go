package exec

import (
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// row yields one row without columns.
func (x *execution) row() stream {
	return func(yield func(*column.Batch, error) bool) { yield(&column.Batch{Len: 1}, nil) }
}

// filter keeps the rows of in for which the condition is true; nil keeps all.
func (x *execution) filter(condition expr.Node, in stream) stream {
	if condition == nil {
		return in
	}
	return func(yield func(*column.Batch, error) bool) {
		s := newSieve(condition)
		for b, err := range in {
			if err == nil {
				b, err = s.pass(x.env, b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if b.Len > 0 && !yield(b, nil) {
				return
			}
		}
	}
}

// sieve keeps rows for which a condition is true. It serves one goroutine.
type sieve struct {
	condition expr.Node
	pick      []int32
	out       column.Batch
}

func newSieve(condition expr.Node) *sieve { return &sieve{condition: condition} }

// pass returns the rows of b that are kept: b itself when all are. The result is valid until the next call.
func (s *sieve) pass(env *expr.Env, b *column.Batch) (*column.Batch, error) {
	if s == nil || b.Len == 0 {
		return b, nil
	}
	v, err := s.condition.Eval(env, b)
	if err != nil {
		return nil, err
	}
	if v.Const || v.Type == column.Null {
		if isTrue(v, 0) {
			return b, nil
		}
		s.out.Len = 0
		return &s.out, nil
	}
	s.pick = v.True(s.pick[:0])
	switch len(s.pick) {
	case b.Len:
		return b, nil
	case 0:
		s.out.Len = 0
		return &s.out, nil
	}
	gather(&s.out, b, s.pick)
	return &s.out, nil
}

// isTrue reports whether row i of a condition is true, neither false nor NULL.
func isTrue(v *column.Vector, i int) bool {
	return v.Ints != nil && !v.IsNull(i) && v.Ints[v.Index(i)] != 0
}

// project computes columns.
func (x *execution) project(p *plan.Project, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		out := &column.Batch{Columns: make([]*column.Vector, len(p.Exprs))}
		for b, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			out.Len = b.Len
			if err := x.eval(p.Exprs, b, out.Columns); err != nil {
				yield(nil, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// eval sets dst to the values of nodes for the rows of b.
func (x *execution) eval(nodes []expr.Node, b *column.Batch, dst []*column.Vector) (err error) {
	for i, node := range nodes {
		if dst[i], err = node.Eval(x.env, b); err != nil {
			return err
		}
	}
	return nil
}

// cloned returns copies of nodes for another goroutine.
func cloned(nodes []expr.Node) []expr.Node {
	out := make([]expr.Node, len(nodes))
	for i, node := range nodes {
		if node != nil {
			out[i] = node.Clone()
		}
	}
	return out
}

// limit skips rows and then yields at most Count.
func (x *execution) limit(l *plan.Limit, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		skip, left := l.Skip, l.Count
		if left == 0 {
			return
		}
		var part column.Batch
		for b, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			if skip >= int64(b.Len) {
				skip -= int64(b.Len)
				continue
			}
			s := span{int(skip), b.Len}
			if left >= 0 && int64(s.to-s.from) > left {
				s.to = s.from + int(left)
			}
			if skip = 0; s != (span{0, b.Len}) {
				slice(&part, b, s)
				b = &part
			}
			if !yield(b, nil) {
				return
			}
			if left -= int64(s.to - s.from); l.Count >= 0 && left <= 0 {
				return
			}
		}
	}
}
