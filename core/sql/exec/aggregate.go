package exec

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// aggregates computes the aggregate functions of many groups at once. Groups are numbered from 0.
type aggregates struct {
	account
	x       *execution
	plan    []plan.Aggregate
	states  []state
	args    []arguments
	charged int64 // of what the states hold
	groups  int
}

// state is what one function remembers of each group. Rows come in any order of time, but those of one series ascend.
type state interface {
	// resize makes room for groups 0 to n-1, those that are added without rows.
	resize(n int)
	// reset forgets all groups, but keeps their memory.
	reset()
	// add takes rows: row i belongs to group ids[i].
	add(ids []int32, a *arguments)
	// merge takes the groups of another state of the same function: group i of it belongs to ids[i].
	merge(ids []int32, from state)
	// size is how many bytes are held.
	size() int64
	// result returns the values of the groups that order lists. before is the group of the previous period with the same other keys, -1 for none; nil without
	// periods.
	result(order, before []int32) *column.Vector
}

// arguments are the rows that a state takes.
type arguments struct {
	n      int
	x, y   []float64 // NaN where there is no usable number
	whole  []int64   // x as whole numbers; nil when they are not, or some row has none
	exact  []core.DecimalAt
	vector *column.Vector // of the first argument
	times  []int64        // nil: the order of the rows counts instead
	rank   int32          // decides between rows of equal times

	floats [2][]float64
	spread []int64
}

// newAggregates returns the states of some functions, of no group yet.
func (x *execution) newAggregates(functions []plan.Aggregate) (*aggregates, error) {
	g := &aggregates{account: account{memory: x.Memory}, x: x, plan: functions, args: make([]arguments, len(functions))}
	for i := range functions {
		s, err := newState(&functions[i])
		if err != nil {
			return nil, err
		}
		g.states = append(g.states, s)
	}
	return g, nil
}

func newState(f *plan.Aggregate) (state, error) {
	s, err := newPlainState(f)
	if err == nil && f.Distinct {
		s = &distinctState{state: s}
	}
	return s, err
}

func newPlainState(f *plan.Aggregate) (state, error) {
	switch f.Func {
	case "count":
		return &countState{all: len(f.Args) == 0}, nil
	case "sum", "avg":
		return &sumState{of: f.Type, mean: f.Func == "avg"}, nil
	case "min", "max":
		return &extremeState{edgeState: newEdges(f), max: f.Func == "max"}, nil
	case "min_value_time", "max_value_time":
		return &extremeState{edgeState: newEdges(f), max: f.Func == "max_value_time", time: true}, nil
	case "first", "last":
		return &firstState{edgeState: newEdges(f), last: f.Func == "last"}, nil
	case "product":
		return &productState{of: f.Type}, nil
	case "stddev":
		return &deviationState{of: f.Type, population: f.Population}, nil
	case "median":
		return &rankState{keptState: keptState{of: f.Type}, percent: 50}, nil
	case "percentile":
		return &rankState{keptState: keptState{of: f.Type}, percent: f.Percent}, nil
	case "median_abs_dev":
		return &rankState{keptState: keptState{of: f.Type}, deviation: true}, nil
	case "delta", "counter":
		return &stepState{timedState: timedState{of: f.Type}, counter: f.Func == "counter"}, nil
	case "wavg", "wtavg":
		return &weightedState{timedState: timedState{of: f.Type}, byTime: f.Func == "wtavg"}, nil
	case "correl", "covar", "regr_slope", "regr_intercept":
		return &pairState{of: f.Type, kind: f.Func, population: f.Population}, nil
	}
	return nil, core.Errorf(core.Internal, "sql: aggregate function %q cannot be run", f.Func)
}

func newEdges(f *plan.Aggregate) edgeState {
	return edgeState{of: f.Type, digits: f.Args[0].Type() == column.Decimal}
}

// keepValues reports whether some function keeps every value.
func (g *aggregates) keepValues() bool {
	for _, s := range g.states {
		switch s.(type) {
		case *rankState, *stepState, *weightedState, *distinctState:
			return true
		}
	}
	return false
}

// roundInOrder reports whether the last digits of some function depend on the order of the rows.
func (g *aggregates) roundInOrder() bool {
	for _, s := range g.states {
		switch s.(type) {
		case *productState, *pairState:
			return true
		}
	}
	return false
}

// resize makes room for n groups.
func (g *aggregates) resize(n int) error {
	if n <= g.groups {
		return nil
	}
	g.groups = n
	for _, s := range g.states {
		s.resize(n)
	}
	return g.charge()
}

// reset forgets all groups, but keeps their memory, which stays charged.
func (g *aggregates) reset() {
	g.groups = 0
	for _, s := range g.states {
		s.reset()
	}
}

// charge takes the memory that the states have grown by.
func (g *aggregates) charge() error {
	var size int64
	for _, s := range g.states {
		size += s.size()
	}
	if size <= g.charged {
		return nil
	}
	err := g.grow(size - g.charged)
	if err == nil {
		g.charged = size
	}
	return err
}

// add takes the rows of b: row i belongs to group ids[i], which there is.
func (g *aggregates) add(ids []int32, b *column.Batch) error {
	for i := range g.plan {
		if err := g.load(i, b); err != nil {
			return err
		}
		g.states[i].add(ids, &g.args[i])
	}
	return g.charge()
}

// load evaluates the arguments of function i.
func (g *aggregates) load(i int, b *column.Batch) error {
	f, a := &g.plan[i], &g.args[i]
	a.n, a.whole, a.exact, a.times, a.vector = b.Len, nil, nil, nil, nil
	if f.Time != nil {
		v, err := f.Time.Eval(g.x.env, b)
		if err != nil {
			return err
		}
		a.times = a.instants(v)
	}
	for j, arg := range f.Args {
		v, err := arg.Eval(g.x.env, b)
		if err != nil {
			return err
		}
		switch {
		case j > 0:
			a.y = a.numbers(v, 1)
		case f.Func == "count":
			a.vector = v
		default:
			a.vector = v
			a.x = a.numbers(v, 0)
			a.whole, a.exact = digitsOf(v, b.Len)
		}
	}
	return nil
}

// digitsOf returns the first n rows as whole numbers, or else those of them that have more digits than a double. Booleans are no numbers.
func digitsOf(v *column.Vector, n int) (whole []int64, exact []core.DecimalAt) {
	switch {
	case v.Type == column.Boolean:
		return nil, nil
	case v.Ints != nil && !v.Const && v.Nulls == nil:
		return v.Ints[:n], nil
	case v.Type == column.Timestamp:
		milliseconds := *v
		milliseconds.Type = column.Bigint
		v = &milliseconds
	}
	return nil, v.Digits(n)
}

// instants returns the times of the rows.
func (a *arguments) instants(v *column.Vector) []int64 {
	if v.Ints != nil && !v.Const && v.Nulls == nil {
		return v.Ints[:v.Len]
	}
	a.spread = a.spread[:0]
	for i := range v.Len {
		var t int64
		if v.Ints != nil && !v.IsNull(i) {
			t = v.Ints[v.Index(i)]
		}
		a.spread = append(a.spread, t)
	}
	return a.spread
}

// numbers returns the rows as numbers, NaN for those that are none; texts are parsed.
func (a *arguments) numbers(v *column.Vector, which int) []float64 {
	if v.Floats != nil && !v.Const && v.Nulls == nil {
		return v.Floats[:v.Len]
	}
	out := a.floats[which][:0]
	for i := range v.Len {
		out = append(out, v.Float(i))
	}
	a.floats[which] = out
	return out
}

// time returns the time of row i.
func (a *arguments) time(i int) int64 {
	if a.times == nil {
		return 0
	}
	return a.times[i]
}

// merge takes the groups of others: group i of them belongs to ids[i], which there is.
func (g *aggregates) merge(ids []int32, others *aggregates) error {
	for i, s := range g.states {
		s.merge(ids, others.states[i])
	}
	return g.charge()
}

// columns returns a column for each function: the values of the groups that order lists.
func (g *aggregates) columns(order, before []int32) []*column.Vector {
	out := make([]*column.Vector, len(g.states))
	for i, s := range g.states {
		out[i] = s.result(order, before)
	}
	return out
}

// answer collects results of one function.
type answer struct {
	column.Vector
	whole bool // of the type whose values are whole numbers
}

func newAnswer(of column.Type, n int) *answer {
	v := &answer{Vector: column.Vector{Type: of, Len: n}}
	switch of {
	case column.Bigint, column.Timestamp, column.Integer, column.Smallint:
		v.Ints, v.whole = make([]int64, n), true
	default:
		v.Floats = make([]float64, n)
	}
	return v
}

func (v *answer) setFloat(i int, f float64) {
	if v.whole {
		v.Ints[i] = calc.Saturated(f)
		return
	}
	v.Floats[i] = f
}

// setEdge is the value of a row as it is, with all its digits.
func (v *answer) setEdge(i int, e *edge) {
	if v.whole && e.isWhole && e.exponent == 0 {
		v.Ints[i] = e.whole
		return
	}
	v.setFloat(i, e.value)
	if !v.whole && e.excess() != 0 {
		v.Exact = append(v.Exact, core.DecimalAt{Index: uint32(i), Decimal: core.Decimal{Significand: e.whole, Exponent: int32(e.exponent)}})
	}
}

// answers is the result of a function that has a number for each group, or none.
func answers[P any](of column.Type, order []int32, parts []P, value func(*P) (f float64, some bool)) *column.Vector {
	v := newAnswer(of, len(order))
	for i, g := range order {
		if f, some := value(&parts[g]); some {
			v.setFloat(i, f)
		} else {
			v.setNone(i)
		}
	}
	return &v.Vector
}

// setNone is the result of a function without usable rows: NaN for those of type double, else NULL.
func (v *answer) setNone(i int) {
	if v.Type == column.Double {
		v.Floats[i] = nan
		return
	}
	if v.Nulls == nil {
		v.Nulls = make([]bool, v.Len)
	}
	v.Nulls[i] = true
}

// distinctState passes on each value of a group once.
type distinctState struct {
	state
	seen map[string]struct{}
	key  []byte
	held int64
	ids  []int32
	one  arguments
}

func (d *distinctState) add(ids []int32, a *arguments) {
	if d.seen == nil {
		d.seen = map[string]struct{}{}
	}
	pick := make([]int32, 0, a.n)
	d.ids = d.ids[:0]
	for i, id := range ids {
		if a.vector == nil || a.vector.IsMissing(i) {
			continue
		}
		d.key = append(d.key[:0], byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		d.key = appendKey(d.key, a.vector, i)
		if _, ok := d.seen[string(d.key)]; ok {
			continue
		}
		d.seen[string(d.key)] = struct{}{}
		d.held += int64(len(d.key)) + 48
		pick = append(pick, int32(i))
		d.ids = append(d.ids, id)
	}
	if len(pick) == 0 {
		return
	}
	o := &d.one
	o.n, o.rank = len(pick), a.rank
	o.vector = a.vector.Gather(pick, nil)
	o.x, o.y, o.times, o.whole, o.exact = choose(a.x, pick), choose(a.y, pick), choose(a.times, pick), choose(a.whole, pick), chooseDigits(a.exact, pick)
	d.state.add(d.ids, o)
}

func choose[T any](list []T, pick []int32) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(pick))
	for i, from := range pick {
		out[i] = list[from]
	}
	return out
}

// chooseDigits is choose of numbers that not every row has.
func chooseDigits(list []core.DecimalAt, pick []int32) (out []core.DecimalAt) {
	v := column.Vector{Exact: list}
	for i, from := range pick {
		if d, ok := v.ExactAt(int(from)); ok {
			out = append(out, core.DecimalAt{Index: uint32(i), Decimal: d})
		}
	}
	return out
}

func (d *distinctState) reset() {
	d.seen, d.held = nil, 0
	d.state.reset()
}

func (d *distinctState) size() int64 { return d.held + d.state.size() }

// merge is never asked for: values of two sets cannot be told apart afterwards.
func (d *distinctState) merge([]int32, state) {}
