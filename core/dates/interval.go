package dates

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Interval is a length of time, such as 5 MINUTE or 1 MONTH.
type Interval struct {
	Count int64
	Unit  Unit
}

// NewInterval cuts a count to a whole number of units; counts beyond 64 bits are clamped, NaN is zero.
func NewInterval(count float64, unit Unit) Interval {
	switch {
	case math.IsNaN(count):
		return Interval{Unit: unit}
	case count >= math.MaxInt64:
		return Interval{math.MaxInt64, unit}
	case count <= -math.MaxInt64:
		return Interval{-math.MaxInt64, unit}
	}
	return Interval{int64(count), unit}
}

// ParseInterval reads a count and a unit in the forms of URLs (`1-DAY`), rules (`5 minute`) and their compact shape (`500ms`, `30s`, `15m`, `6h`, `2d`,
// `1w`). Units by name ignore case and take the plural; the short ones are lower case. A fraction of the count is cut, as everywhere in the contract.
func ParseInterval(text string) (Interval, error) {
	s := strings.TrimSpace(text)
	digits := 0
	for digits < len(s) && (isDigit(s[digits]) || s[digits] == '.') {
		digits++
	}
	count, err := strconv.ParseFloat(s[:digits], 64)
	if err != nil || math.IsInf(count, 0) {
		return Interval{}, fmt.Errorf("interval %q does not start with a count: write for example 1-DAY or 15m", text)
	}
	rest := strings.TrimSpace(s[digits:])
	if dashed, ok := strings.CutPrefix(rest, "-"); ok {
		rest = strings.TrimSpace(dashed)
	}
	if unit, ok := unitByShort(rest); ok {
		return NewInterval(count, unit), nil
	}
	unit, err := ParseUnit(rest)
	if err != nil {
		return Interval{}, fmt.Errorf("interval %q: %w", text, err)
	}
	return NewInterval(count, unit), nil
}

func unitByShort(text string) (Unit, bool) {
	for u := Millisecond; u <= Week; u++ {
		if unitFacts[u].short == text {
			return u, true
		}
	}
	return 0, false
}

// String returns the URL form: 1-DAY.
func (v Interval) String() string { return strconv.FormatInt(v.Count, 10) + "-" + v.Unit.String() }

// After returns t plus the interval, clamped to MinDate and MaxDate; zone decides where days and longer units end.
func (v Interval) After(t core.Time, zone *time.Location) core.Time {
	return v.Unit.Add(t, v.Count, zone)
}

// Before returns t minus the interval.
func (v Interval) Before(t core.Time, zone *time.Location) core.Time {
	if v.Count == math.MinInt64 {
		return v.Unit.Add(t, math.MaxInt64, zone)
	}
	return v.Unit.Add(t, -v.Count, zone)
}

// NominalMillis returns the length in milliseconds with the nominal lengths of Unit.NominalMillis; it is what a rate divides by.
func (v Interval) NominalMillis() float64 { return float64(v.Count) * v.Unit.NominalMillis() }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
