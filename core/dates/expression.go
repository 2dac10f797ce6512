package dates

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// Moment is what a calendar expression is relative to. Zone nil is UTC; Calendar nil is the week from Monday to Friday. Calendars are those that a query
// may name; nil are the built-in ones.
type Moment struct {
	Now       core.Time
	Zone      *time.Location
	Calendar  *Calendar
	Calendars *Calendars
}

// Expr is a parsed calendar expression: a keyword and any number of shifts, as in `current_day - 1 * week + 8 * hour`.
type Expr struct {
	key   keyword
	terms []term
}

// keyword is the start of an expression. Each kind uses some of the fields.
type keyword struct {
	kind  keywordKind
	unit  Unit         // startOf
	shift int64        // startOf: units to add
	day   time.Weekday // weekday
}

type keywordKind uint8

const (
	instant keywordKind = iota // now
	startOf                    // current_hour, next_month, ...
	weekday                    // monday, ...
	currentWorkday
	previousWorkday
	nextWorkday
	previousDayOff
	nextDayOff
	firstWorkday // of the current month
	lastWorkday
	firstDayOff
	lastDayOff
	lastDay // of the current month
)

// term adds or, when negative, subtracts count + nanos/1e9 units.
type term struct {
	negative bool
	count    int64
	nanos    int64
	unit     Unit
}

// maxTerms bounds what one expression can cost.
const maxTerms = 100

// keywordNamed resolves a keyword in lower case.
func keywordNamed(name string) (keyword, bool) {
	switch name {
	case "now", "time":
		return keyword{kind: instant}, true
	case "today", "first_day":
		unit := Day
		if name == "first_day" {
			unit = Month
		}
		return keyword{kind: startOf, unit: unit}, true
	case "yesterday":
		return keyword{kind: startOf, unit: Day, shift: -1}, true
	case "tomorrow":
		return keyword{kind: startOf, unit: Day, shift: 1}, true
	case "last_day":
		return keyword{kind: lastDay}, true
	case "current_working_day":
		return keyword{kind: currentWorkday}, true
	case "previous_working_day":
		return keyword{kind: previousWorkday}, true
	case "next_working_day":
		return keyword{kind: nextWorkday}, true
	case "previous_vacation_day":
		return keyword{kind: previousDayOff}, true
	case "next_vacation_day":
		return keyword{kind: nextDayOff}, true
	case "first_working_day":
		return keyword{kind: firstWorkday}, true
	case "last_working_day":
		return keyword{kind: lastWorkday}, true
	case "first_vacation_day":
		return keyword{kind: firstDayOff}, true
	case "last_vacation_day":
		return keyword{kind: lastDayOff}, true
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToLower(d.String()); name == full || name == full[:3] {
			return keyword{kind: weekday, day: d}, true
		}
	}
	return unitKeyword(name)
}

// unitKeyword resolves current_, previous_ and next_ with a unit from minute to year.
func unitKeyword(name string) (keyword, bool) {
	prefix, unitName, ok := strings.Cut(name, "_")
	if !ok {
		return keyword{}, false
	}
	var shift int64
	switch prefix {
	case "current":
	case "previous":
		shift = -1
	case "next":
		shift = 1
	default:
		return keyword{}, false
	}
	unit, err := ParseUnit(unitName)
	if err != nil || unit < Minute || strings.HasSuffix(unitName, "s") {
		return keyword{}, false
	}
	return keyword{kind: startOf, unit: unit, shift: shift}, true
}

// ParseExpr reads a calendar expression. Letters ignore case, blanks are optional; `*` may be missing, and a unit alone counts once, as SQL has it.
func ParseExpr(text string) (Expr, error) {
	s := scanner{text: text}
	s.blanks()
	name := s.word()
	key, ok := keywordNamed(strings.ToLower(name))
	if !ok {
		return Expr{}, fmt.Errorf("calendar expression %q: unknown keyword %q, expected for example now, current_day or previous_month", text, name)
	}
	e := Expr{key: key}
	for s.blanks(); s.pos < len(text); s.blanks() {
		t, err := s.term()
		if err != nil {
			return Expr{}, fmt.Errorf("calendar expression %q at character %d: %w", text, s.pos+1, err)
		}
		if e.terms = append(e.terms, t); len(e.terms) > maxTerms {
			return Expr{}, fmt.Errorf("calendar expression has more than %d terms", maxTerms)
		}
	}
	return e, nil
}

type scanner struct {
	text string
	pos  int
}

func (s *scanner) blanks() {
	for s.pos < len(s.text) && (s.text[s.pos] == ' ' || s.text[s.pos] == '\t') {
		s.pos++
	}
}

// word takes a run of letters and underscores, possibly empty.
func (s *scanner) word() string {
	start := s.pos
	for s.pos < len(s.text) && (s.text[s.pos] == '_' || isLetter(s.text[s.pos])) {
		s.pos++
	}
	return s.text[start:s.pos]
}

// number takes a run of digits and returns their value and count; digits beyond 18 saturate.
func (s *scanner) number() (n int64, length int) {
	for ; s.pos < len(s.text) && isDigit(s.text[s.pos]); s.pos++ {
		if length++; n < 1e17 {
			n = n*10 + int64(s.text[s.pos]-'0')
		}
	}
	return n, length
}

func (s *scanner) term() (term, error) {
	var t term
	sign, size := utf8.DecodeRuneInString(s.text[s.pos:])
	if sign != '+' && sign != '-' && sign != '–' {
		return t, fmt.Errorf("expected + or -")
	}
	t.negative = sign != '+'
	s.pos += size
	s.blanks()
	var length int
	if t.count, length = s.number(); length == 0 {
		t.count = 1
	} else {
		nanos, err := s.fraction()
		if err != nil {
			return t, err
		}
		t.nanos = nanos
		s.blanks()
		if s.pos < len(s.text) && s.text[s.pos] == '*' {
			s.pos++
			s.blanks()
		}
	}
	unit, err := ParseUnit(s.word())
	if err != nil {
		return t, err
	}
	if unit == Nanosecond {
		return t, fmt.Errorf("nanoseconds are not supported")
	}
	t.unit = unit
	return t, nil
}

// fraction takes an optional decimal point with digits and returns billionths.
func (s *scanner) fraction() (int64, error) {
	if s.pos >= len(s.text) || s.text[s.pos] != '.' {
		return 0, nil
	}
	s.pos++
	start := s.pos
	if _, length := s.number(); length == 0 {
		return 0, fmt.Errorf("expected digits after the decimal point")
	}
	var nanos int64
	for i := range 9 {
		nanos *= 10
		if start+i < s.pos {
			nanos += int64(s.text[start+i] - '0')
		}
	}
	return nanos, nil
}

// Eval computes the keyword first, then the terms from left to right. Minutes and shorter are exact durations; so are hours; days and longer are calendar
// units in the zone, whose count loses its fraction.
func (e Expr) Eval(m Moment) core.Time {
	t := m.keyword(e.key)
	for _, term := range e.terms {
		count, millis := term.count, int64(0)
		if unit, ok := term.unit.FixedMillis(); ok {
			millis = unit * term.nanos / 1e9
		}
		if term.negative {
			count, millis = -count, -millis
		}
		t = Millisecond.Add(term.unit.Add(t, count, m.Zone), millis, m.Zone)
	}
	return t
}

func (m Moment) keyword(k keyword) core.Time {
	switch k.kind {
	case instant:
		return m.Now
	case startOf:
		return k.unit.Add(k.unit.StartOf(m.Now, m.Zone), k.shift, m.Zone)
	}
	return m.day(k).Start(m.Zone)
}

// day evaluates the keywords that name a day.
func (m Moment) day(k keyword) Date {
	today := DateOf(m.Now, m.Zone)
	year, month, _ := today.Split()
	first := DateAt(year, month, 1)
	last := DateAt(year, month, daysIn(year, month))
	switch k.kind {
	case weekday:
		return today - Date(floorMod(int64(today.Weekday()-k.day), 7))
	case currentWorkday:
		return m.Calendar.PreviousWorkday(today + 1)
	case previousWorkday:
		return m.Calendar.PreviousWorkday(today)
	case nextWorkday:
		return m.Calendar.NextWorkday(today)
	case previousDayOff:
		return m.Calendar.PreviousDayOff(today)
	case nextDayOff:
		return m.Calendar.NextDayOff(today)
	case firstWorkday:
		return m.Calendar.NextWorkday(first - 1)
	case lastWorkday:
		return m.Calendar.PreviousWorkday(last + 1)
	case firstDayOff:
		return m.Calendar.NextDayOff(first - 1)
	case lastDayOff:
		return m.Calendar.PreviousDayOff(last + 1)
	}
	return last
}

// Parse reads what a date field of a query takes: an ISO date or a calendar expression. It also takes the dotted time of 9999-12-31T23.59.59.999Z, which
// the reference shows for the end of time.
func (m Moment) Parse(text string) (core.Time, error) {
	t, err := ParseISO(text)
	if err == nil {
		return t, nil
	}
	if len(text) > isoSecondsEnd && text[13] == '.' && text[16] == '.' {
		return ParseISO(text[:13] + ":" + text[14:16] + ":" + text[17:])
	}
	if text != "" && isDigit(text[0]) {
		return 0, err
	}
	e, err := ParseExpr(text)
	if err != nil {
		return 0, err
	}
	return clamp(e.Eval(m)), nil
}

// ParseLocal is Parse that also takes local dates in the zone: yyyy-MM-dd, yyyy-MM-dd HH:mm and yyyy-MM-dd HH:mm:ss with an optional fraction of 3 to 9
// digits; a T may replace the blank.
func (m Moment) ParseLocal(text string) (core.Time, error) {
	if w, ok := parseWall(text); ok {
		return w.in(m.Zone), nil
	}
	return m.Parse(text)
}

// ParseLiteral is ParseLocal that also takes a year, yyyy, or a month, yyyy-MM, for their first instant: the date literals of SQL.
func (m Moment) ParseLiteral(text string) (core.Time, error) {
	switch len(text) {
	case len("2006"):
		if w, ok := parseWall(text + "-01-01"); ok {
			return w.in(m.Zone), nil
		}
	case len("2006-01"):
		if w, ok := parseWall(text + "-01"); ok {
			return w.in(m.Zone), nil
		}
	}
	return m.ParseLocal(text)
}

// parseWall fills a local date up to the full ISO form and lets ParseISO judge it.
func parseWall(text string) (wall, bool) {
	const date, minutes = len("2006-01-02"), len("2006-01-02 15:04")
	if len(text) < date || len(text) > isoSecondsEnd+len(".123456789") {
		return 0, false
	}
	day, clock := text[:date], "00:00:00"
	if len(text) > date {
		if text[date] != ' ' && text[date] != 'T' {
			return 0, false
		}
		clock = text[date+1:]
	}
	if len(text) == minutes {
		clock += ":00"
	}
	if fraction := len(text) - isoSecondsEnd - 1; fraction >= 0 && (text[isoSecondsEnd] != '.' || fraction < 3) {
		return 0, false
	}
	t, err := ParseISO(day + "T" + clock + "Z")
	return wall(t), err == nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
