package api

import (
	"context"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// moment is the one instant that all queries of a request share, in the server zone.
func (c *call) moment() dates.Moment {
	calendars := c.server.Calendars()
	return dates.Moment{Now: c.now(), Zone: c.server.Zone, Calendar: calendars.Default(), Calendars: calendars}
}

// reader reads one member of an object.
type reader func(o *object, name string, v gjson.Result)

// fields are the members that an object of a query may have, each with what reads it. Unknown members are ignored.
type fields map[string]reader

// read reads the members of v that are known.
func (o *object) read(v gjson.Result, known fields) {
	o.each(v, func(name string, v gjson.Result) {
		if read := known[name]; read != nil {
			around := o.member
			o.member = name
			read(o, name, v)
			o.member = around
		}
	})
}

// into makes a reader that sets field to what a method of object gives; optional does so for a field whose absence has a meaning of its own.
func into[T any](field *T, read func(o *object, name string, v gjson.Result) T) reader {
	return func(o *object, name string, v gjson.Result) { *field = read(o, name, v) }
}

func optional[T any](field **T, read func(o *object, name string, v gjson.Result) T) reader {
	return func(o *object, name string, v gjson.Result) {
		value := read(o, name, v)
		*field = &value
	}
}

// dates adds the date filter.
func (f fields) dates(d *query.DateFilter) fields {
	f["startDate"], f["endDate"] = into(&d.StartDate, (*object).text), into(&d.EndDate, (*object).text)
	f["interval"] = into(&d.Interval, (*object).interval)
	f["startTime"], f["endTime"] = optional(&d.StartTime, (*object).millis), optional(&d.EndTime, (*object).millis)
	return f
}

// entities adds the entity filter.
func (f fields) entities(e *query.EntityFilter) fields {
	f["entity"], f["entities"] = into(&e.Entity, (*object).text), into(&e.Entities, (*object).texts)
	f["entityGroup"], f["entityExpression"] = into(&e.Group, (*object).text), into(&e.Expression, (*object).text)
	return f
}

// timezone adds the zone under both names that clients use.
func (f fields) timezone(id *string) fields {
	f["timezone"] = into(id, (*object).text)
	f["timeZone"] = f["timezone"]
	return f
}

// millis reads Unix milliseconds, the date form of older clients.
func (o *object) millis(name string, v gjson.Result) core.Time { return core.Time(o.integer(name, v)) }

// count reads a limit: one beyond the range of int32 is none in practice, and the same on every platform.
func (o *object) count(name string, v gjson.Result) int {
	return int(min(max(o.integer(name, v), math.MinInt32), math.MaxInt32))
}

// interval reads {"count":n,"unit":"UNIT"}, or the text form n-UNIT of older clients, and gives the text form.
func (o *object) interval(name string, v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	count, unit := "", ""
	o.read(v, fields{
		"count": func(o *object, _ string, v gjson.Result) {
			count = strconv.FormatInt(o.integer(name+".count", v), 10) // cut or clamped, never a fault
		},
		"unit": into(&unit, (*object).text),
	})
	if o.err == nil && (count == "" || unit == "") {
		o.fail("%s: count and unit are required", name)
	}
	return count + "-" + unit
}

// tagValues reads name -> value or array of values. A null value is no condition.
func (o *object) tagValues(member string, v gjson.Result) map[string][]string {
	tags := map[string][]string{}
	o.each(v, func(name string, v gjson.Result) { tags[name] = o.texts(member+"."+name, v) })
	return tags
}

// plans reads the queries of the body. All of them are judged before the first one reads anything.
func plans[Q interface{ Validate(dates.Moment) (P, error) }, P any](c *call, decode func(gjson.Result) ([]Q, error)) ([]P, error) {
	body, err := c.json()
	if err != nil {
		return nil, err
	}
	return plansIn(c, body, decode)
}

// plansIn is plans for a scanned text: an array of queries, or one, or the object with the member `queries` that old clients wrap them in.
func plansIn[Q interface{ Validate(dates.Moment) (P, error) }, P any](c *call, body string, decode func(gjson.Result) ([]Q, error)) ([]P, error) {
	moment := c.moment()
	var plans []P
	if root := gjson.Parse(body); root.IsObject() {
		if wrapped := root.Get("queries"); wrapped.IsArray() {
			body = wrapped.Raw
		}
	}
	err := c.objects(body, func(v gjson.Result) error {
		requests, err := decode(v)
		for _, q := range requests {
			if err == nil {
				var p P
				p, err = q.Validate(moment)
				plans = append(plans, p)
			}
		}
		return err
	})
	return plans, err
}

// plan is a validated query of records R.
type plan[R any] interface {
	Run(context.Context, query.Source) iter.Seq2[R, error]
}

// answer runs the plans one after another into one flat array of what print makes of each record.
func answer[P plan[R], R any](c *call, plans []P, print func([]byte, R) []byte) error {
	return answerIn(c, plans, print, "[]")
}

// answerIn is answer with what stands around the array: the text of an answer without records.
func answerIn[P plan[R], R any](c *call, plans []P, print func([]byte, R) []byte, envelope string) error {
	opening, closing, _ := strings.Cut(envelope, "]")
	buffer := answerBuffers.Get().(*[]byte)
	out := list{body: append((*buffer)[:0], opening...)}
	defer func() {
		if cap(out.body) <= mostReused {
			*buffer = out.body
		}
		answerBuffers.Put(buffer)
	}()
	ctx, source := c.reading(), c.source()
	source.Transient = true // a result is printed before the next one is read
	for _, p := range plans {
		if err := ctx.Err(); err != nil {
			return err
		}
		for r, err := range p.Run(ctx, source) {
			if err != nil {
				return err
			}
			out.next()
			out.body = print(out.body, r)
			if err := c.fits(out.body); err != nil {
				return err
			}
		}
	}
	out.body = append(append(out.body, ']'), closing...)
	return c.sendJSON(out.body)
}

// answerBuffers are reused: growing one to the size of an answer costs the collector more than the answer. Larger ones than mostReused are not kept.
var answerBuffers = sync.Pool{New: func() any { return new([]byte) }}

const mostReused = 1 << 20
