package dates

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Calendar says which days are worked: the regular week of a country plus exceptions. A nil Calendar is the week from Monday to Friday. A Calendar is
// immutable.
type Calendar struct {
	name, country string
	exceptions    map[Date]bool // true: worked although the week says no; false: off although it says yes
	years         map[int]bool  // years with at least one exception
}

// CalendarFile is the form of a calendar as it is written down. Country is the ISO 3166 alpha-3 code that decides the regular week.
type CalendarFile struct {
	Country string        `json:"country" yaml:"country"`
	Data    []CalendarDay `json:"data" yaml:"data"`
}

// CalendarDay is an exception: Type is Holiday, a weekday off, or Workday, a day of the weekend that is worked.
type CalendarDay struct {
	Date        string `json:"date" yaml:"date"` // yyyy-MM-dd
	Type        string `json:"type" yaml:"type"`
	Description string `json:"description" yaml:"description"`
}

// ParseCalendar reads a calendar file, {"country":"USA","data":[{"date":"2019-01-01","type":"Holiday","description":""}]}; type is Holiday or Workday.
// The name is its key, the file name without extension, and ignores case.
func ParseCalendar(name string, data []byte) (*Calendar, error) {
	var file CalendarFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("calendar %q: %w", name, err)
	}
	return file.Calendar(name)
}

// Calendar checks the file and makes a calendar of that key.
func (f CalendarFile) Calendar(name string) (*Calendar, error) {
	c := newCalendar(name, f.Country)
	for i, entry := range f.Data {
		day, err := parseDate(entry.Date)
		if err != nil {
			return nil, fmt.Errorf("calendar %q, entry %d: %w", name, i+1, err)
		}
		worked := strings.EqualFold(entry.Type, "Workday")
		if !worked && !strings.EqualFold(entry.Type, "Holiday") {
			return nil, fmt.Errorf("calendar %q, entry %d: type %q is neither Holiday nor Workday", name, i+1, entry.Type)
		}
		if before, twice := c.exceptions[day]; twice && before != worked {
			return nil, fmt.Errorf("calendar %q, entry %d: %s is a Holiday and a Workday", name, i+1, entry.Date)
		}
		c.set(day, worked)
	}
	return c, nil
}

func newCalendar(name, country string) *Calendar {
	return &Calendar{name: strings.ToLower(name), country: strings.ToUpper(country), exceptions: make(map[Date]bool), years: make(map[int]bool)}
}

// set adds an exception while the calendar is made.
func (c *Calendar) set(day Date, worked bool) {
	c.exceptions[day] = worked
	year, _, _ := day.Split()
	c.years[year] = true
}

// parseDate reads yyyy-MM-dd.
func parseDate(text string) (Date, error) {
	t, err := ParseISO(text + "T00:00:00Z")
	if err != nil {
		return 0, fmt.Errorf("%q is not a date yyyy-MM-dd", text)
	}
	return wall(t).day(), nil
}

// Name returns the key of the calendar in lower case; a nil Calendar has none.
func (c *Calendar) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Covers reports whether the calendar lists a day of that year. Workday falls back to the regular week in other years; where the contract wants an
// error instead, ask Covers first.
func (c *Calendar) Covers(year int) bool { return c != nil && c.years[year] }

// Workday reports whether d is worked: (a regular weekday and no Holiday) or a Workday.
func (c *Calendar) Workday(d Date) bool {
	if c == nil {
		return Weekday("", d)
	}
	if worked, ok := c.exceptions[d]; ok {
		return worked
	}
	return Weekday(c.country, d)
}

// ListedWorkday is Workday where the contract wants an error for a year of which the calendar lists no day. A nil Calendar lists nothing and needs
// nothing.
func (c *Calendar) ListedWorkday(d Date) (bool, error) {
	if year, _, _ := d.Split(); c != nil && !c.Covers(year) {
		return false, core.Errorf(core.Invalid, "workday calendar '%s' has no dates of the year %d", c.name, year)
	}
	return c.Workday(d), nil
}

// ExceptionDay reports whether d is a weekday off or a weekend day worked.
func (c *Calendar) ExceptionDay(d Date) bool {
	return c != nil && c.Workday(d) != Weekday(c.country, d)
}

// NextWorkday returns the first worked day strictly after d; PreviousWorkday, NextDayOff and PreviousDayOff likewise. A calendar without such a day in the
// year around d gives d itself.
func (c *Calendar) NextWorkday(d Date) Date { return c.seek(d, 1, true) }

// PreviousWorkday returns the last worked day strictly before d.
func (c *Calendar) PreviousWorkday(d Date) Date { return c.seek(d, -1, true) }

// NextDayOff returns the first day strictly after d that is not worked.
func (c *Calendar) NextDayOff(d Date) Date { return c.seek(d, 1, false) }

// PreviousDayOff returns the last day strictly before d that is not worked.
func (c *Calendar) PreviousDayOff(d Date) Date { return c.seek(d, -1, false) }

func (c *Calendar) seek(d, step Date, worked bool) Date {
	for next := d + step; next-d <= 366 && d-next <= 366; next += step {
		if c.Workday(next) == worked {
			return next
		}
	}
	return d
}

// Weekday reports whether d belongs to the regular working week of a country (ISO 3166 alpha-3, any case). Unknown countries work from Monday to Friday.
func Weekday(country string, d Date) bool {
	day := d.Weekday()
	switch strings.ToUpper(country) {
	case "ISR", "SAU", "EGY", "JOR", "KWT", "QAT", "BHR", "OMN", "IRQ", "DZA", "LBY", "YEM", "SYR", "SDN", "BGD":
		return day != time.Friday && day != time.Saturday
	case "IRN":
		return day != time.Friday
	case "NPL":
		return day != time.Saturday
	}
	return day != time.Saturday && day != time.Sunday
}
