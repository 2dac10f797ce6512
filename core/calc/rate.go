package calc

import (
	"math"

	"github.com/tidemark-db/tidemark/core"
)

// Rate turns values into their differences. The zero Rate treats them as a counter: a decrease gives no value, and the next difference starts from it.
type Rate struct {
	// PerMillis divides each difference by the time it took, in units of so many milliseconds; a nanosecond is 1e-6. 0 leaves the difference alone.
	PerMillis float64
	// Signed keeps decreases.
	Signed bool
	// Decimal makes the differences exact: the values stand for decimal numbers.
	Decimal bool
}

// Apply returns the rate between consecutive samples at the time of the later one. NaN values are no operands.
func (r Rate) Apply(times []core.Time, values []float64) Series {
	var out Series
	before := -1
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if before >= 0 && (r.Signed || v >= values[before]) {
			d := v - values[before]
			if r.Decimal {
				d = Minus(v, values[before])
			}
			switch took := float64(times[i] - times[before]); {
			case r.PerMillis >= 1:
				d = d * r.PerMillis / took
			case r.PerMillis > 0: // 1e-6 is no exact double, its inverse is
				d /= took * (1 / r.PerMillis)
			}
			out.add(times[i], d)
		}
		before = i
	}
	return out
}
