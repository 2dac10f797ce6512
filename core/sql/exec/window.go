package exec

import (
	"context"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// window computes analytic functions row by row. What looks back keeps its state from batch to batch; for what looks ahead rows wait until those that are looked
// at have come, see window_lead.go.
func (x *execution) window(ctx context.Context, op *plan.Window) stream {
	return x.windowOver(ctx, op, x.open(ctx, op.In))
}

func (x *execution) windowOver(ctx context.Context, op *plan.Window, in stream) stream {
	in = x.looksBack(ctx, op, in)
	if !looksAhead(op) {
		return in
	}
	return x.lookAhead(op, in)
}

// analytic is a function of a window that looks back at most.
type analytic interface {
	// rows returns the values for the rows of w, valid until the next call.
	rows(w *windowRows) (*column.Vector, error)
	// size is how many bytes are kept from row to row.
	size() int64
}

// windowRows is a batch and where its rows lie.
type windowRows struct {
	*column.Batch
	first  int64   // number of the first row, over all batches
	starts []int64 // of each row: the number of the first row of its partition
	frames []int64 // likewise of its frame
}

// windowState follows partitions and frames.
type windowState struct {
	windowRows
	x         *execution
	op        *plan.Window
	partition *keying
	changes   []bool
	times     []int64 // of the rows from oldest on, when frames are spans of time
	oldest    int64
}

// looksBack yields the columns of the input and one for each function, then what window_lead.go needs.
func (x *execution) looksBack(ctx context.Context, op *plan.Window, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		s := windowState{x: x, op: op, partition: x.newKeying(keysOf(op.Partition))}
		s.starts = append(s.starts, 0)
		functions, err := x.newAnalytics(op)
		if err != nil {
			yield(nil, err)
			return
		}
		kept := account{memory: x.Memory}
		defer kept.release()
		for b, err := range in {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = s.load(b)
			}
			out := &column.Batch{}
			if err == nil {
				out, err = s.compute(functions, &kept)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

func (x *execution) newAnalytics(op *plan.Window) ([]analytic, error) {
	var functions []analytic
	for i := range op.Functions {
		f := &op.Functions[i]
		switch offset, ahead := offsetOf(f); {
		case ahead:
			functions = append(functions, later{})
		case f.Func == "lag" || f.Func == "lead":
			functions = append(functions, &lag{x: x, f: f, offset: offset, out: column.NewBuilder(f.Type)})
		case f.Func == "first_value":
			functions = append(functions, &firstValue{x: x, f: f, out: column.NewBuilder(f.Type)})
		default:
			framed, err := x.newFramed(f, op.Frame)
			if err != nil {
				return nil, err
			}
			functions = append(functions, framed)
		}
	}
	return functions, nil
}

// load finds partitions and frames of the rows of b.
func (s *windowState) load(b *column.Batch) error {
	start := s.starts[len(s.starts)-1]
	if s.Batch != nil {
		s.first += int64(s.Len)
	}
	s.Batch = b
	if err := s.partition.load(b); err != nil {
		return err
	}
	s.starts = s.starts[:0]
	s.changes = s.partition.changes(s.changes, b.Len)
	for i, changed := range s.changes {
		if changed {
			start = s.first + int64(i)
		}
		s.starts = append(s.starts, start)
	}
	if b.Len == 0 {
		s.starts = append(s.starts, start) // it is remembered here
	}
	return s.frame()
}

// frame finds the first row of each frame.
func (s *windowState) frame() error {
	s.frames = append(s.frames[:0], s.starts[:s.Len]...)
	switch f := s.op.Frame; {
	case f.Span != nil:
		return s.span()
	case f.Rows > 0:
		for i := range s.frames {
			s.frames[i] = max(s.frames[i], s.first+int64(i)-f.Rows+1)
		}
	}
	return nil
}

// span finds the frames of the rows later than the current one minus a span. Times ascend in a partition.
func (s *windowState) span() error {
	v, err := s.op.Time.Eval(s.x.env, s.Batch)
	if err != nil {
		return err
	}
	for i := range s.Len {
		n := s.first + int64(i)
		if s.starts[i] == n {
			s.times, s.oldest = s.times[:0], n
		}
		t := int64(math.MinInt64)
		if !v.IsNull(i) && v.Ints != nil {
			t = v.Ints[v.Index(i)]
		}
		s.times = append(s.times, t)
		after := int64(s.op.Frame.Span.Before(core.Time(t), s.x.env.Zone))
		passed := 0
		for s.times[passed] <= after && passed < len(s.times)-1 {
			passed++
		}
		s.times, s.oldest = s.times[passed:], s.oldest+int64(passed)
		s.frames[i] = s.oldest
	}
	return nil
}

// compute returns the rows with the values of all functions.
func (s *windowState) compute(functions []analytic, kept *account) (*column.Batch, error) {
	out := &column.Batch{Len: s.Len, Columns: append([]*column.Vector(nil), s.Columns...)}
	size := int64(cap(s.times)) * 8
	for _, f := range functions {
		v, err := f.rows(&s.windowRows)
		if err != nil {
			return nil, err
		}
		out.Columns = append(out.Columns, v)
		size += f.size()
	}
	if size > kept.taken {
		if err := kept.grow(size - kept.taken); err != nil {
			return nil, err
		}
	}
	return out, s.appendAhead(out)
}

// offsetOf returns how many rows lag and lead look away, and whether that is ahead.
func offsetOf(f *plan.Analytic) (offset int64, ahead bool) {
	switch f.Func {
	case "lag":
		offset = f.Offset
	case "lead":
		offset = -f.Offset
	default:
		return 0, false
	}
	if offset < 0 {
		return -offset, true
	}
	return offset, false
}

// lag is the value of an expression some rows before.
type lag struct {
	x      *execution
	f      *plan.Analytic
	offset int64
	out    *column.Builder
	recent []column.Value // the last rows before the batch, at most offset of them
	texts  int64          // bytes of their texts
}

func (l *lag) size() int64 { return int64(cap(l.recent))*64 + l.texts }

func (l *lag) rows(w *windowRows) (*column.Vector, error) {
	v, err := l.f.Args[0].Eval(l.x.env, w.Batch)
	if err != nil {
		return nil, err
	}
	otherwise, err := evalOrNull(l.x, l.f.Default, w.Batch)
	if err != nil {
		return nil, err
	}
	l.out.Reset(l.f.Type)
	for i := range w.Len {
		switch from := int64(i) - l.offset; {
		case w.first+from < w.starts[i]:
			l.out.AppendRow(otherwise, i)
		case from >= 0:
			l.out.AppendRow(v, int(from))
		default:
			l.out.Append(l.recent[int64(len(l.recent))+from])
		}
	}
	l.remember(v, w.Len)
	return l.out.Vector(), nil
}

func (l *lag) remember(v *column.Vector, n int) {
	keep := int(min(int64(n), l.offset))
	if drop := int64(len(l.recent)+keep) - l.offset; drop > 0 {
		for _, old := range l.recent[:drop] {
			l.texts -= int64(len(old.Text))
		}
		l.recent = append(l.recent[:0], l.recent[drop:]...)
	}
	for i := n - keep; i < n; i++ {
		value := v.Value(i).Clone()
		l.recent = append(l.recent, value)
		l.texts += int64(len(value.Text))
	}
}

// evalOrNull evaluates an expression that may be missing, which is NULL.
func evalOrNull(x *execution, node expr.Node, b *column.Batch) (*column.Vector, error) {
	if node == nil {
		return &column.Vector{Type: column.Null, Const: true, Len: b.Len}, nil
	}
	return node.Eval(x.env, b)
}

// firstValue is the value of an expression in the first row of the partition.
type firstValue struct {
	x     *execution
	f     *plan.Analytic
	out   *column.Builder
	value column.Value
}

func (f *firstValue) size() int64 { return int64(len(f.value.Text)) }

func (f *firstValue) rows(w *windowRows) (*column.Vector, error) {
	v, err := f.f.Args[0].Eval(f.x.env, w.Batch)
	if err != nil {
		return nil, err
	}
	f.out.Reset(f.f.Type)
	for i := range w.Len {
		if w.starts[i] == w.first+int64(i) {
			f.value = v.Value(i).Clone()
		}
		f.out.Append(f.value)
	}
	return f.out.Vector(), nil
}
