package exec

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// boundaryAround asks for the samples in the hull of the intervals and one on each side of it as they are: what a join with DETAIL interpolates itself.
const boundaryAround = "around"

// regularized reports whether the samples of a scan are not simply those in its intervals.
func regularized(i *plan.Interpolate) bool {
	return i != nil && (!i.Detail || i.Boundary == boundaryAround)
}

// interpolated yields what Reader.Series would, made regular: blocks by key, the rows of each series at the points of its grid, in ascending order. The range
// of q does not matter. A block holds the sample itself, exact decimal included, where one lies at a point of the grid.
func (x *execution) interpolated(ctx context.Context, q core.SeriesQuery, op *plan.Scan) iter.Seq2[core.Block, error] {
	around := neighboured(ctx, x.Reader, q, op)
	if op.Fill.Boundary == boundaryAround {
		return around
	}
	return func(yield func(core.Block, error) bool) {
		// A fine grid has many points for few samples: whoever drops them all still ends with ctx.
		w := blockWriter{yield: func(b core.Block, err error) bool {
			if err == nil && ctx.Err() != nil {
				b, err = core.Block{}, ctx.Err()
			}
			return yield(b, err) && err == nil
		}}
		waiting := account{memory: x.Memory}
		defer waiting.release()
		grid, fillings := regular[scanned]{yield: w.point, waiting: &waiting, size: (*scanned).size}, x.newFillings(op.Fill)
		reading := false // a series has begun
		for b, err := range around {
			if err != nil {
				yield(core.Block{}, err)
				return
			}
			if !reading || w.block.Key.Compare(b.Key) != 0 {
				if reading && !w.end(&grid) {
					return
				}
				grid.filling = fillings.of(b.Key)
				reading, w.block.Key = true, b.Key.Clone()
				grid.start(op.Intervals)
			}
			takeBlock(&grid, &b)
			if w.stopped || grid.err != nil {
				break
			}
		}
		if reading {
			w.end(&grid)
		}
	}
}

// fillings resolves what an interpolation leaves to the series.
type fillings struct {
	x     *execution
	fill  *plan.Interpolate
	zones map[string]*time.Location // that were looked up
}

func (x *execution) newFillings(i *plan.Interpolate) *fillings {
	return &fillings{x, i, map[string]*time.Location{}}
}

// of returns how the samples of a series become points.
func (f *fillings) of(key core.SeriesKey) filling {
	entity, _ := f.x.Catalog.Entity(key.Entity)
	metric, _ := f.x.Catalog.Metric(key.Metric)
	function := f.fill.Function
	if function == functionAuto {
		function = cmp.Or(entity.Interpolate, metric.Interpolate)
	}
	zone := f.fill.Zone.Location
	switch {
	case zone != nil:
	case f.fill.Zone.Field == "entity":
		zone = f.zone(entity.TimeZone)
	case f.fill.Zone.Field == "metric":
		zone = f.zone(metric.TimeZone)
	default:
		zone = f.x.env.Zone
	}
	return fillingOf(f.fill, strings.EqualFold(function, functionPrevious), zone)
}

// zone returns a zone by its name, that of the query when there is none.
func (f *fillings) zone(id string) *time.Location {
	if id == "" {
		return f.x.env.Zone
	}
	zone, ok := f.zones[id]
	if !ok {
		var err error
		if zone, err = expr.LoadZone(id); err != nil {
			zone = f.x.env.Zone
		}
		f.zones[id] = zone
	}
	return zone
}

func fillingOf(i *plan.Interpolate, previous bool, zone *time.Location) filling {
	period := calc.Period{Count: i.Step.Count, Unit: i.Step.Unit, Zone: zone}
	if i.Align == ast.AlignStart {
		period.Align = calc.StartTime
	}
	return filling{previous: previous, boundary: i.Boundary, fill: i.Fill, number: i.Number, grid: func(in plan.Interval, first core.Time) (ticks, error) {
		grid, err := period.CoveringGrid(core.Range{Start: first, End: in.End}, first)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "INTERPOLATE: %v", err)
		}
		return &gridTicks{grid.Cursor(), in.End}, nil
	}}
}

// gridTicks are the starts of periods.
type gridTicks struct {
	cursor calc.Cursor
	end    core.Time
}

func (g *gridTicks) seek(t core.Time) (core.Time, bool) {
	if t >= g.end {
		return 0, false
	}
	if t > g.cursor.Start() {
		g.cursor.Seek(t)
	}
	if g.cursor.Start() < t {
		if g.cursor.End() >= g.end {
			return 0, false
		}
		g.cursor.Seek(g.cursor.End())
	}
	return g.cursor.Start(), true
}

// scanned is what a stored sample carries.
type scanned struct {
	text    string
	hasText bool
	exact   *core.Decimal // its number, where a double is not exact
}

func (s *scanned) size() int64 { return int64(len(s.text)) }

// takeBlock adds the samples of a block of the current series.
func takeBlock(grid *regular[scanned], b *core.Block) {
	texts, exacts := b.Texts, b.Decimals
	for i, t := range b.Times {
		s := reading[scanned]{time: t, value: b.Values[i]}
		if len(texts) > 0 && int(texts[0].Index) == i {
			s.carried.text, s.carried.hasText = kept(texts[0].Text, grid.last), true
			texts = texts[1:]
		}
		if len(exacts) > 0 && int(exacts[0].Index) == i {
			exact := exacts[0].Decimal
			s.carried.exact = &exact
			exacts = exacts[1:]
		}
		if grid.take(s); grid.done() {
			return
		}
	}
}

// kept returns a text that outlives its block. Texts often repeat: then it is that of the sample before.
func kept(text string, last *reading[scanned]) string {
	if last != nil && last.carried.text == text {
		return last.carried.text
	}
	return strings.Clone(text)
}

// blockWriter collects points in blocks of at most column.Size.
type blockWriter struct {
	block   core.Block
	yield   func(core.Block, error) bool
	stopped bool
}

func (w *blockWriter) point(p point[scanned]) bool {
	b := &w.block
	at := uint32(len(b.Times))
	b.Times, b.Values = append(b.Times, p.time), append(b.Values, p.value)
	if p.carried.hasText {
		b.Texts = append(b.Texts, core.TextAt{Index: at, Text: p.carried.text})
	}
	if p.of != nil && p.of.exact != nil {
		b.Decimals = append(b.Decimals, core.DecimalAt{Index: at, Decimal: *p.of.exact})
	}
	return len(b.Times) < column.Size || w.flush()
}

// flush yields what was collected and reports whether to go on.
func (w *blockWriter) flush() bool {
	b := &w.block
	if len(b.Times) > 0 && !w.stopped {
		w.stopped = !w.yield(*b, nil)
	}
	b.Times, b.Values, b.Texts, b.Decimals = b.Times[:0], b.Values[:0], b.Texts[:0], b.Decimals[:0]
	return !w.stopped
}

// end finishes the current series and reports whether to go on.
func (w *blockWriter) end(grid *regular[scanned]) bool {
	grid.finish()
	if grid.err != nil {
		if !w.stopped {
			w.yield(core.Block{}, grid.err)
		}
		return false
	}
	return w.flush()
}

// neighboured yields the samples in the intervals and, unless the boundary is inner, one on each side of their hull. With the outer boundary a series without
// samples in the hull does not appear.
func neighboured(ctx context.Context, reader core.Reader, q core.SeriesQuery, op *plan.Scan) iter.Seq2[core.Block, error] {
	q.Range = hull(op.Intervals)
	inside := reader.Series(ctx, q)
	if op.Fill.Boundary == boundaryInner || len(op.Intervals) == 0 {
		return inside
	}
	before, after := q, q
	before.Limit, after.Limit = 1, 1
	before.NewestFirst = true
	before.Range = core.Range{Start: core.MinTime, End: q.Range.Start}
	after.Range = core.Range{Start: q.Range.End, End: core.AllTime.End}
	sources := [3]iter.Seq2[core.Block, error]{nothing, inside, nothing}
	if !before.Range.Empty() {
		sources[0] = reader.Series(ctx, before)
	}
	if !after.Range.Empty() {
		sources[2] = reader.Series(ctx, after)
	}
	return func(yield func(core.Block, error) bool) {
		m := keyMerge{full: op.Fill.Boundary == boundaryFull}
		defer m.stop()
		for i, source := range sources {
			next, stop := iter.Pull2(source)
			m.sides[i] = side{next: next, stop: stop, more: true}
			if err := m.sides[i].advance(); err != nil {
				yield(core.Block{}, err)
				return
			}
		}
		if err := m.run(yield); err != nil {
			yield(core.Block{}, err)
		}
	}
}

func nothing(func(core.Block, error) bool) {}

// keyMerge yields the blocks of three sources by key: those before, inside and after the intervals.
type keyMerge struct {
	sides [3]side
	full  bool // series without blocks inside count
}

// side is one source at its current block.
type side struct {
	next  func() (core.Block, error, bool)
	stop  func()
	block core.Block
	more  bool
}

func (s *side) advance() (err error) {
	s.block, err, s.more = s.next()
	return err
}

func (m *keyMerge) stop() {
	for i := range m.sides {
		if m.sides[i].stop != nil {
			m.sides[i].stop()
		}
	}
}

func (m *keyMerge) run(yield func(core.Block, error) bool) error {
	for {
		var first *side
		for i := range m.sides {
			if s := &m.sides[i]; s.more && (first == nil || s.block.Key.Compare(first.block.Key) < 0) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		key := first.block.Key.Clone()
		inside := &m.sides[1]
		shown := m.full || inside.more && inside.block.Key.Compare(key) == 0
		for i := range m.sides {
			for s := &m.sides[i]; s.more && s.block.Key.Compare(key) == 0; {
				if shown && !yield(s.block, nil) {
					return nil
				}
				if err := s.advance(); err != nil {
					return err
				}
			}
		}
	}
}
