package nmon

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// clock reads the local times of a file. Old files of AIX have no date in their ZZZZ lines: it starts with AAA,date and a time of day
// that is smaller than the one before begins another day.
type clock struct {
	offsets   []abi.ZoneOffset // of the zone of the file, ordered; none = UTC
	day       int64            // of the last snapshot without a date, days since 1970; -1 before the first
	timeOfDay int64            // of that snapshot, seconds
	dateText  string           // the last date that was read, and its days since 1970: most snapshots have the date of the one before
	dateDay   int64
}

func (c *clock) restart() { c.day, c.timeOfDay = -1, 0 }

// snapshot reads `hh:mm:ss` or `hh:mm:ss,dd-MMM-yyyy` and returns Unix ms. fileDate is AAA,date.
func (c *clock) snapshot(text, fileDate string) (int64, error) {
	clockText, dateText, dated := strings.Cut(strings.TrimRight(text, ", \r"), ",")
	seconds, ok := timeOfDay(clockText)
	if !ok {
		return 0, fmt.Errorf("ZZZZ line with the time %q: expected hh:mm:ss", clockText)
	}
	if dated {
		if dateText != c.dateText || dateText == "" {
			day, ok := date(dateText)
			if !ok {
				return 0, fmt.Errorf("ZZZZ line with the date %q: expected dd-MMM-yyyy", dateText)
			}
			c.dateText, c.dateDay = dateText, day
		}
		return c.utc(c.dateDay*86400 + seconds), nil
	}
	switch {
	case c.day < 0:
		day, ok := date(fileDate)
		if !ok {
			return 0, fmt.Errorf("ZZZZ line without a date, and AAA,date is %q", fileDate)
		}
		c.day = day
	case seconds < c.timeOfDay:
		c.day++
	}
	c.timeOfDay = seconds
	return c.utc(c.day*86400 + seconds), nil
}

// utc turns local seconds into Unix ms. A time that a clock change skipped counts with the offset before it; one that comes twice is
// the first.
func (c *clock) utc(local int64) int64 {
	if len(c.offsets) == 0 {
		return local * 1000
	}
	best := (local - int64(c.offsets[0].Seconds)) * 1000
	for i, o := range c.offsets {
		utc := (local - int64(o.Seconds)) * 1000
		if utc < o.From && i > 0 {
			break
		}
		if i+1 == len(c.offsets) || utc < c.offsets[i+1].From {
			return utc
		}
		best = utc
	}
	return best
}

// timeOfDay reads hh:mm:ss; Linux writes a dot before the seconds in AAA,time.
func timeOfDay(s string) (seconds int64, ok bool) {
	if len(s) == 8 && s[2] == ':' && s[5] == ':' {
		if seconds, ok = fixedTimeOfDay(s); ok {
			return seconds, true
		}
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ':' || r == '.' })
	if len(parts) != 3 {
		return 0, false
	}
	for i, limit := range []uint64{23, 59, 60} {
		n, err := strconv.ParseUint(strings.TrimSpace(parts[i]), 10, 8)
		if err != nil || n > limit {
			return 0, false
		}
		seconds = seconds*60 + int64(n)
	}
	return seconds, true
}

// fixedTimeOfDay reads two digits for each of the three; it is not ok for anything else, like blanks in place of zeros.
func fixedTimeOfDay(s string) (seconds int64, ok bool) {
	h1, h2, m1, m2, s1, s2 := s[0]-'0', s[1]-'0', s[3]-'0', s[4]-'0', s[6]-'0', s[7]-'0'
	hour, minute, second := int64(h1)*10+int64(h2), int64(m1)*10+int64(m2), int64(s1)*10+int64(s2)
	ok = h1 <= 9 && h2 <= 9 && m1 <= 5 && m2 <= 9 && s1 <= 9 && s2 <= 9 && hour <= 23 && second <= 60
	return (hour*60+minute)*60 + second, ok
}

var months = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// date reads dd-MMM-yyyy, or NN/NN/yy with the month first unless the first number is above 12. It returns days since 1970.
func date(s string) (days int64, ok bool) {
	s = strings.TrimSpace(s)
	if parts := strings.Split(s, "-"); len(parts) == 3 {
		month := slices.Index(months[:], strings.ToLower(parts[1]))
		return civil(parts[2], month+1, parts[0])
	}
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return 0, false
	}
	month, err1 := strconv.Atoi(parts[0])
	day, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return 0, false
	}
	if month > 12 {
		month, day = day, month
	}
	return civil(parts[2], month, strconv.Itoa(day))
}

// civil counts days since 1970-01-01 in the Gregorian calendar, with years that begin in March (H. Hinnant, "chrono-Compatible Low-Level
// Date Algorithms").
func civil(yearText string, month int, dayText string) (days int64, ok bool) {
	year, err1 := strconv.Atoi(yearText)
	day, err2 := strconv.Atoi(dayText)
	if err1 != nil || err2 != nil || month < 1 || month > 12 || day < 1 || day > 31 || year < 0 || year > 9999 {
		return 0, false
	}
	if year < 100 {
		year += 2000
	}
	if month <= 2 {
		year--
		month += 12
	}
	return int64(year*365+year/4-year/100+year/400+(153*(month-3)+2)/5+day-1) - 719468, true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
