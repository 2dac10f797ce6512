package calc

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Unit is what periods need to know of a unit of time; dates.Unit is one.
type Unit interface {
	// FixedMillis returns the length of a unit that always has the same.
	FixedMillis() (millis int64, ok bool)
	// Add moves t by n units on the calendar of a zone.
	Add(t core.Time, n int64, zone *time.Location) core.Time
	// Origin returns the base time from which calendar-aligned periods near t are counted.
	Origin(t core.Time, zone *time.Location) core.Time
}

// Align says what the boundaries of periods are counted from.
type Align uint8

const (
	Calendar       Align = iota // the Origin of the unit
	StartTime                   // the start of the range
	EndTime                     // the end of the range, backwards
	FirstValueTime              // the first sample in the range
)

var alignNames = [...]string{"CALENDAR", "START_TIME", "END_TIME", "FIRST_VALUE_TIME"}

// ParseAlign reads the name of an alignment, any case; the empty text is Calendar.
func ParseAlign(text string) (Align, error) {
	for i, name := range alignNames {
		if strings.EqualFold(text, name) {
			return Align(i), nil
		}
	}
	if text == "" {
		return Calendar, nil
	}
	return 0, fmt.Errorf("unknown alignment %q: use CALENDAR, START_TIME, END_TIME or FIRST_VALUE_TIME", text)
}

// String returns the name of the contract: START_TIME.
func (a Align) String() string { return alignNames[a] }

// Period divides time into pieces of Count units. Zone nil is UTC.
type Period struct {
	Count int64
	Unit  Unit
	Align Align
	Zone  *time.Location
}

// Validate reports a period that divides nothing.
func (p Period) Validate() error {
	switch {
	case p.Unit == nil:
		return fmt.Errorf("period has no unit")
	case p.Count <= 0:
		return fmt.Errorf("period count is %d, must be positive", p.Count)
	}
	if _, fixed := p.Unit.FixedMillis(); !fixed && p.Unit.Add(0, 1, p.Zone) == 0 {
		return fmt.Errorf("period unit %v is too short: the shortest is MILLISECOND", p.Unit)
	}
	return nil
}

// Grid is the row of period starts inside a range: start <= p < end. Every start is counted from one origin, so clamped month ends do not drift. A Grid
// is immutable; the zero Grid has no periods.
type Grid struct {
	period Period
	end    core.Time
	origin core.Time
	first  int64 // index of the first period, counted from origin
	length int64 // fixed length in ms, 0 when the calendar decides
	count  int64 // of units in a calendar period, at most mostUnits
}

// Grid lays the periods over r. firstValue is the time of the first sample in r and matters for FirstValueTime alone. The first period is the earliest
// that starts in r: a period that starts before r is dropped, with its samples.
func (p Period) Grid(r core.Range, firstValue core.Time) (Grid, error) {
	g, err := p.grid(r, firstValue)
	if err != nil {
		return g, err
	}
	g.first = g.indexOf(r.Start)
	if start := g.boundary(g.first); start < r.Start || start == r.Start && g.early(g.first) {
		g.first++
	}
	return g, nil
}

// CoveringGrid is Grid with the rule of SQL: with calendar alignment the first period is the one that contains the start of r, even if it begins earlier.
func (p Period) CoveringGrid(r core.Range, firstValue core.Time) (Grid, error) {
	if p.Align != Calendar {
		return p.Grid(r, firstValue)
	}
	g, err := p.grid(r, firstValue)
	if err != nil {
		return g, err
	}
	// Only the first Monday of a month can lie after the start. It goes back by single weeks, whatever the count.
	for g.origin > r.Start {
		back := p.Unit.Add(g.origin, -1, p.Zone)
		if back >= g.origin {
			break
		}
		g.origin = back
	}
	g.first = g.indexOf(r.Start)
	return g, nil
}

func (p Period) grid(r core.Range, firstValue core.Time) (Grid, error) {
	if err := p.Validate(); err != nil {
		return Grid{}, err
	}
	g := Grid{period: p, end: r.End, count: min(p.Count, mostUnits)}
	if millis, ok := p.Unit.FixedMillis(); ok {
		g.length = maxFixed
		if p.Count < maxFixed/millis {
			g.length = p.Count * millis
		}
	}
	switch p.Align {
	case Calendar:
		g.origin = p.Unit.Origin(r.Start, p.Zone)
	case StartTime:
		g.origin = r.Start
	case EndTime:
		g.origin = r.End
	case FirstValueTime:
		g.origin = firstValue
	}
	return g, nil
}

// maxFixed bounds a fixed period to some 36 million years, so that sums of a time and a period never overflow.
const maxFixed = math.MaxInt64 / 8

// mostUnits exceeds the number of days that there are dates for: so many calendar units lead to the first or the last date. Its square fits 64 bits several
// times.
const mostUnits = 1 << 24

// boundary returns the start of the period with index k, counted from the origin.
func (g *Grid) boundary(k int64) core.Time {
	if g.length > 0 {
		if k > maxFixed/g.length || k < -maxFixed/g.length {
			return core.Time(math.Copysign(maxFixed, float64(k)))
		}
		return g.origin + core.Time(k*g.length)
	}
	return g.period.Unit.Add(g.origin, k*g.count, g.period.Zone)
}

// early reports whether the period with index k starts before the first date there is, which stands for its start then: the next period is less than a period
// away from there.
func (g *Grid) early(k int64) bool {
	start := g.boundary(k)
	return g.length == 0 && start == g.boundary(-mostUnits) && g.period.Unit.Add(start, g.count, g.period.Zone) > g.boundary(k+1)
}

// late is early for the last date there is and the period before.
func (g *Grid) late(k int64) bool {
	start := g.boundary(k)
	return g.length == 0 && start == g.boundary(mostUnits) && g.period.Unit.Add(start, -g.count, g.period.Zone) < g.boundary(k-1)
}

// indexOf returns the greatest k with boundary(k) <= t.
func (g *Grid) indexOf(t core.Time) int64 {
	if g.length > 0 {
		d := int64(t - g.origin)
		k := d / g.length
		if d%g.length < 0 {
			k--
		}
		return k
	}
	// Calendar periods have almost equal lengths: jump by the length of one beside the origin until near. Where dates end, one of the two is cut short.
	length := int64(max(g.boundary(1)-g.origin, g.origin-g.boundary(-1)))
	k := int64(t-g.origin) / length
	for range 3 {
		jump := int64(t-g.boundary(k)) / length
		if jump == 0 {
			break
		}
		k += jump
	}
	low, high := k, k+1
	for step := int64(1); g.boundary(low) > t; step *= 2 {
		if low < -mostUnits {
			return g.indexOf(g.boundary(low)) // there are no dates before that
		}
		low, high = low-step, low
	}
	for step := int64(1); g.boundary(high) <= t; step *= 2 {
		if high > mostUnits {
			return g.indexOf(g.boundary(high) - 1) // nor after that
		}
		low, high = high, high+step
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; g.boundary(middle) <= t {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Starts yields the period starts in ascending order.
func (g *Grid) Starts() iter.Seq[core.Time] { return g.startsFrom(g.first) }

// startsFrom yields the starts of the periods with index k and later, counted from the origin.
func (g *Grid) startsFrom(k int64) iter.Seq[core.Time] {
	return func(yield func(core.Time) bool) {
		if g.period.Unit == nil {
			return
		}
		k, start := k, g.boundary(k)
		for start < g.end {
			next := g.boundary(k + 1)
			if next <= start && g.late(k) || !yield(start) || next <= start {
				return
			}
			k, start = k+1, next
		}
	}
}

// Period returns the period that the grid repeats.
func (g *Grid) Period() Period { return g.period }

// After yields the period starts later than t, also those beyond the range that the grid was laid over, until the last date there is.
func (g *Grid) After(t core.Time) iter.Seq[core.Time] {
	endless := *g
	endless.end = math.MaxInt64
	k := endless.indexOf(t) + 1
	if endless.boundary(k) <= t {
		endless.end = t // there is no later date
	}
	return endless.startsFrom(k)
}

// Consecutive reports whether times are period starts that follow each other without a gap. They may lie beyond the range of the grid.
func (g *Grid) Consecutive(times []core.Time) bool {
	if len(times) == 0 {
		return true
	}
	k := g.indexOf(times[0])
	for _, t := range times {
		if g.boundary(k) != t {
			return false
		}
		k++
	}
	return true
}

// Past returns an end for a range that ended at end and has to go on beyond last: the first time after last that keeps the periods where they were.
func (p Period) Past(end, last core.Time) core.Time {
	if p.Align != EndTime {
		return last + 1
	}
	p.Align = StartTime
	g, err := p.Grid(core.Range{Start: end, End: last + 1}, 0)
	if err != nil {
		return last + 1
	}
	return g.boundary(g.indexOf(last) + 1)
}

// Cursor walks a grid forward with samples in ascending order.
type Cursor struct {
	grid        *Grid
	index       int64
	start, next core.Time
}

// Cursor returns a cursor before the first period.
func (g *Grid) Cursor() Cursor {
	start := g.boundary(g.first)
	return Cursor{grid: g, index: g.first, start: start, next: g.boundary(g.first + 1)}
}

// Seek moves to the period that contains t and reports whether there is one: t lies neither before the first start nor at or after the end of the
// range. t must not go back by more than the current period; it costs a comparison while the period stays the same.
func (c *Cursor) Seek(t core.Time) bool {
	if t >= c.next {
		c.advance(t)
	}
	return t >= c.start && t < c.grid.end
}

func (c *Cursor) advance(t core.Time) {
	if c.grid.length > 0 {
		c.index = c.grid.indexOf(t)
		c.start = c.grid.boundary(c.index)
		c.next = c.grid.boundary(c.index + 1)
		return
	}
	for c.next <= t {
		following := c.grid.boundary(c.index + 2)
		if following <= c.next {
			following = math.MaxInt64 // the last period reaches to the end of time
		}
		c.index, c.start, c.next = c.index+1, c.next, following
	}
}

// Start and End bound the current period; End may lie beyond the range.
func (c *Cursor) Start() core.Time { return c.start }

// End returns the start of the following period.
func (c *Cursor) End() core.Time { return c.next }

// Index numbers the current period; following periods have following numbers.
func (c *Cursor) Index() int64 { return c.index - c.grid.first }
