package exec

import (
	"cmp"
	"context"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// group makes one row of the rows with equal keys.
func (x *execution) group(ctx context.Context, op *plan.Group) stream {
	return func(yield func(*column.Batch, error) bool) {
		parted, err := x.groupAtOnce(ctx, op, yield)
		if parted != nil && err == nil {
			err = parted.run(ctx, yield)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// groupAtOnce yields all groups, or returns how to come to them in parts: then none was yielded, and nothing is held.
func (x *execution) groupAtOnce(ctx context.Context, op *plan.Group, yield func(*column.Batch, error) bool) (*partedGroup, error) {
	g, err := x.newGrouping(op)
	if err != nil {
		return nil, err
	}
	defer g.close()
	taken, err := g.scanSeries(ctx)
	if err == nil && !taken {
		err = g.take(x.open(ctx, op.In))
	}
	var out *column.Batch
	if err == nil && g.finished == nil {
		out, err = g.rows(ctx)
	}
	if short := isShortage(err) || err == nil && out != nil && !x.Memory.left(roomAbove); short && g.divisible() {
		return x.newPartedGroup(g), ctx.Err()
	}
	if err == nil && g.finished != nil {
		err = g.finished.giveWay(2)
	}
	if err != nil {
		return nil, err
	}
	if g.finished != nil {
		g.finished.rows(ctx)(yield)
	} else {
		inSlices(out, column.Size)(yield)
	}
	return nil, nil
}

// roomAbove is the part of the memory that is left to the operators above, which at least have to hold a batch before they can go on in files.
const roomAbove = 8

// inSlices yields the rows of a batch, at most n at a time.
func inSlices(all *column.Batch, n int) stream {
	return func(yield func(*column.Batch, error) bool) {
		var part column.Batch
		for from := 0; from < all.Len; from += n {
			slice(&part, all, span{from, min(from+n, all.Len)})
			if !yield(&part, nil) {
				return
			}
		}
	}
}

// grouping collects groups by the bytes of their keys. It serves one goroutine.
type grouping struct {
	account
	x       *execution
	plan    *plan.Group
	order   []int // the keys in the order in which they sort
	index   map[string]int32
	names   []string // key of each group, as bytes
	kept    *rows    // keys, then what is carried, of the first row of each group
	states  *aggregates
	periods *periods // nil = none

	// Of each group, with periods.
	places    []groupPlace
	bases     map[string]int32 // the other keys, as bytes
	baseNames []string

	keys     []*column.Vector // of the batch at hand
	carried  []*column.Vector
	ids      []int32
	key      []byte
	base     []byte
	first    column.Batch // keys and what is carried, to keep the first rows
	finished *sorter      // the rows of all groups, when they were made already; nil = they were not
	ranks    []int32      // of the series of the first row of each group; nil: rows come in their order
	rank     int32
	// All groups are periods of one series, in the order of time: places alone tells them apart. The row first has their other keys.
	ascending bool
	workers   usage // of the groupings that were to become part of this one
}

// groupPlace says where a group lies among those with the same other keys.
type groupPlace struct {
	base, interval, grid int32
	start                core.Time
	null                 bool // the time of its rows is NULL
}

func (x *execution) newGrouping(op *plan.Group) (*grouping, error) {
	g := &grouping{account: account{memory: x.Memory}, x: x, plan: op, index: map[string]int32{}, kept: x.newRows()}
	var err error
	if g.states, err = x.newAggregates(op.Aggregates); err != nil {
		return nil, err
	}
	if op.TagsKey >= 0 && len(op.Keys) > 0 {
		g.order = append(g.order, op.TagsKey)
	}
	for i := range op.Keys {
		if i != op.TagsKey {
			g.order = append(g.order, i)
		}
	}
	if op.Period != nil && op.PeriodKey >= 0 {
		g.periods = x.newPeriods(op.Period)
		g.periods.first = math.MaxInt64
		g.bases = map[string]int32{}
	}
	g.keys = make([]*column.Vector, len(op.Keys))
	g.carried = make([]*column.Vector, len(op.Carried))
	return g, nil
}

func (g *grouping) close() {
	if g.finished != nil {
		g.finished.close()
	}
	g.kept.release()
	g.states.release()
	if g.periods != nil {
		g.periods.release()
	}
	g.release()
}

// reset forgets all groups, but keeps the memory of the states.
func (g *grouping) reset() {
	clear(g.index)
	clear(g.bases)
	g.names, g.places, g.baseNames = g.names[:0], g.places[:0], g.baseNames[:0]
	g.kept.reset()
	g.states.reset()
	g.release()
}

// take groups the rows of in, which it may read twice.
func (g *grouping) take(in stream) error {
	if g.periods != nil && g.periods.needsFirst() && g.periods.first == math.MaxInt64 {
		if err := g.findFirsts(in); err != nil {
			return err
		}
	}
	for b, err := range in {
		if err == nil {
			err = g.add(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add takes rows.
func (g *grouping) add(b *column.Batch) error {
	if b.Len == 0 {
		return nil
	}
	if err := g.x.eval(g.plan.Keys, b, g.keys); err != nil {
		return err
	}
	if err := g.x.eval(g.plan.Carried, b, g.carried); err != nil {
		return err
	}
	g.first.Len = b.Len
	g.first.Columns = append(append(g.first.Columns[:0], g.keys...), g.carried...)
	g.ids = grown(g.ids[:0], b.Len)
	dropped, err := g.assign(b)
	if err != nil {
		return err
	}
	if err := g.states.resize(len(g.names)); err != nil {
		return err
	}
	return g.addAssigned(b, dropped)
}

// addAssigned takes rows whose groups are known; dropped says whether some have none.
func (g *grouping) addAssigned(b *column.Batch, dropped bool) error {
	if !dropped {
		return g.states.add(g.ids, b)
	}
	var pick []int32
	ids := g.ids[:0]
	for i, id := range g.ids {
		if id >= 0 {
			pick, ids = append(pick, int32(i)), append(ids, id)
		}
	}
	var left column.Batch
	gather(&left, b, pick)
	return g.states.add(ids, &left)
}

// assign finds the group of each row; -1 for those that lie in no period, of which dropped tells.
func (g *grouping) assign(b *column.Batch) (dropped bool, err error) {
	if g.periods != nil {
		return g.assignPeriods(b)
	}
	if g.steady(-1) {
		id, err := g.groupOf(g.keyOf(0), 0)
		for i := range g.ids {
			g.ids[i] = id
		}
		return false, err
	}
	last := int32(-1)
	for i := range b.Len {
		key := g.keyOf(i)
		if last < 0 || string(key) != g.names[last] {
			if last, err = g.groupOf(key, i); err != nil {
				return false, err
			}
		}
		g.ids[i] = last
	}
	return false, nil
}

// steady reports whether all keys of the batch but one are the same in every row.
func (g *grouping) steady(except int) bool {
	for i, v := range g.keys {
		if i != except && !v.Const {
			return false
		}
	}
	return true
}

// keyOf returns the key of row i, valid until the next call.
func (g *grouping) keyOf(i int) []byte {
	g.key = g.key[:0]
	for _, k := range g.order {
		g.key = appendKey(g.key, g.keys[k], i)
	}
	return g.key
}

// baseKey returns the key of row i without the period.
func (g *grouping) baseKey(i int) []byte {
	g.base = g.base[:0]
	for _, k := range g.order {
		if k != g.plan.PeriodKey {
			g.base = appendKey(g.base, g.keys[k], i)
		}
	}
	return g.base
}

// groupOf returns the group with a key, whose first row is row i unless there is one.
func (g *grouping) groupOf(key []byte, i int) (int32, error) {
	if id, ok := g.index[string(key)]; ok {
		if g.ranks != nil && g.rank < g.ranks[id] {
			g.ranks[id] = g.rank
			g.replace(id, i)
		}
		return id, nil
	}
	if err := g.grow(int64(len(key)) + mapEntry); err != nil {
		return 0, err
	}
	id := int32(len(g.names))
	name := string(key)
	g.index[name] = id
	g.names = append(g.names, name)
	if g.ranks != nil {
		g.ranks = append(g.ranks, g.rank)
	}
	return id, g.kept.addRow(&g.first, i)
}

// replace makes row i the first of a group.
func (g *grouping) replace(id int32, i int) {
	for j, v := range g.first.Columns {
		if j >= len(g.plan.Keys) { // equal keys are equal
			setRow(g.kept.columns[j], int(id), v.Value(i))
		}
	}
}

// setRow overwrites row i of a vector, which is not Const.
func setRow(v *column.Vector, i int, x column.Value) {
	if x.Type == column.Null || v.Nulls != nil {
		if v.Nulls == nil {
			v.Nulls = make([]bool, v.Len)
		}
		v.Nulls[i] = x.Type == column.Null
	}
	switch {
	case x.Type == column.Null:
	case v.Ints != nil:
		v.Ints[i] = x.Int
	case v.Floats != nil:
		v.SetNumber(i, x)
	case v.Strings != nil:
		v.Strings[i] = x.Text
	case v.Values != nil:
		v.Values[i] = x
	}
}

// assignPeriods replaces the times among the keys by the starts of their periods.
func (g *grouping) assignPeriods(b *column.Batch) (dropped bool, err error) {
	at := g.plan.PeriodKey
	times := g.keys[at]
	starts := &column.Vector{Type: times.Type, Len: b.Len, Ints: make([]int64, b.Len), Nulls: times.Nulls}
	if times.Const || times.Type == column.Null {
		starts.Nulls = make([]bool, b.Len)
		for i := range starts.Nulls {
			starts.Nulls[i] = times.IsNull(i)
		}
	}
	w := periodWalk{grouping: g, intervals: g.intervals(b), zones: g.zones(b), steady: g.steady(at)}
	for i := 0; i < b.Len; {
		if times.IsNull(i) {
			if g.ids[i], err = w.null(starts, i); err != nil {
				return false, err
			}
			i++
			continue
		}
		if err := w.move(starts, core.Time(times.Ints[times.Index(i)]), i); err != nil {
			return false, err
		}
		dropped = dropped || w.id < 0
		for next := w.until(times, i); i < next; i++ {
			starts.Ints[i], g.ids[i] = int64(w.place.start), w.id
		}
	}
	return dropped, nil
}

// zones returns the column that holds the zone of a row; nil when all have the same.
func (g *grouping) zones(b *column.Batch) *column.Vector {
	if p := g.plan.Period; p.Zone.Location == nil && p.ZoneKey >= 0 && p.ZoneKey < len(b.Columns) {
		return b.Columns[p.ZoneKey]
	}
	return nil
}

// periodWalk goes through the rows of a batch from group to group.
type periodWalk struct {
	*grouping
	intervals, zones *column.Vector
	steady           bool // all other keys are the same in every row

	id    int32 // of the group at hand; -1: the row lies in no period
	place groupPlace
	end   core.Time // of the period
}

// until returns the first row behind row i that may belong to another group.
func (w *periodWalk) until(times *column.Vector, i int) int {
	i++
	if w.id < 0 || !w.steady || times.Const || times.Nulls != nil || w.intervals != nil && !w.intervals.Const || w.zones != nil && !w.zones.Const {
		return i
	}
	start, end := int64(w.place.start), int64(w.end)
	for i < times.Len && times.Ints[i] >= start && times.Ints[i] < end {
		i++
	}
	return i
}

// move finds the group of row i.
func (w *periodWalk) move(starts *column.Vector, t core.Time, i int) error {
	ok, err := w.locate(t, i)
	if err != nil || !ok {
		w.id = -1
		return err
	}
	starts.Ints[i] = int64(w.place.start)
	w.id, err = w.enter(starts, i, w.place)
	return err
}

// locate finds the period of row i, and its other keys; false when it lies in none.
func (w *periodWalk) locate(t core.Time, i int) (bool, error) {
	g := w.grouping
	zone := ""
	if w.zones != nil && !w.zones.IsNull(i) {
		zone = w.zones.Strings[w.zones.Index(i)]
	}
	interval := g.periods.intervalOf(w.intervals, i, t)
	n, err := g.periods.find(zone, interval, g.baseKey(i), t)
	if err != nil {
		return false, err
	}
	lines := g.periods.grids[n]
	start, ok := lines.start(t)
	if !ok {
		return false, nil
	}
	w.place, w.end = groupPlace{interval: interval, grid: n, start: start}, lines.after(start)
	if w.intervals == nil {
		w.end = min(w.end, max(lines.End, t+1)) // what comes later lies in another interval
	}
	return true, nil
}

// enter returns the group of row i, whose period is known.
func (w *periodWalk) enter(starts *column.Vector, i int, place groupPlace) (int32, error) {
	g, at := w.grouping, w.plan.PeriodKey
	times := g.keys[at]
	g.keys[at], g.first.Columns[at] = starts, starts
	id, err := g.groupOf(g.keyOf(i), i)
	g.keys[at] = times
	if err != nil || int(id) < len(g.places) {
		return id, err
	}
	if place.base, err = g.baseOf(string(g.base)); err != nil {
		return id, err
	}
	g.places = append(g.places, place)
	return id, nil
}

// null returns the group of row i, whose time is NULL.
func (w *periodWalk) null(starts *column.Vector, i int) (int32, error) {
	w.grouping.baseKey(i)
	return w.enter(starts, i, groupPlace{null: true, grid: -1})
}

// rows returns all groups in their order.
func (g *grouping) rows(ctx context.Context) (*column.Batch, error) {
	if len(g.names) == 0 {
		return &column.Batch{}, nil
	}
	order := make([]int32, len(g.names))
	for i := range order {
		order[i] = int32(i)
	}
	if err := g.grow(int64(len(order)) * int64(8+9*(len(g.kept.columns)+len(g.plan.Aggregates)))); err != nil {
		return nil, err
	}
	var before []int32
	if g.periods != nil {
		var err error
		if before, err = g.chain(order); err != nil {
			return nil, err
		}
	}
	if g.fills() {
		return g.filled(ctx, order, before)
	}
	if g.ascending {
		return g.collect(order, before), nil
	}
	if err := sortAll(g.x, order, func(a, b int32) int { return cmp.Compare(g.names[a], g.names[b]) }); err != nil {
		return nil, err
	}
	return g.collect(order, before), nil
}

// collect returns the rows of groups: keys, aggregates, what is carried.
func (g *grouping) collect(order, before []int32) *column.Batch {
	kept := g.firstRows().Gather(order)
	n := len(g.plan.Keys)
	out := &column.Batch{Len: len(order), Columns: kept.Columns[:n:n]}
	out.Columns = append(out.Columns, g.states.columns(order, before)...)
	out.Columns = append(out.Columns, kept.Columns[n:]...)
	return out
}

// firstRows returns the keys of the groups, and what is carried.
func (g *grouping) firstRows() *column.Batch {
	if !g.ascending {
		return g.kept.batch()
	}
	out := &column.Batch{Len: len(g.places)}
	for i, v := range g.first.Columns {
		if i != g.plan.PeriodKey {
			out.Columns = append(out.Columns, repeated(v, out.Len))
			continue
		}
		starts := &column.Vector{Type: v.Type, Len: out.Len, Ints: make([]int64, out.Len)}
		for j := range g.places {
			starts.Ints[j] = int64(g.places[j].start)
		}
		out.Columns = append(out.Columns, starts)
	}
	return out
}

// repeated returns a column of n rows that are all like the only row of v.
func repeated(v *column.Vector, n int) *column.Vector {
	one := *v
	one.Const, one.Len = true, n
	return &one
}

// chain sorts groups by their other keys and time, and returns for each group the one of the previous period; -1 for none.
func (g *grouping) chain(order []int32) ([]int32, error) {
	before := make([]int32, len(order))
	if g.ascending {
		for i := range before {
			before[i] = int32(i) - 1
		}
		return before, nil
	}
	err := sortAll(g.x, order, func(a, b int32) int {
		p, q := &g.places[a], &g.places[b]
		return cmp.Or(cmp.Compare(p.base, q.base), cmp.Compare(p.interval, q.interval), cmp.Compare(flag(q.null), flag(p.null)), cmp.Compare(p.start, q.start))
	})
	if err != nil {
		return nil, err
	}
	for i, id := range order {
		before[id] = -1
		if i > 0 && g.places[order[i-1]].base == g.places[id].base {
			before[id] = order[i-1]
		}
	}
	return before, nil
}

// merge takes the groups of another grouping of the same plan, which is spent.
func (g *grouping) merge(o *grouping) error {
	ids := make([]int32, len(o.names))
	g.first = *o.kept.batch()
	for i, name := range o.names {
		if g.ranks != nil {
			g.rank = o.ranks[i]
		}
		id, err := g.groupOf([]byte(name), i)
		if err != nil {
			return err
		}
		ids[i] = id
		if g.periods != nil && int(id) == len(g.places) {
			place, err := g.adopt(o, o.places[i])
			if err != nil {
				return err
			}
			g.places = append(g.places, place)
		}
	}
	if err := g.states.resize(len(g.names)); err != nil {
		return err
	}
	return g.states.merge(ids, o.states)
}

// adopt returns the place of a group of another grouping among those of g.
func (g *grouping) adopt(o *grouping, p groupPlace) (groupPlace, error) {
	base := o.baseNames[p.base]
	var err error
	if p.base, err = g.baseOf(base); err != nil || p.grid < 0 {
		return p, err
	}
	p.grid = g.periods.adopt(o.periods, p.grid)
	return p, nil
}

// baseOf returns the number of the groups with the same other keys.
func (g *grouping) baseOf(name string) (int32, error) {
	if base, ok := g.bases[name]; ok {
		return base, nil
	}
	if err := g.grow(int64(len(name)) + mapEntry); err != nil {
		return 0, err
	}
	base := int32(len(g.bases))
	g.bases[name] = base
	g.baseNames = append(g.baseNames, name)
	return base, nil
}
