package expr

import (
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

func dateFunctions() map[string]definition {
	all := map[string]definition{
		"date_format": {1, 3, dateFormat},
		"date_parse":  {1, 3, dateParse},
		"date_round":  {2, 2, dateRound},
		"dateadd":     {3, 4, dateAdd},
		"endtime":     {1, 2, newEndTime},
		"extract": {2, 3, func(c *call) (Node, error) {
			part, ok := partNamed(c.args[0])
			if !ok {
				return nil, c.at.Errorf("Unknown date part in extract: use year, quarter, month, day, hour, minute, second or dayofweek")
			}
			return extract(part, c.args[1:], c.at), nil
		}},
		"current_timestamp": {0, 0, func(c *call) (Node, error) { return Calendar("current_timestamp", c.at) }},
		"dbtimezone": {0, 0, func(*call) (Node, error) {
			return scalar{kind: column.String, flags: usesEnv, make: serverZone}.node(), nil
		}},
	}
	for name, p := range parts {
		all[name] = definition{1, 2, func(c *call) (Node, error) { return extract(p, c.args, c.at), nil }}
	}
	return all
}

func serverZone() kernel {
	return func(env *Env, _ []*column.Vector, rows int, out *result) error {
		name := "Etc/UTC"
		if env != nil && env.ServerZone != nil && env.ServerZone != time.UTC {
			name = env.ServerZone.String()
		}
		for i := range out.makeStrings(rows) {
			out.v.Strings[i] = name
		}
		return nil
	}
}

// part takes a number out of a local date: its day and the milliseconds since midnight.
type part struct {
	clock bool // the part is one of the clock, not of the day
	of    func(day dates.Date, millis int64) int64
}

var parts = map[string]part{
	"year":       {of: func(d dates.Date, _ int64) int64 { y, _, _ := d.Split(); return int64(y) }},
	"quarter":    {of: func(d dates.Date, _ int64) int64 { _, m, _ := d.Split(); return int64(m+2) / 3 }},
	"month":      {of: func(d dates.Date, _ int64) int64 { _, m, _ := d.Split(); return int64(m) }},
	"day":        {of: func(d dates.Date, _ int64) int64 { _, _, day := d.Split(); return int64(day) }},
	"dayofmonth": {of: func(d dates.Date, _ int64) int64 { _, _, day := d.Split(); return int64(day) }},
	"dayofweek":  {of: func(d dates.Date, _ int64) int64 { return int64(d.Weekday()+6)%7 + 1 }},
	"dayofyear": {of: func(d dates.Date, _ int64) int64 {
		y, _, _ := d.Split()
		return int64(d-dates.DateAt(y, time.January, 1)) + 1
	}},
	"weekofyear": {of: weekOfYear},
	"hour":       {clock: true, of: func(_ dates.Date, ms int64) int64 { return ms / 3_600_000 }},
	"minute":     {clock: true, of: func(_ dates.Date, ms int64) int64 { return ms / 60_000 % 60 }},
	"second":     {clock: true, of: func(_ dates.Date, ms int64) int64 { return ms / 1000 % 60 }},
}

// weekOfYear is the week of ISO 8601: it belongs to the year of its Thursday.
func weekOfYear(d dates.Date, _ int64) int64 {
	thursday := d - dates.Date(int64(d.Weekday()+6)%7) + 3
	year, _, _ := thursday.Split()
	return int64(thursday-dates.DateAt(year, time.January, 1))/7 + 1
}

func partNamed(n Node) (part, bool) {
	v, _ := constantOf(n)
	p, ok := parts[v.Text]
	return p, ok
}

// extract is a part of a date in a zone. args are the date and, perhaps, the zone.
func extract(p part, args []Node, at ast.Start) Node {
	args = append([]Node{Instant(args[0], at)}, args[1:]...)
	return scalar{kind: column.Bigint, args: args, lenient: 1 << 1, flags: usesEnv | mayFail, make: func() kernel {
		zones := zoneReader{at: at}
		var clock localClock
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			zones.read(argument(args, 1))
			dst := out.makeInts(rows)
			for i := range dst {
				if dst[i] = 0; out.skip(i) {
					continue
				}
				zone, err := zones.of(env, i)
				if err != nil {
					return err
				}
				dst[i] = clock.part(p, core.Time(args[0].Ints[args[0].Index(i)]), zone)
			}
			return nil
		}
	}}.node()
}

// localClock shows instants in a zone. It keeps the day and offset of the last one, which those around it share.
type localClock struct {
	zone        *time.Location
	from, until core.Time // the part of a day with one offset
	offset      core.Time
	day         dates.Date
	value       int64 // of the last part that is one of the day
	known       bool
}

func (c *localClock) part(p part, t core.Time, zone *time.Location) int64 {
	if zone != c.zone || t < c.from || t >= c.until {
		c.move(t, zone)
	}
	if !p.clock {
		if !c.known {
			c.value, c.known = p.of(c.day, 0), true
		}
		return c.value
	}
	return p.of(c.day, int64(t+c.offset)-int64(c.day)*86_400_000)
}

func (c *localClock) move(t core.Time, zone *time.Location) {
	c.zone, c.known = zone, false
	_, seconds := time.UnixMilli(int64(t)).In(zone).Zone()
	c.offset = core.Time(seconds) * 1000
	c.day = dates.DateOf(t, zone)
	p := printer{zone: zone}
	c.from, c.until = p.span(t, 86_400_000)
}

// dateRound is DATE_ROUND(date, n UNIT): the start of the calendar period that holds the date.
func dateRound(c *call) (Node, error) {
	s, ok := c.args[1].(*span)
	if !ok {
		return nil, c.at.Errorf("date_round requires a period such as 15 MINUTE")
	}
	period := calc.Period{Count: s.interval.Count, Unit: s.interval.Unit}
	if err := period.Validate(); err != nil {
		return nil, c.at.Errorf("%v", err)
	}
	return scalar{kind: column.Bigint, args: []Node{Instant(c.args[0], c.at)}, flags: usesEnv | mayFail, make: func() kernel {
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			p := period
			p.Zone = env.zone()
			dst := out.makeInts(rows)
			for i, t := range args[0].Ints[:rows] {
				if out.skip(i) {
					continue
				}
				start, err := periodStart(p, core.Time(t))
				if err != nil {
					return c.at.Errorf("%v", err)
				}
				dst[i] = int64(start)
			}
			return nil
		}
	}}.node(), nil
}

// periodStart returns the start of the period that holds t. Periods are counted from the base time of t.
func periodStart(p calc.Period, t core.Time) (core.Time, error) {
	unit, isDate := p.Unit.(dates.Unit)
	if length, ok := unit.FixedMillis(); isDate && ok {
		base := unit.Origin(t, p.Zone)
		return t - (t-base)%core.Time(length*p.Count), nil
	}
	t = min(max(t, dates.MinDate), dates.MaxDate)
	grid, err := p.CoveringGrid(core.Range{Start: t, End: t + 1}, t)
	if err != nil {
		return 0, err
	}
	for start := range grid.Starts() {
		return start, nil
	}
	return t, nil
}

// dateAdd is DATEADD(PART, n, date, zone). Its type is that of the date, Timestamp for a text.
func dateAdd(c *call) (Node, error) {
	v, _ := constantOf(c.args[0])
	unit, err := dates.ParseUnit(v.Text)
	if err != nil || unit == dates.Nanosecond {
		return nil, c.at.Errorf("Unknown date part in dateadd: use second, minute, hour, day, week, month, quarter or year")
	}
	kind := column.Bigint
	if t := c.args[2].Type(); t == column.Timestamp || t == column.String {
		kind = column.Timestamp
	}
	args := append([]Node{c.args[1], Instant(c.args[2], c.at)}, c.args[3:]...)
	return scalar{kind: kind, args: args, lenient: 1 << 2, flags: usesEnv | mayFail, make: func() kernel {
		zones := zoneReader{at: c.at}
		var count numberReader
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			n := count.read(args[0])
			zones.read(argument(args, 2))
			dst := out.makeInts(rows)
			for i := range dst {
				f := n.at(i)
				if f != f {
					out.makeNulls(rows)[i] = true
				}
				if dst[i] = 0; out.skip(i) {
					continue
				}
				zone, err := zones.of(env, i)
				if err != nil {
					return err
				}
				dst[i] = int64(unit.Add(core.Time(args[1].Ints[args[1].Index(i)]), calc.Saturated(f), zone))
			}
			return nil
		}
	}}.node(), nil
}

// endTime is ENDTIME(date, zone): calendar expressions and local dates are read in the zone.
type endTime struct {
	x, zone Node // zone is nil without one
	zones   zoneReader
	part    subset
	out     result
}

func newEndTime(c *call) (Node, error) {
	n := &endTime{x: Instant(c.args[0], c.at), zones: zoneReader{at: c.at}}
	if len(c.args) > 1 {
		n.zone = c.args[1]
	}
	n.part.of(n.x)
	return n, nil
}

func (n *endTime) Type() column.Type { return column.Bigint }
func (n *endTime) Clone() Node {
	c := &endTime{x: n.x.Clone(), zone: cloneOne(n.zone), zones: zoneReader{at: n.zones.at}}
	c.part.of(c.x)
	return c
}
func (n *endTime) own() trait { return usesEnv | mayFail }
func (n *endTime) operands() []Node {
	if n.zone == nil {
		return []Node{n.x}
	}
	return []Node{n.x, n.zone}
}

func (n *endTime) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	if n.zone == nil {
		return n.x.Eval(env, in)
	}
	v, err := n.zone.Eval(env, in)
	if err != nil {
		return nil, err
	}
	n.zones.read(v)
	rows, constant := rowsOf(in.Len, v)
	if constant {
		zone, err := n.zones.of(env, 0)
		if err != nil {
			return nil, err
		}
		return n.x.Eval(env.in(zone), in)
	}
	// The rows of one zone follow each other, since those of one entity do.
	n.out.header(column.Bigint, in.Len, false)
	dst := n.out.makeInts(rows)
	for from := 0; from < rows; {
		zone, err := n.zones.of(env, from)
		if err != nil {
			return nil, err
		}
		to := from + 1
		for to < rows {
			next, err := n.zones.of(env, to)
			if err != nil {
				return nil, err
			}
			if next != zone {
				break
			}
			to++
		}
		x, err := n.x.Eval(env.in(zone), n.part.pick(in, all(nil, to)[from:]))
		if err != nil {
			return nil, err
		}
		for i := from; i < to; i++ {
			if x.IsNull(i - from) {
				n.out.makeNulls(rows)[i] = true
				continue
			}
			dst[i] = x.Ints[x.Index(i-from)]
		}
		from = to
	}
	return &n.out.v, nil
}

// in returns the query as it would be in another zone.
func (e *Env) in(zone *time.Location) *Env {
	other := Env{}
	if e != nil {
		other = *e
	}
	other.Zone = zone
	return &other
}
