package rules

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// historyRecord is a history row of type OPEN or REPEAT, with what last_open() tells of that moment besides.
type historyRecord struct {
	row       *core.AlertRow
	typ       string
	source    string
	message   string
	keys      core.Tags
	openValue float64
	times     []core.Time // those of recordTimes, 0 = had not happened
	variables []recordedVariable
}

type recordedVariable struct {
	name  string
	value any // see plainValue
}

// recordTimes are the times of a window that a record keeps beside those of its row. Their order is that of the checkpoint.
var recordTimes = [...]struct {
	name string
	get  func(*window) core.Time
}{
	{"command_first_time", (*window).firstTime}, {"command_last_time", (*window).lastTime},
	{"add_time", func(w *window) core.Time { return w.addTime }}, {"previous_add_time", func(w *window) core.Time { return w.previousAdd }},
	{"remove_time", func(w *window) core.Time { return w.removeTime }},
	{"update_time", func(w *window) core.Time { return max(w.addTime, w.removeTime) }},
	{"repeat_time", func(w *window) core.Time { return w.repeatTime }}, {"cancel_time", func(w *window) core.Time { return w.cancelTime }},
	{"change_time", func(w *window) core.Time { return w.changeTime }},
}

// record keeps row, and the window as it is with it. Variables are kept for rules that ask for the record: they may be long.
func (ev *evaluation) record(w *window, row *core.AlertRow) *historyRecord {
	c := &w.last
	r := &historyRecord{row: row, typ: c.typ, source: c.source, message: c.text, keys: c.keys, openValue: w.openValue,
		times: make([]core.Time, len(recordTimes))}
	for i, t := range recordTimes {
		r.times[i] = t.get(w)
	}
	if !ev.compiled.asksRecord {
		return r
	}
	for i, v := range ev.rule.Variables {
		if ev.memoSet[i] && ev.memoErr[i] == nil {
			r.variables = append(r.variables, recordedVariable{v.Name, plainValue(ev.memo[i], 0)})
		}
	}
	return r
}

// recordDepth bounds the lists and maps inside each other that a record keeps.
const recordDepth = 32

// plainValue copies a value of an expression into one of nil, bool, int, float64, string, time.Time, []any and map[string]any, which a checkpoint can hold.
// Anything else becomes its text.
func plainValue(v any, depth int) any {
	switch v := v.(type) {
	case nil, bool, int, float64, string, time.Time:
		return v
	case time.Duration:
		return v.String()
	}
	rv := reflect.ValueOf(v)
	switch {
	case depth == recordDepth:
	case rv.CanInt():
		return int(rv.Int())
	case rv.CanFloat():
		return rv.Float()
	case rv.Kind() == reflect.Slice:
		out := make([]any, rv.Len())
		for i := range out {
			out[i] = plainValue(rv.Index(i).Interface(), depth+1)
		}
		return out
	case rv.Kind() == reflect.Map && rv.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, rv.Len())
		for i := rv.MapRange(); i.Next(); {
			out[i.Key().String()] = plainValue(i.Value().Interface(), depth+1)
		}
		return out
	}
	return valueText(v)
}

// lastOpen is last_open(): the last recorded OPEN or REPEAT of this window. Nothing in it depends on the current command.
func lastOpen(ev *evaluation, _ []any) (any, error) {
	out := map[string]any{}
	r := ev.win.recorded
	moment := func(t core.Time) any {
		if r == nil {
			return time.UnixMilli(0).UTC()
		}
		return ev.at(t)
	}
	seen := r
	if seen == nil {
		seen = &historyRecord{row: &core.AlertRow{Value: math.NaN()}, openValue: math.NaN(), times: make([]core.Time, len(recordTimes))}
	}
	for _, v := range seen.variables {
		out[v.name] = v.value
	}
	row := seen.row
	duration, interval := "", ""
	if row.Type == core.StatusRepeat {
		duration, interval = clockText(row.Received-row.OpenTime), unitText(row.Received-row.OpenTime)
	}
	maps.Copy(out, map[string]any{"rule": row.Rule, "metric": row.Metric, "entity": row.Entity, "tags": mapOf(row.Tags), "type": seen.typ,
		"source": seen.source, "keys": mapOf(seen.keys), "message": seen.message, "value": row.Value, "open_value": seen.openValue,
		"status": string(row.Type), "condition": row.Condition, "severity": row.Severity.String(), "window": row.Window, "rule_filter": row.Filter,
		"repeat_count": row.RepeatCount, "alert_message": row.Text, "alert_duration": duration, "alert_duration_interval": interval,
		"alert_open_time": int64(row.OpenTime), "alert_open_datetime": dates.FormatISO(row.OpenTime), "command_time": row.Time.Std().In(ev.zone()),
		"open_time": moment(row.OpenTime)})
	if r == nil {
		out["command_time"] = moment(0)
	}
	for i, t := range recordTimes {
		out[t.name] = moment(seen.times[i])
	}
	return out, nil
}

func (e *encoder) record(r *historyRecord) {
	e.row(r.row)
	for _, s := range []string{r.typ, r.source, r.message} {
		e.text(s)
	}
	e.tags(r.keys)
	e.float(r.openValue)
	e.times(r.times...)
	e.uint(uint64(len(r.variables)))
	for _, v := range r.variables {
		e.text(v.name)
		e.value(v.value)
	}
}

// record reads the record of w. Version 1 had the row alone: what is missing comes from the window.
func (d *decoder) record(w *window) *historyRecord {
	r := &historyRecord{row: d.row(), times: make([]core.Time, len(recordTimes))}
	if d.version == 1 {
		r.typ, r.source, r.message, r.keys, r.openValue = w.last.typ, w.last.source, w.last.text, w.last.keys, w.openValue
		return r
	}
	for _, s := range []*string{&r.typ, &r.source, &r.message} {
		*s = d.text()
	}
	r.keys, r.openValue = d.tags(), d.float()
	for i := range r.times {
		r.times[i] = d.time()
	}
	for range d.count() {
		r.variables = append(r.variables, recordedVariable{d.text(), d.value(0)})
	}
	return r
}

// Kinds of a value in a checkpoint.
const (
	valueNil = iota
	valueFalse
	valueTrue
	valueInt
	valueFloat
	valueString
	valueTime
	valueList
	valueMap
)

// value writes what plainValue returns.
func (e *encoder) value(v any) {
	switch v := v.(type) {
	case bool:
		if v {
			e.uint(valueTrue)
			return
		}
		e.uint(valueFalse)
	case int:
		e.uint(valueInt)
		e.int(int64(v))
	case float64:
		e.uint(valueFloat)
		e.float(v)
	case string:
		e.uint(valueString)
		e.text(v)
	case time.Time:
		e.uint(valueTime)
		e.time(core.TimeOf(v))
	case []any:
		e.uint(valueList)
		e.uint(uint64(len(v)))
		for _, item := range v {
			e.value(item)
		}
	case map[string]any:
		e.uint(valueMap)
		e.uint(uint64(len(v)))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			e.text(key)
			e.value(v[key])
		}
	default:
		e.uint(valueNil)
	}
}

func (d *decoder) value(depth int) any {
	kind := d.uint()
	if depth > recordDepth {
		d.broken, d.b = true, nil
		return nil
	}
	switch kind {
	case valueFalse, valueTrue:
		return kind == valueTrue
	case valueInt:
		return int(d.int())
	case valueFloat:
		return d.float()
	case valueString:
		return d.text()
	case valueTime:
		return d.time().Std()
	case valueList:
		out := []any{}
		for range d.count() {
			out = append(out, d.value(depth+1))
		}
		return out
	case valueMap:
		out := map[string]any{}
		for range d.count() {
			key := d.text()
			out[key] = d.value(depth + 1)
		}
		return out
	}
	return nil
}
