package calc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Grouping merges several series into one: without a Period the values that members have at the same time, with one all samples of a period.
type Grouping struct {
	Range     core.Range
	Period    Period // without unit: equal times
	Functions []Function
	// Fill gives a member values at the times or periods where others have some and it has none. It looks at the member alone: between its own
	// samples, or beyond them with Extend.
	Fill Fill
	// Truncate leaves out what lies before the latest first or after the earliest last of the members. It has no effect with Fill.Extend.
	Truncate bool
	Decimal  bool // as in Aggregation
}

// instant is the period of a grouping by equal times: each millisecond is one.
type instant struct{}

func (instant) FixedMillis() (int64, bool)                              { return 1, true }
func (instant) Add(t core.Time, n int64, _ *time.Location) core.Time    { return t + core.Time(n) }
func (instant) Origin(t core.Time, _ *time.Location) (origin core.Time) { return t }
func (instant) String() string                                          { return "instant" }

// steps between two looks at the context: some 100 µs of work.
const groupSteps = 4096

// Group merges the members, whose order decides between samples of the same time. It returns one series for each function, in their order, and the grid
// of the periods, nil without a period. The series of DETAIL is empty: its caller has the members. NaN values and samples outside the range are no samples.
func Group(ctx context.Context, g Grouping, members []Series) ([]Series, *Grid, error) {
	m, err := newMerger(g, members)
	if err != nil || len(m.streams) == 0 {
		return make([]Series, len(g.Functions)), nil, err
	}
	if err := m.run(ctx); err != nil {
		return nil, nil, err
	}
	out, err := m.total.Finish()
	if g.Period.Unit == nil {
		return out, nil, err
	}
	return out, &m.total.grid, err
}

// merger walks all members at once.
type merger struct {
	Grouping
	total   *Aggregator
	streams []*stream // a heap: the one with the earliest sample first
	slots   []core.Time
	window  core.Range // what Truncate leaves
	times   []core.Time
	values  []float64
	side    []core.DecimalAt // of values
}

func newMerger(g Grouping, members []Series) (*merger, error) {
	a := Aggregation{Range: g.Range, Period: g.Period, Functions: g.Functions, Decimal: g.Decimal}
	if g.Period.Unit == nil {
		a.Period = Period{Count: 1, Unit: instant{}, Align: StartTime}
	}
	total, err := NewAggregator(a)
	if err != nil {
		return nil, err
	}
	m := &merger{Grouping: g, total: total, window: g.Range}
	first := g.Range.End
	for i, s := range members {
		one := &stream{index: i, samples: s, within: g.Range}
		if one.skip(); one.at < len(s.Times) {
			first = min(first, s.Times[one.at])
			m.streams = append(m.streams, one)
		}
	}
	if len(m.streams) == 0 {
		return m, nil
	}
	if err := total.start(first); err != nil {
		return nil, err
	}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	live := m.streams[:0]
	for _, s := range m.streams {
		if s.next() {
			live = append(live, s)
		}
	}
	m.streams = live
	for i := len(live)/2 - 1; i >= 0; i-- {
		m.sift(i)
	}
	return m, nil
}

// prepare finds what fills gaps and what truncation cuts.
func (m *merger) prepare() error {
	fills := m.Fill.Mode != FillNone || m.Fill.Extend
	if fills {
		if err := m.layOut(); err != nil {
			return err
		}
	}
	for _, s := range m.streams {
		if fills || m.Truncate {
			s.edges(&m.total.grid, m.Period.Unit != nil)
		}
		if fills {
			s.fill, s.fill.exact = m.Fill, m.Decimal
			s.slots, s.pooled = m.slots, m.Period.Unit != nil
		}
		if m.Truncate && !m.Fill.Extend {
			if len(s.firsts.Times) == 0 {
				continue // only samples before the first period
			}
			m.window.Start = max(m.window.Start, s.firsts.Times[0])
			last := s.firsts.Times[len(s.firsts.Times)-1]
			m.window.End = min(m.window.End, m.total.grid.boundary(m.total.grid.indexOf(last)+1))
		}
	}
	return nil
}

// layOut lists the times at which members get a value: those of all samples, or all period starts.
func (m *merger) layOut() error {
	if m.Period.Unit == nil {
		for _, s := range m.streams {
			for i, t := range s.samples.Times {
				if m.Range.Contains(t) && !math.IsNaN(s.samples.Values[i]) {
					m.slots = append(m.slots, t)
				}
			}
		}
		slices.Sort(m.slots)
		m.slots = slices.Compact(m.slots)
		return nil
	}
	for t := range m.total.grid.Starts() {
		if len(m.slots) == maxFilled {
			return fmt.Errorf("interpolation would fill more than %d periods: shorten the range or lengthen the period", maxFilled)
		}
		m.slots = append(m.slots, t)
	}
	return nil
}

// run feeds the samples of all streams to the aggregator in their order.
func (m *merger) run(ctx context.Context) error {
	for n := 0; len(m.streams) > 0; n++ {
		if n%groupSteps == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		s := m.streams[0]
		if m.window.Contains(s.time) {
			m.times, m.values = append(m.times, s.time), append(m.values, s.value)
			if s.digits.exact {
				m.side = append(m.side, core.DecimalAt{Index: uint32(len(m.values) - 1), Decimal: s.digits.decimal})
			}
		}
		if len(m.times) == groupSteps {
			if err := m.flush(); err != nil {
				return err
			}
		}
		if !s.next() {
			last := len(m.streams) - 1
			m.streams[0] = m.streams[last]
			m.streams = m.streams[:last]
		}
		m.sift(0)
	}
	return m.flush()
}

func (m *merger) flush() error {
	err := m.total.AddExact(m.times, m.values, m.side)
	m.times, m.values, m.side = m.times[:0], m.values[:0], m.side[:0]
	return err
}

// sift moves the stream at i down to its place in the heap.
func (m *merger) sift(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.streams); child++ {
			if m.streams[child].before(m.streams[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.streams[i], m.streams[least] = m.streams[least], m.streams[i]
		i = least
	}
}

// stream yields the samples of one member with what fills its gaps.
type stream struct {
	index   int // of the member
	samples Series
	within  core.Range
	at      int // next sample

	time   core.Time // the current sample
	value  float64
	digits digits // of the value

	fill   Fill
	slots  []core.Time
	slot   int  // next slot
	pooled bool // slots are periods: samples keep their own times
	// The first and last value of each slot that has some, at the time of the slot.
	firsts, lasts Series
	gap           int // the slot lies before firsts[gap]
}

func (s *stream) before(o *stream) bool {
	return s.time < o.time || s.time == o.time && s.index < o.index
}

// skip moves over what is no sample.
func (s *stream) skip() {
	for s.at < len(s.samples.Times) && (math.IsNaN(s.samples.Values[s.at]) || !s.within.Contains(s.samples.Times[s.at])) {
		s.at++
	}
}

// edges collects the first and last value of every slot: a period of the grid, or a single time.
func (s *stream) edges(grid *Grid, periods bool) {
	cursor := grid.Cursor()
	for i, t := range s.samples.Times {
		v := s.samples.Values[i]
		if math.IsNaN(v) || !s.within.Contains(t) {
			continue
		}
		start := t
		if periods {
			if !cursor.Seek(t) {
				continue
			}
			start = cursor.Start()
		}
		if n := len(s.firsts.Times); n > 0 && s.firsts.Times[n-1] == start {
			s.lasts.Values[n-1] = v
			continue
		}
		s.firsts.add(start, v)
		s.lasts.add(start, v)
	}
}

// next moves to the next sample or filled slot and reports whether there is one.
func (s *stream) next() bool {
	for s.slot < len(s.slots) {
		t := s.slots[s.slot]
		if s.at < len(s.samples.Times) && s.samples.Times[s.at] < t {
			break
		}
		s.slot++
		for s.gap < len(s.firsts.Times) && s.firsts.Times[s.gap] < t {
			s.gap++
		}
		if s.gap < len(s.firsts.Times) && s.firsts.Times[s.gap] == t {
			if s.pooled {
				continue // the samples follow by themselves
			}
			break
		}
		if v, ok := s.fill.within(t, s.lasts, s.firsts, s.gap); ok {
			s.time, s.value, s.digits = t, v, digits{}
			return true
		}
	}
	if s.at == len(s.samples.Times) {
		return false
	}
	s.time, s.value = s.samples.Times[s.at], s.samples.Values[s.at]
	s.digits = digitsAt(s.samples.Decimals, s.at)
	s.at++
	s.skip()
	return true
}
