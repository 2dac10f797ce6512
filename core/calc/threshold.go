package calc

import (
	"math"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Threshold is violated by values below Min or above Max. An open side is an infinity.
type Threshold struct{ Min, Max float64 }

// side returns -1 below the limits, 1 above and 0 within.
func (th Threshold) side(v float64) int {
	switch {
	case v > th.Max:
		return 1
	case v < th.Min:
		return -1
	}
	return 0
}

func (th Threshold) limit(side int) float64 {
	if side > 0 {
		return th.Max
	}
	return th.Min
}

// MinutesOfDay is a part of the local day, Start inclusive, End exclusive.
type MinutesOfDay struct{ Start, End int }

// violation is a maximal interval outside the threshold.
type violation = core.Range

// violate appends the violations inside the current period. The first value is held back to the start and the last one to the end of the period, even
// where that lies beyond the range; between samples the value is linear.
func (g *Aggregator) violate(found []violation) []violation {
	th := *g.Threshold
	side, from := th.side(g.values[0]), g.from
	for i := 1; i < len(g.values); i++ {
		next := th.side(g.values[i])
		if next == side {
			continue
		}
		if side != 0 {
			found = append(found, violation{Start: from, End: g.crossing(i, th.limit(side))})
		}
		if next != 0 {
			from = g.crossing(i, th.limit(next))
		}
		side = next
	}
	if side != 0 {
		found = append(found, violation{Start: from, End: g.to})
	}
	return found
}

// crossing returns the time between samples i-1 and i at which the line through them meets limit, cut to a whole millisecond.
func (g *Aggregator) crossing(i int, limit float64) core.Time {
	t1, v1, t2, v2 := g.times[i-1], g.values[i-1], g.times[i], g.values[i]
	if math.IsInf(v1, 0) {
		return t2 // where the crossing goes as v1 grows
	}
	return t1 + core.Time(math.Trunc((limit-v1)*float64(t2-t1)/(v2-v1)))
}

// threshold computes a threshold function of the current period; ok is false when no time that counts falls into it.
func (g *Aggregator) threshold(kind Kind) (v float64, ok bool) {
	g.violations = g.violate(g.violations[:0])
	var total, violated core.Time
	count, rest := 0, g.violations // rest are those that end after the windows so far
	for window := range g.windows {
		total += window.End - window.Start
		for len(rest) > 0 && rest[0].End <= window.Start {
			rest = rest[1:]
		}
		for _, found := range rest {
			if found.Start >= window.End {
				break
			}
			if common := found.Intersect(window); !common.Empty() {
				violated += common.End - common.Start
				count++
			}
		}
	}
	if total == 0 {
		return 0, false
	}
	switch kind {
	case KindThresholdCount:
		return float64(count), true
	case KindThresholdDuration:
		return float64(violated), true
	}
	return 100 * (1 - float64(violated)/float64(total)), true
}

// windows yields the parts of the current period that count, in order and apart from each other: all of it, or the working minutes of each local day
// that is worked.
func (g *Aggregator) windows(yield func(core.Range) bool) {
	period := core.Range{Start: g.from, End: g.to}
	if g.Working == nil && g.Workday == nil {
		yield(period)
		return
	}
	var open core.Range // not yielded yet: the next day may go on without a gap
	for day := range g.days {
		if day = day.Intersect(period); day.Empty() {
			continue
		}
		if !open.Empty() && open.End == day.Start {
			open.End = day.End
			continue
		}
		if !open.Empty() && !yield(open) {
			return
		}
		open = day
	}
	if !open.Empty() {
		yield(open)
	}
}

// days yields what counts of each local day from the start of the current period to its end.
func (g *Aggregator) days(yield func(core.Range) bool) {
	zone, minutes := g.Period.Zone, MinutesOfDay{End: 24 * 60}
	if zone == nil {
		zone = time.UTC
	}
	if g.Working != nil {
		minutes = *g.Working
	}
	year, month, day := g.from.Std().In(zone).Date()
	for ; ; day++ {
		start := core.TimeOf(time.Date(year, month, day, 0, minutes.Start, 0, 0, zone))
		if start >= g.to {
			return
		}
		if g.Workday != nil && !g.Workday(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Date()) {
			continue
		}
		end := core.TimeOf(time.Date(year, month, day, 0, minutes.End, 0, 0, zone))
		if !yield(core.Range{Start: start, End: end}) {
			return
		}
	}
}
