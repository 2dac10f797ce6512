package exec

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// joinDetail joins with INTERPOLATE(DETAIL): each series gets rows at the times of the series of the other inputs that it is joined with, then the inputs are
// joined as usual. The rows of one entity are held.
func (x *execution) joinDetail(ctx context.Context, j *plan.Join) stream {
	joined := func(yield func(*column.Batch, error) bool) {
		d := x.newDetail(ctx, j, yield)
		defer d.stop()
		err := d.attach(ctx)
		if err == nil {
			err = d.run(ctx)
		}
		if err != nil && !d.out.stopped {
			yield(nil, err)
		}
	}
	return x.sorted(ctx, orderOfJoin(j, joinedTime, joinedEntity), 0, joined)
}

// detail joins entity by entity.
type detail struct {
	x        *execution
	fillings *fillings
	byEntity bool
	match    *matcher
	out      *joined
	sides    []detailSide
}

// detailSide is one input.
type detailSide struct {
	joinSide
	columns   pointColumns
	intervals []plan.Interval
	where     expr.Node // on rows, those that are made included
	sieve     *sieve
	metric    int // the column; -1 = none

	series []detailSeries // of the current entity
	times  map[name][]int64
	made   *column.Batch // its rows, by time
	row    int           // of made
}

// detailSeries is one series of an entity.
type detailSeries struct {
	key  core.SeriesKey
	tags name
	rows []int32 // of held
}

func (x *execution) newDetail(ctx context.Context, j *plan.Join, yield func(*column.Batch, error) bool) *detail {
	byEntity := comparesEntity(j)
	d := &detail{x: x, fillings: x.newFillings(j.Detail), byEntity: byEntity, match: x.newMatcher(ctx, j.Inputs, byEntity), out: newJoined(j, yield)}
	for i := range j.Inputs {
		in := j.Inputs[i]
		s := detailSide{metric: -1, intervals: []plan.Interval{{Range: core.AllTime}}}
		s.columns = pointColumnsOf(in.In, pointColumns{time: in.Time, value: in.Value})
		switch op := in.In.(type) {
		case *plan.Scan:
			wide := *op
			wide.Filter, wide.Fill, s.where, s.metric = nil, nil, op.Filter, plan.ScanMetric
			wide.Needs.Value = wide.Needs.Value || in.Value >= 0
			if s.intervals = op.Intervals; j.Detail.Boundary != boundaryInner {
				wide.Fill = &plan.Interpolate{Detail: true, Boundary: boundaryAround}
			}
			in.In = &wide
		case *plan.View:
			wide := *op
			wide.Filter, wide.Fill, s.where, s.metric = nil, nil, op.Filter, op.Metric
			if j.Detail.Boundary != boundaryInner {
				wide.Intervals = nil // samples around them count
			}
			if len(op.Intervals) > 0 {
				s.intervals = op.Intervals
			}
			in.In = &wide
		}
		if j.Detail.Fill == ast.FillValue {
			s.intervals = closed(s.intervals)
		}
		if s.where != nil {
			s.sieve = newSieve(s.where)
		}
		s.input = &in
		d.sides = append(d.sides, s)
	}
	if j.Detail.Fill == ast.FillValue {
		d.out.constant, d.out.lacks = &j.Detail.Number, d.lacks
	}
	return d
}

// closed returns intervals without open bounds. There the grid of a series alone ends with the series; the times of the other inputs go on, and the rows that are
// there show the constant wherever no number can be computed.
func closed(intervals []plan.Interval) []plan.Interval {
	out := slices.Clone(intervals)
	for i := range out {
		out[i].HasFrom, out[i].HasTo = true, true
	}
	return out
}

func (d *detail) attach(ctx context.Context) error {
	for i := range d.sides {
		s := &d.sides[i]
		s.joinSide = d.x.newSide(s.input, d.byEntity, d.x.ordered(ctx, s.input, d.byEntity))
	}
	for i := range d.sides {
		if err := d.sides[i].fetch(); err != nil {
			return err
		}
	}
	return nil
}

func (d *detail) stop() {
	d.match.release()
	for i := range d.sides {
		d.sides[i].stop()
		d.sides[i].held.release()
	}
}

// run joins entity by entity.
func (d *detail) run(ctx context.Context) error {
	for {
		var least *detailSide
		for i := range d.sides {
			if s := &d.sides[i]; s.more && (least == nil || s.head.entity.compare(least.head.entity) < 0) {
				least = s
			}
		}
		if least == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		entity := least.head.entity
		for i := range d.sides {
			if err := d.sides[i].collect(entity); err != nil {
				return err
			}
		}
		for i := range d.sides {
			if err := d.interpolate(i); err != nil {
				return err
			}
		}
		if err := d.joinEntity(); err != nil || d.out.stopped {
			return err
		}
	}
}

// collect holds the rows of an entity and tells its series apart.
func (s *detailSide) collect(entity name) error {
	s.held.reset()
	for s.more && s.head.entity == entity {
		end := s.at
		for end < s.batch.Len {
			if k := s.keyAt(end); k.entity != entity {
				break
			}
			end++
		}
		if err := s.held.add(s.batch.Slice(s.at, end)); err != nil {
			return err
		}
		if end < s.batch.Len {
			s.moveTo(end)
		} else if err := s.fetch(); err != nil {
			return err
		}
	}
	return s.split()
}

// splitBytes is what a row takes beside its columns: its place in its series, and its time.
const splitBytes = 16

// split tells the series of the rows apart.
func (s *detailSide) split() error {
	s.series, s.times = nil, map[name][]int64{}
	all := s.held.batch()
	if err := s.held.grow(int64(all.Len) * splitBytes); err != nil {
		return err
	}
	found := map[[2]name]int{}
	for i := range all.Len {
		metric, tags := nameAt(all, s.metric, i), nameAt(all, s.input.Tags, i)
		at, ok := found[[2]name{metric, tags}]
		if !ok {
			at = len(s.series)
			found[[2]name{metric, tags}] = at
			s.series = append(s.series, detailSeries{key: core.SeriesKey{Metric: metric.text, Entity: nameAt(all, s.input.Entity, i).text}, tags: tags})
		}
		s.series[at].rows = append(s.series[at].rows, int32(i))
		if t := timeAt(all, s.input.Time, i); s.inside(t) {
			s.times[tags] = append(s.times[tags], t)
		}
	}
	return nil
}

// inside reports whether a time lies in an interval of the input.
func (s *detailSide) inside(t int64) bool {
	_, ok := slices.BinarySearchFunc(s.intervals, core.Time(t), func(in plan.Interval, t core.Time) int {
		switch {
		case in.End <= t:
			return -1
		case in.Start > t:
			return 1
		}
		return 0
	})
	return ok
}

// comparesTags reports whether two inputs are joined on their tags: that is up to the later one.
func (d *detail) comparesTags(i, j int) bool { return d.sides[max(i, j)].input.UseTags }

// others returns the times at which the inputs other than i have rows that series with some tags are joined with.
func (d *detail) others(i int, tags name) (times []int64, err error) {
	for j := range d.sides {
		if j == i {
			continue
		}
		for of, list := range d.sides[j].times {
			if of == tags || !d.comparesTags(i, j) {
				times = append(times, list...)
			}
		}
	}
	err = sortAll(d.x, times, cmp.Compare)
	return slices.Compact(times), err
}

// interpolate makes the rows of side i.
func (d *detail) interpolate(i int) error {
	s := &d.sides[i]
	all := s.held.batch()
	made := d.x.newRows()
	defer made.release()
	for n := range s.series {
		one := &s.series[n]
		times, err := d.others(i, one.tags)
		if err != nil {
			return err
		}
		building := account{memory: d.x.Memory}
		err = building.grow(int64(len(times)+len(one.rows)) * pointBytes)
		if err == nil {
			var points *pointRows
			if points, err = d.points(s, one, times); err == nil {
				err = made.add(points.batch(all, one.rows[0]))
			}
		}
		building.release()
		if err != nil {
			return err
		}
	}
	if err := s.held.grow(made.taken); err != nil { // for what Gather makes below, until the next entity
		return err
	}
	order, err := d.orderByTime(made.batch(), s.input)
	if err != nil {
		return err
	}
	s.made, s.row = made.batch().Gather(order), 0
	s.made, err = s.sieve.pass(d.x.env, s.made)
	return err
}

// pointBytes is what a point takes until its row is made: its time among those of the other inputs, time, value, row and flag.
const pointBytes = 32

// orderByTime returns the rows of b by time, then tags.
func (d *detail) orderByTime(b *column.Batch, in *plan.JoinInput) ([]int32, error) {
	rows := make([]int32, b.Len)
	for i := range rows {
		rows[i] = int32(i)
	}
	err := sortAll(d.x, rows, func(i, j int32) int {
		a, c := timeAt(b, in.Time, int(i)), timeAt(b, in.Time, int(j))
		switch {
		case a < c:
			return -1
		case a > c:
			return 1
		}
		return cmp.Or(nameAt(b, in.Tags, int(i)).compare(nameAt(b, in.Tags, int(j))), cmp.Compare(i, j))
	})
	return rows, err
}

// points returns the rows of a series that lie in the intervals, and those at the given times that can be computed.
func (d *detail) points(s *detailSide, one *detailSeries, times []int64) (*pointRows, error) {
	all := s.held.batch()
	out := &pointRows{columns: s.columns}
	next := 0 // of one.rows
	own := func(until int64) {
		for ; next < len(one.rows); next++ {
			row := one.rows[next]
			t := timeAt(all, s.input.Time, int(row))
			if t >= until {
				return
			}
			if s.inside(t) {
				out.addRow(core.Time(t), row)
			}
		}
	}
	grid := regular[int32]{filling: d.fillings.of(one.key), yield: func(p point[int32]) bool {
		own(int64(p.time))
		if next < len(one.rows) && timeAt(all, s.input.Time, int(one.rows[next])) == int64(p.time) {
			p.carried = one.rows[next] + 1
			next++
		}
		out.add(p)
		return true
	}}
	grid.grid = func(plan.Interval, core.Time) (ticks, error) { return &listedTicks{times}, nil }
	grid.waiting = &account{memory: d.x.Memory}
	defer grid.waiting.release()
	grid.start(s.intervals)
	for _, row := range one.rows {
		grid.take(reading[int32]{core.Time(timeAt(all, s.input.Time, int(row))), numberAt(all, s.input.Value, int(row)), row + 1})
	}
	grid.finish()
	own(math.MaxInt64)
	return out, grid.err
}

// listedTicks are times in a list.
type listedTicks struct{ times []int64 }

func (l *listedTicks) seek(t core.Time) (core.Time, bool) {
	n, _ := slices.BinarySearch(l.times, int64(t))
	if l.times = l.times[n:]; len(l.times) == 0 {
		return 0, false
	}
	return core.Time(l.times[0]), true
}

// joinEntity joins the rows of the current entity time by time.
func (d *detail) joinEntity() error {
	for {
		least, some := int64(math.MaxInt64), false
		for i := range d.sides {
			if s := &d.sides[i]; s.row < s.made.Len {
				least, some = min(least, timeAt(s.made, s.input.Time, s.row)), true
			}
		}
		if !some {
			return d.out.flush() // its rows are about to change
		}
		for i := range d.sides {
			s := &d.sides[i]
			from := s.row
			for s.row < s.made.Len && timeAt(s.made, s.input.Time, s.row) == least {
				s.row++
			}
			d.match.groups[i] = joinGroup{}
			if s.row > from {
				d.match.groups[i] = joinGroup{s.made, span{from, s.row}}
			}
		}
		if err := d.out.add(d.match); err != nil || d.out.stopped {
			return err
		}
	}
}

// lacks reports whether input i has nothing with the key of a row of the join.
func (d *detail) lacks(i int, tags name) bool {
	s := &d.sides[i]
	if !s.input.UseTags && i > 0 || i == 0 && !d.sides[1].input.UseTags {
		return len(s.series) == 0
	}
	return !slices.ContainsFunc(s.series, func(one detailSeries) bool { return one.tags == tags })
}
