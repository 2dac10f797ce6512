package expr

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

func workdayFunctions() map[string]definition {
	return map[string]definition{
		"is_workday": {1, 3, func(c *call) (Node, error) { return isDay(c, (*dates.Calendar).ListedWorkday), nil }},
		"is_weekday": {1, 3, func(c *call) (Node, error) {
			return isDay(c, func(k *dates.Calendar, d dates.Date) (bool, error) { return regular(k, d), nil }), nil
		}},
		"workday":       {2, 4, func(c *call) (Node, error) { return moveDays(c, (*dates.Calendar).Workday), nil }},
		"weekday":       {2, 4, func(c *call) (Node, error) { return moveDays(c, regular), nil }},
		"workday_count": {2, 4, func(c *call) (Node, error) { return countDays(c), nil }},
	}
}

// regular reports whether a day is worked in the regular week of a calendar, exceptions aside.
func regular(k *dates.Calendar, d dates.Date) bool { return k.Workday(d) != k.ExceptionDay(d) }

// calendarReader reads a column of calendar keys.
type calendarReader struct {
	at   ast.Start
	text textReader
	keys texts
	last string
	kept *dates.Calendar
	some bool
}

func (r *calendarReader) read(v *column.Vector) {
	r.keys = texts{emptyOnly, nullOnly}
	if v != nil {
		r.keys = r.text.read(v)
	}
}

// of returns the calendar of row i, the default one of the query where there is none.
func (r *calendarReader) of(env *Env, i int) (*dates.Calendar, error) {
	if isNull(r.keys.nulls, i) {
		return env.Calendars.Default(), nil
	}
	key := at(r.keys.values, i)
	if r.some && key == r.last {
		return r.kept, nil
	}
	k, err := env.Calendars.Find(key)
	if err != nil {
		return nil, r.at.Errorf("%s", capital(err.Error()))
	}
	r.last, r.kept, r.some = strings.Clone(key), k, true
	return k, nil
}

// capital makes a message begin like those of statements.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// local is what functions of working days need of a row.
type local struct {
	calendars calendarReader
	zones     zoneReader
}

// place prepares for the arguments for calendar and zone, the last two.
func (l *local) place(args []*column.Vector, calendar int) {
	l.calendars.read(argument(args, calendar))
	l.zones.read(argument(args, calendar+1))
}

func (l *local) of(env *Env, i int) (*dates.Calendar, *time.Location, error) {
	k, err := l.calendars.of(env, i)
	if err != nil {
		return nil, nil, err
	}
	zone, err := l.zones.of(env, i)
	return k, zone, err
}

func newLocal(at ast.Start) *local {
	return &local{calendarReader{at: at}, zoneReader{at: at}}
}

// ofDays computes a number of the days of some dates, the first arguments; those for calendar and zone follow.
func ofDays(c *call, kind column.Type, dated int, number func(k *dates.Calendar, days []dates.Date) (int64, error)) Node {
	args := slices.Clone(c.args)
	for i := range dated {
		args[i] = Instant(args[i], c.at)
	}
	return scalar{kind: kind, args: args, lenient: 0b11 << dated, flags: usesEnv | mayFail, make: func() kernel {
		l, days := newLocal(c.at), make([]dates.Date, dated)
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			l.place(args, dated)
			dst := out.makeInts(rows)
			for i := range dst {
				if dst[i] = 0; out.skip(i) {
					continue
				}
				k, zone, err := l.of(env, i)
				if err != nil {
					return err
				}
				for j := range days {
					days[j] = dates.DateOf(core.Time(args[j].Ints[args[j].Index(i)]), zone)
				}
				if dst[i], err = number(k, days); err != nil {
					return c.at.Errorf("%s", capital(err.Error()))
				}
			}
			return nil
		}
	}}.node()
}

// isDay tells about the day of a date.
func isDay(c *call, is func(*dates.Calendar, dates.Date) (bool, error)) Node {
	return ofDays(c, column.Boolean, 1, func(k *dates.Calendar, days []dates.Date) (int64, error) {
		yes, err := is(k, days[0])
		return bit(yes), err
	})
}

// mostDays is how far WORKDAY and WEEKDAY move at most: 100 years. Each day is looked at.
const mostDays = 100 * 366

// moveDays moves a date by n days that count, and keeps the time of day. By none it stays, and is NULL on a day that does not count.
func moveDays(c *call, counts func(*dates.Calendar, dates.Date) bool) Node {
	kind := column.Bigint
	if t := c.args[0].Type(); t == column.Timestamp || t == column.String {
		kind = column.Timestamp
	}
	args := append([]Node{Instant(c.args[0], c.at)}, c.args[1:]...)
	return scalar{kind: kind, args: args, lenient: 0b1100, flags: usesEnv | mayFail, make: func() kernel {
		l := newLocal(c.at)
		var by numberReader
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			n := by.read(args[1])
			l.place(args, 2)
			dst := out.makeInts(rows)
			for i := range dst {
				if dst[i] = 0; out.skip(i) {
					continue
				}
				k, zone, err := l.of(env, i)
				if err != nil {
					return err
				}
				t := core.Time(args[0].Ints[args[0].Index(i)])
				days, ok := moved(k, dates.DateOf(t, zone), n.at(i), counts)
				if !ok {
					out.makeNulls(rows)[i] = true
					continue
				}
				dst[i] = int64(dates.Day.Add(t, days, zone))
			}
			return nil
		}
	}}.node()
}

// moved returns by how many days n days that count move from a day; ok is false when there is no such day.
func moved(k *dates.Calendar, from dates.Date, n float64, counts func(*dates.Calendar, dates.Date) bool) (days int64, ok bool) {
	left := calc.Saturated(math.Abs(n))
	if n != n || left == 0 {
		return 0, n == n && counts(k, from)
	}
	if left > mostDays {
		return 0, false
	}
	step := dates.Date(1)
	if n < 0 {
		step = -1
	}
	d := from
	for ; left > 0; left-- {
		for d += step; !counts(k, d); d += step {
			if d-from > mostDays || from-d > mostDays {
				return 0, false
			}
		}
		if d-from > mostDays || from-d > mostDays {
			return 0, false
		}
	}
	return int64(d - from), true
}

// countDays is WORKDAY_COUNT(from, to, calendar, zone): the working days d with from <= d < to, negative when to comes first.
func countDays(c *call) Node {
	return ofDays(c, column.Bigint, 2, func(k *dates.Calendar, days []dates.Date) (int64, error) {
		if from, to := days[0], days[1]; from <= to {
			return workdays(k, from, to), nil
		}
		return -workdays(k, days[1], days[0]), nil
	})
}

// workdays counts the working days of from <= d < to. Years of which the calendar lists nothing are counted by weeks.
func workdays(k *dates.Calendar, from, to dates.Date) (n int64) {
	from, to = max(from, dates.DateOf(dates.MinDate, nil)), min(to, dates.DateOf(dates.MaxDate, nil)+1)
	for from < to {
		year, _, _ := from.Split()
		end := min(to, dates.DateAt(year+1, time.January, 1))
		if !k.Covers(year) {
			week := int64(0)
			for d := from; d < from+7; d++ {
				week += bit(k.Workday(d) != k.ExceptionDay(d))
			}
			weeks := (end - from) / 7
			n += int64(weeks) * week
			from += weeks * 7
		}
		for ; from < end; from++ {
			n += bit(k.Workday(from))
		}
	}
	return n
}
