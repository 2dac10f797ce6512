package dates

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// PatternError says where a text leaves its pattern.
type PatternError struct {
	Text, Pattern string
	Pos           int // byte in Text
	Reason        string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("date %q does not fit pattern %q at character %d: %s", e.Text, e.Pattern, e.Pos+1, e.Reason)
}

// reading is how a text is to be read.
type reading struct {
	zone    *time.Location
	agree   bool // the zone in the text must agree with zone
	lenient bool
}

// fault is the reason of a failure at the parser's position; the empty fault is success. Optional sections fail often, so a fault must not allocate.
type fault string

// parsed collects fields. The zero value of a part that is counted from 1 means absent.
type parsed struct {
	era                            int // 1 BC, 2 AD
	year, weekYear                 int
	hasYear, hasWeekYear           bool
	month, day, dayOfYear, quarter int
	week, weekday                  int // weekday Monday = 1
	hour24, hour12, minute, second int
	hasHour24, hasHour12           bool
	marker                         int   // 1 AM, 2 PM
	millis                         int64 // of the second
	millisOfDay                    int64
	hasMillisOfDay, hasOffset      bool
	offset                         int64
	zoneName                       string
}

type patternParser struct {
	pattern *Pattern
	text    string
	pos     int
	lenient bool
	parsed
}

func (p *Pattern) parse(text string, r reading) (core.Time, error) {
	if p.named != unnamed {
		return p.parseNamed(text, r)
	}
	s := patternParser{pattern: p, text: text, lenient: r.lenient}
	why := s.elements(p.elements)
	if why == "" && s.pos < len(text) && !r.lenient {
		why = "text after the end of the pattern"
	}
	var t core.Time
	if why == "" {
		t, why = s.instant(r)
	}
	if why != "" {
		return 0, &PatternError{Text: text, Pattern: p.source, Pos: s.pos, Reason: string(why)}
	}
	return t, nil
}

func (p *Pattern) parseNamed(text string, r reading) (core.Time, error) {
	var t core.Time
	var err error
	switch p.named {
	case namedISO:
		if t, err = ParseISO(text); err == nil {
			break
		}
		if r.lenient {
			if w, ok := parseWall(text); ok {
				return w.in(r.zone), nil
			}
		}
		return 0, err
	case namedMillis:
		whole, _, ok := parseDecimal(text)
		if !ok {
			return 0, &PatternError{Text: text, Pattern: p.source, Reason: "not a number of milliseconds"}
		}
		return core.Time(whole), nil
	default:
		whole, millis, ok := parseDecimal(text)
		if !ok || whole > int64(MaxDate) || whole < int64(MinDate) {
			return 0, &PatternError{Text: text, Pattern: p.source, Reason: "not a number of seconds"}
		}
		return core.Time(whole*secondMillis + millis), nil
	}
	if r.agree && wallText(text) != wallOf(t, r.zone) {
		return 0, &PatternError{Text: text, Pattern: p.source, Pos: len(text), Reason: zoneConflict}
	}
	return t, nil
}

// wallText returns the local reading of a valid ISO text.
func wallText(text string) wall {
	zone := strings.LastIndexAny(text, "+-Z")
	t, _ := ParseISO(text[:zone] + "Z")
	return wall(t)
}

// parseDecimal reads an optional sign, digits and an optional fraction, which is cut to thousandths with the sign of the number.
func parseDecimal(text string) (whole, thousandths int64, ok bool) {
	number, fraction, dotted := strings.Cut(text, ".")
	whole, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if dotted {
		if _, ok := digits(fraction); !ok {
			return 0, 0, false
		}
		thousandths = int64(fractionMillis(fraction))
	}
	if strings.HasPrefix(number, "-") {
		thousandths = -thousandths
	}
	return whole, thousandths, true
}

func (s *patternParser) elements(elements []element) fault {
	for i := range elements {
		e := &elements[i]
		switch e.letter {
		case 0:
			if !strings.HasPrefix(s.text[s.pos:], e.text) {
				return "another text is due here"
			}
			s.pos += len(e.text)
		case '[':
			before := *s
			if s.elements(e.section) != "" {
				*s = before
			}
		default:
			for e.pad > 0 && s.pos < len(s.text) && s.text[s.pos] == ' ' {
				s.pos++
			}
			if why := s.field(e); why != "" {
				return why
			}
		}
	}
	return ""
}

func (s *patternParser) field(e *element) fault {
	switch {
	case e.numeric():
		return s.numberField(e)
	case strings.IndexByte("VzOXxZ", e.letter) >= 0:
		return s.zoneField(e)
	}
	var n int
	switch e.letter {
	case 'M':
		if n = s.name(monthNames[:]); n > 0 {
			s.month = n
		}
	case 'e', 'E':
		if n = s.name(weekdayNames[:]); n > 0 {
			s.weekday = (n+5)%7 + 1 // the names start with Sunday
		}
	case 'a':
		if n = s.oneOf([]string{"AM", "PM"}); n > 0 {
			s.marker = n
		}
	case 'G':
		names := eraNames[e.count-1]
		if n = s.oneOf(names[:]); n > 0 {
			s.era = n
		}
	case 'Q', 'q':
		if n = s.oneOf(quarterNames[:]); n == 0 {
			n = s.oneOf([]string{"Q1", "Q2", "Q3", "Q4"})
		}
		if n > 0 {
			s.quarter = n
		}
	}
	if n == 0 {
		return "unknown name"
	}
	return ""
}

var (
	monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}

	weekdayNames = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

// oneOf takes the first of some texts in any letter case and returns its number from 1, or 0.
func (s *patternParser) oneOf(texts []string) int {
	for i, text := range texts {
		if rest := s.text[s.pos:]; len(rest) >= len(text) && strings.EqualFold(rest[:len(text)], text) {
			s.pos += len(text)
			return i + 1
		}
	}
	return 0
}

// name takes a name in full or by its first three letters.
func (s *patternParser) name(names []string) int {
	if n := s.oneOf(names); n > 0 {
		return n
	}
	for i, name := range names {
		if rest := s.text[s.pos:]; len(rest) >= 3 && strings.EqualFold(rest[:3], name[:3]) {
			s.pos += 3
			return i + 1
		}
	}
	return 0
}

// number takes the digits of a field.
func (s *patternParser) number(e *element) (n int64, length int, ok bool) {
	least, most := e.count, e.count
	switch {
	case e.pad > 0:
		least = 1
	case e.count == 1 && e.letter != 'S':
		most = 15
		if e.letter != 'y' && e.letter != 'Y' && e.letter != 'A' && e.letter != 'n' && e.letter != 'N' {
			most = 2
		}
		if e.letter == 'D' {
			most = 3
		}
	case s.lenient && !e.touching && e.letter == 'S':
		least, most = 1, 9
	case s.lenient && !e.touching && e.count == 2 && e.letter != 'y' && e.letter != 'Y':
		least = 1
	}
	run := 0
	for s.pos+run < len(s.text) && run < most+e.reserve && isDigit(s.text[s.pos+run]) {
		run++
	}
	if run = min(run, max(run-e.reserve, least)); run > most {
		run = most
	}
	if run < least {
		return 0, 0, false
	}
	for i := range run {
		n = n*10 + int64(s.text[s.pos+i]-'0')
	}
	s.pos += run
	return n, run, true
}

// numberField reads and checks one numeric field.
func (s *patternParser) numberField(e *element) fault {
	start := s.pos
	n64, _, ok := s.number(e)
	if !ok {
		return "digits are due here"
	}
	n := int(min(n64, 1<<30))
	low, high := 0, 59
	switch e.letter {
	case 'y', 'Y':
		if e.count == 2 {
			n += 2000
		}
		high = 9999
		if e.letter == 'y' {
			s.year, s.hasYear = n, true
		} else {
			s.weekYear, s.hasWeekYear = n, true
		}
	case 'D':
		low, high, s.dayOfYear = 1, 366, n
	case 'M':
		low, high, s.month = 1, 12, n
	case 'd':
		low, high, s.day = 1, 31, n
	case 'Q', 'q':
		low, high, s.quarter = 1, 4, n
	case 'w':
		low, high, s.week = 1, 53, n
	case 'u':
		low, high, s.weekday = 1, 7, n
	case 'e':
		low, high, s.weekday = 1, 7, (n+5)%7+1
	case 'H':
		high, s.hour24, s.hasHour24 = 23, n, true
	case 'k':
		low, high, s.hour24, s.hasHour24 = 1, 24, n%24, true
	case 'K':
		high, s.hour12, s.hasHour12 = 11, n, true
	case 'h':
		low, high, s.hour12, s.hasHour12 = 1, 12, n%12, true
	case 'm':
		s.minute = n
	case 's':
		s.second = n
	case 'S':
		n, s.millis = 0, int64(fractionMillis(s.text[start:s.pos]))
	case 'A':
		high, s.millisOfDay, s.hasMillisOfDay = dayMillis-1, n64, true
	case 'n':
		high, s.millis = 999_999_999, n64/1e6
	case 'N':
		n, s.millisOfDay, s.hasMillisOfDay = int(min(n64/1e6, dayMillis)), n64/1e6, true
		high = dayMillis - 1
	}
	if n < low || n > high {
		s.pos = start
		return "the number is out of range"
	}
	return ""
}

// zoneField takes an offset, Z or a zone ID. Every offset form is accepted for every letter, because texts written by others mix them.
func (s *patternParser) zoneField(e *element) fault {
	rest := s.text[s.pos:]
	if e.letter == 'O' || e.letter == 'Z' && e.count == 4 {
		trimmed, ok := strings.CutPrefix(rest, "GMT")
		if !ok {
			return "GMT is due here"
		}
		s.pos += len("GMT")
		if rest = trimmed; rest == "" || rest[0] != '+' && rest[0] != '-' {
			s.hasOffset = true
			return ""
		}
	}
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		millis, length := takeOffset(rest)
		if length == 0 {
			return "the offset is not ±hh, ±hhmm or ±hh:mm up to 18:00"
		}
		s.pos += length
		s.offset, s.hasOffset = millis, true
		return ""
	}
	if e.letter == 'z' && e.count == 4 && s.fullZone(rest) {
		return ""
	}
	length := 0
	for length < len(rest) && (isLetter(rest[length]) || isDigit(rest[length]) || strings.IndexByte("/_+-", rest[length]) >= 0) {
		length++
	}
	named := e.letter == 'V' || e.letter == 'z' || e.letter == 'Z' && e.count == 3
	switch name := rest[:length]; {
	case name == "":
		return "a zone is due here"
	case name == "Z" || name == "UTC" || name == "GMT":
		s.hasOffset = true
	case named:
		s.zoneName = name
	case rest[0] == 'Z':
		s.hasOffset, length = true, 1
	default:
		return "Z or an offset is due here"
	}
	s.pos += length
	return ""
}

// fullZone takes a full zone name such as Eastern Standard Time.
func (s *patternParser) fullZone(rest string) bool {
	for _, z := range zoneAbbreviations {
		if strings.HasPrefix(rest, z.full) {
			s.offset, s.hasOffset = z.hours*hourMillis, true
			s.pos += len(z.full)
			return true
		}
	}
	return false
}

// takeOffset reads ±h, ±hh, ±hhmm, ±hh:mm, ±hhmmss or ±hh:mm:ss from the start of s; length 0 is a failure.
func takeOffset(s string) (millis int64, length int) {
	pos, parts := 1, [3]int{}
	for i := range parts {
		at := pos
		if i > 0 && at < len(s) && s[at] == ':' {
			at++
		}
		size := 2
		if at+1 >= len(s) || !isDigit(s[at+1]) {
			size = 1 // a single digit is an hour
		}
		if at+size > len(s) || size == 1 && i > 0 {
			break
		}
		n, ok := digits(s[at : at+size])
		if !ok {
			break
		}
		parts[i], pos = n, at+size
	}
	millis = int64(parts[0])*hourMillis + int64(parts[1])*minuteMillis + int64(parts[2])*secondMillis
	if pos == 1 || parts[1] > 59 || parts[2] > 59 || millis > maxOffsetHours*hourMillis {
		return 0, 0
	}
	if s[0] == '-' {
		millis = -millis
	}
	return millis, pos
}

const zoneConflict = "the zone differs from the zone argument"

// instant turns the fields into a time.
func (s *patternParser) instant(r reading) (core.Time, fault) {
	day, why := s.date()
	if why != "" {
		return 0, why
	}
	ofDay, why := s.ofDay()
	if why != "" {
		return 0, why
	}
	w := day.wall() + wall(ofDay)
	t, why := s.place(w, r.zone)
	if why == "" && r.agree && wallOf(t, r.zone) != w && w.in(r.zone) != t {
		why = zoneConflict
	}
	return t, why
}

// place finds the instant of a local reading: by the offset or zone in the text, else by the given zone.
func (s *patternParser) place(w wall, zone *time.Location) (core.Time, fault) {
	if s.hasOffset {
		return core.Time(int64(w) - s.offset), ""
	}
	if s.zoneName == "" {
		return w.in(zone), ""
	}
	if zone != nil {
		t := w.in(zone)
		if short, _ := t.Std().In(zone).Zone(); short == s.zoneName {
			return t, ""
		}
	}
	for _, z := range zoneAbbreviations {
		if z.short == s.zoneName {
			return core.Time(int64(w) - z.hours*hourMillis), ""
		}
	}
	loaded, err := s.pattern.zones.Load(s.zoneName)
	if err != nil {
		return 0, "unknown time zone"
	}
	return w.in(loaded), ""
}

func (s *patternParser) date() (Date, fault) {
	if s.hasWeekYear && (s.week > 0 || !s.hasYear) {
		// 4 January always lies in week 1.
		day := DateAt(s.weekYear, time.January, 4).monday() + Date(max(s.week, 1)-1)*7 + Date(max(s.weekday, 1)-1)
		return day, ""
	}
	year := s.year
	switch {
	case !s.hasYear:
		year = 1970
	case s.era == 1:
		year = 1 - year
	}
	if s.dayOfYear > 0 {
		day := DateAt(year, time.January, s.dayOfYear)
		if got, _, _ := day.Split(); got != year {
			return 0, "no such day in this year"
		}
		return day, ""
	}
	month := s.month
	if month == 0 {
		month = max(s.quarter-1, 0)*3 + 1
	}
	dayOfMonth := max(s.day, 1)
	if dayOfMonth > daysIn(year, time.Month(month)) {
		return 0, "no such day in this month"
	}
	day := DateAt(year, time.Month(month), dayOfMonth)
	if s.weekday > 0 && s.day > 0 && !s.lenient && day.isoWeekday() != s.weekday {
		return 0, "the day of the week is another one"
	}
	return day, ""
}

// ofDay returns the milliseconds since midnight.
func (s *patternParser) ofDay() (int64, fault) {
	if s.hasMillisOfDay {
		return s.millisOfDay, ""
	}
	hour := s.hour24
	switch {
	case s.hasHour12 && !s.hasHour24:
		hour = s.hour12
		if s.marker == 2 {
			hour += 12
		}
	case s.hasHour24 && s.marker > 0 && s.lenient && hour <= 12:
		hour = hour%12 + (s.marker-1)*12
	case s.hasHour24 && s.marker > 0 && !s.lenient && hour/12 != s.marker-1:
		return 0, "AM or PM contradicts the hour"
	}
	return int64(hour)*hourMillis + int64(s.minute)*minuteMillis + int64(s.second)*secondMillis + s.millis, ""
}
