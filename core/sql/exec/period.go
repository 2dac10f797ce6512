package exec

import (
	"math"
	"sort"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// periods finds the period of a row. Each combination of zone, interval and, where it matters, time of the first sample has a grid of its own.
type periods struct {
	account
	x     *execution
	plan  *plan.Period
	zones dates.ZoneCache
	grids []*grid
	index map[gridKey]int32
	names []gridKey // of the grids

	// Times of first samples, found beforehand when a grid depends on them: of the whole query, or of each group of the other keys and interval.
	first  core.Time
	firsts map[firstKey]core.Time
}

type gridKey struct {
	zone     string
	interval int32
	first    core.Time
}

type firstKey struct {
	base     string
	interval int32
}

// grid is one row of periods.
type grid struct {
	plan.Interval // in which the periods lie
	calc          calc.Grid
	// Of a fixed length: the periods start at base and every length ms from it, in both directions unless floor.
	base, length core.Time
	floor        bool        // nothing lies before base
	bounds       []core.Time // of calendar steps: starts as far as they are known, one more than is asked for
	at           int         // the period that was found last
}

func (x *execution) newPeriods(p *plan.Period) *periods {
	return &periods{account: account{memory: x.Memory}, x: x, plan: p, index: map[gridKey]int32{}}
}

var aligns = [...]calc.Align{ast.AlignCalendar: calc.Calendar, ast.AlignStart: calc.StartTime, ast.AlignEnd: calc.EndTime, ast.AlignFirst: calc.FirstValueTime}

// interval returns the interval with an index; the one of a query that gives none is all of time.
func (p *periods) interval(n int32) plan.Interval {
	if int(n) < len(p.plan.Intervals) {
		return p.plan.Intervals[n]
	}
	return plan.Interval{Range: core.AllTime}
}

// find returns the index of the grid of rows. first is the time of a row that lies in it.
func (p *periods) find(zone string, interval int32, base []byte, first core.Time) (int32, error) {
	key := gridKey{zone: zone, interval: interval}
	switch {
	case p.plan.Align == ast.AlignFirst:
		key.first = p.firsts[firstKey{string(base), interval}]
		first = key.first
	case p.first != math.MaxInt64:
		first = p.first
	}
	if g, ok := p.index[key]; ok {
		return g, nil
	}
	location, err := p.location(zone)
	if err != nil {
		return 0, err
	}
	if err := p.grow(gridBytes); err != nil {
		return 0, err
	}
	g, err := p.newGrid(location, p.interval(interval), first)
	if err != nil {
		return 0, err
	}
	n := int32(len(p.grids))
	p.grids, p.names = append(p.grids, g), append(p.names, key)
	p.index[key] = n
	return n, nil
}

// gridBytes is what a grid takes, with its key. Its bounds are few: those of calendar steps between the first row and the last.
const gridBytes = 320

// adopt returns the index of the grid n of others.
func (p *periods) adopt(others *periods, n int32) int32 {
	key := others.names[n]
	at, ok := p.index[key]
	if !ok {
		at = int32(len(p.grids))
		p.grids, p.names = append(p.grids, others.grids[n]), append(p.names, key)
		p.index[key] = at
	}
	return at
}

// location resolves the zone of a row: that of the query where the row has none.
func (p *periods) location(zone string) (*time.Location, error) {
	if p.plan.Zone.Location != nil {
		return p.plan.Zone.Location, nil
	}
	if zone == "" {
		return p.x.env.Zone, nil
	}
	if location, err := p.zones.Load(zone); err == nil {
		return location, nil
	}
	return p.x.env.Zone, nil
}

func (p *periods) newGrid(zone *time.Location, in plan.Interval, first core.Time) (*grid, error) {
	period := calc.Period{Count: p.plan.Step.Count, Unit: p.plan.Step.Unit, Align: aligns[p.plan.Align], Zone: zone}
	within := in.Range
	if !in.HasFrom && p.plan.Align != ast.AlignEnd {
		within.Start = first
	}
	g := &grid{Interval: in, floor: p.plan.Align == ast.AlignEnd && in.HasFrom}
	var err error
	if g.calc, err = period.CoveringGrid(within, first); err != nil {
		return nil, core.Errorf(core.Invalid, "PERIOD: %v", err)
	}
	c := g.calc.Cursor()
	g.base = c.Start()
	if _, fixed := p.plan.Step.Unit.FixedMillis(); fixed {
		g.length = c.End() - c.Start()
	} else {
		g.bounds = []core.Time{c.Start(), c.End()}
	}
	return g, nil
}

// start returns the start of the period that contains t; false when there is none.
func (g *grid) start(t core.Time) (core.Time, bool) {
	if g.length > 0 {
		d := t - g.base
		k := d / g.length
		if d%g.length < 0 {
			k--
		}
		start := g.base + k*g.length
		return start, !g.floor || start >= g.base
	}
	if t >= g.bounds[g.at] && t < g.bounds[g.at+1] {
		return g.bounds[g.at], true
	}
	if t < g.bounds[0] && (g.floor || !g.downTo(t)) {
		return 0, false
	}
	g.upTo(t)
	g.at = min(sort.Search(len(g.bounds), func(i int) bool { return g.bounds[i] > t })-1, len(g.bounds)-2)
	return g.bounds[g.at], true
}

// upTo makes sure that a start later than t is known, as long as there are dates.
func (g *grid) upTo(t core.Time) {
	last := g.bounds[len(g.bounds)-1]
	if last > t {
		return
	}
	for start := range g.calc.After(last) {
		if g.bounds = append(g.bounds, start); start > t {
			return
		}
	}
	g.bounds = append(g.bounds, math.MaxInt64) // the last period has no end
}

// downTo makes sure that a start not later than t is known: the periods go on before the first row that was seen, where nothing but the order of the rows made it
// the first.
func (g *grid) downTo(t core.Time) bool {
	p := g.calc.Period()
	origin := p.Unit.Origin(t, p.Zone)
	if p.Align != calc.Calendar {
		return false
	}
	for origin > t {
		back := p.Unit.Add(origin, -1, p.Zone)
		if back >= origin {
			return false
		}
		origin = back
	}
	p.Align = calc.StartTime
	earlier, err := p.Grid(core.Range{Start: origin, End: g.bounds[0]}, origin)
	if err != nil {
		return false
	}
	var starts []core.Time
	for s := range earlier.Starts() {
		starts = append(starts, s)
	}
	g.bounds = append(starts, g.bounds...)
	return true
}

// after returns the start of the period that follows the one at start.
func (g *grid) after(start core.Time) core.Time {
	if g.length > 0 {
		return start + g.length
	}
	if start < g.bounds[0] {
		g.downTo(start)
	}
	g.upTo(start)
	i := sort.Search(len(g.bounds), func(i int) bool { return g.bounds[i] > start })
	return g.bounds[i]
}

// prior returns the start of the period before the one at start; false when it begins before the interval.
func (g *grid) prior(start core.Time) (core.Time, bool) {
	if g.length > 0 {
		return start - g.length, start-g.length >= g.Start
	}
	i := sort.Search(len(g.bounds), func(i int) bool { return g.bounds[i] >= start })
	if i == 0 || g.bounds[i-1] < g.Start {
		return 0, false
	}
	return g.bounds[i-1], true
}

// needsFirst reports whether the periods depend on the time of the first sample, so that it has to be known before any row is grouped.
func (p *periods) needsFirst() bool {
	if p.plan.Align == ast.AlignFirst {
		return true
	}
	if list := p.plan.Intervals; len(list) > 0 && list[0].HasFrom {
		return false // of several intervals only the first may have none
	}
	step := p.plan.Step
	switch {
	case p.plan.Align == ast.AlignEnd:
		return false
	case p.plan.Align == ast.AlignStart:
		return true
	case step.Unit == dates.Year:
		return false
	case step.Unit == dates.Month:
		return 12%step.Count != 0
	case step.Unit == dates.Quarter:
		return 4%step.Count != 0
	}
	millis, fixed := step.Unit.FixedMillis()
	const hour = 3_600_000
	switch {
	case fixed && step.Unit != dates.Hour:
		return step.Count > hour || hour%(millis*step.Count) != 0
	case fixed && p.plan.Zone.Location == time.UTC: // no clock is ever changed there
		return step.Count > 24 || 24%step.Count != 0
	}
	return step.Count != 1 // hours of a day and days of a month come out differently after a change of the clock or a short month
}

// findFirsts looks at every row for the times of the first samples.
func (g *grouping) findFirsts(in stream) error {
	p := g.periods
	each := p.plan.Align == ast.AlignFirst
	if each {
		p.firsts = map[firstKey]core.Time{}
	}
	for b, err := range in {
		if err == nil {
			err = g.x.eval(g.plan.Keys, b, g.keys)
		}
		if err != nil {
			return err
		}
		times := g.keys[g.plan.PeriodKey]
		intervals := g.intervals(b)
		for i := range b.Len {
			if times.IsNull(i) {
				continue
			}
			t := core.Time(times.Ints[times.Index(i)])
			if !each {
				p.first = min(p.first, t)
				continue
			}
			key := firstKey{string(g.baseKey(i)), p.intervalOf(intervals, i, t)}
			before, ok := p.firsts[key]
			if !ok {
				if err := p.grow(int64(len(key.base)) + mapEntry); err != nil {
					return err
				}
			}
			if !ok || t < before {
				p.firsts[key] = t
			}
		}
	}
	return nil
}

// intervals returns the column that says in which interval a row lies; nil when there is one.
func (g *grouping) intervals(b *column.Batch) *column.Vector {
	if at := g.plan.Period.Interval; at >= 0 && at < len(b.Columns) {
		return b.Columns[at]
	}
	return nil
}

// intervalOf returns the index of the interval of row i, whose time is t. The column counts from 1; without one the interval is that in which the time lies.
func (p *periods) intervalOf(v *column.Vector, i int, t core.Time) int32 {
	switch {
	case v != nil && v.Ints != nil && !v.IsNull(i):
		return int32(max(v.Ints[v.Index(i)]-1, 0))
	case len(p.plan.Intervals) < 2:
		return 0
	}
	n := sort.Search(len(p.plan.Intervals), func(n int) bool { return p.plan.Intervals[n].End > t })
	return int32(min(n, len(p.plan.Intervals)-1))
}
