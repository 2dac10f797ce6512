package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/glob"
)

// Reads of an evaluation are bounded, because the engine waits for them.
const (
	maxReadTime = 2 * time.Second
	maxRead     = 100_000 // samples or records
)

var errNoReader = errors.New("stored data cannot be read here")

// reading runs a query of one evaluation under the time limit.
func (ev *evaluation) reading(f func(ctx context.Context, r core.Reader) error) error {
	if ev.host == nil || ev.host.reader == nil {
		return errNoReader
	}
	ctx, cancel := context.WithTimeout(ev.host.ctx, maxReadTime)
	defer cancel()
	return f(ctx, ev.host.reader)
}

// lookupFunctions are sections 2.5.3 to 2.5.5 and 2.5.9 of the rule contract.
func lookupFunctions() []function {
	texts := sig[func(...any) string]()
	number := sig[func(...any) float64]()
	return []function{
		{name: "db_last", types: []any{number}, call: dbLast},
		{name: "db_statistic", types: []any{number}, call: dbStatistic},
		{name: "db_baseline", window: true, types: []any{number}, call: dbBaseline},
		{name: "db_message_count", window: true, types: []any{sig[func(...any) int]()}, call: func(ev *evaluation, a []any) (any, error) {
			list, err := dbMessages(ev, a, 0)
			return len(list), err
		}},
		{name: "db_message_last", window: true, types: []any{sig[func(...any) any]()}, call: func(ev *evaluation, a []any) (any, error) {
			list, err := dbMessages(ev, a, 1)
			if err != nil || len(list) == 0 {
				return nil, err
			}
			return list[0], nil
		}},
		{name: "db_messages", window: true, types: []any{sig[func(...any) []map[string]any]()}, call: func(ev *evaluation, a []any) (any, error) {
			return dbMessages(ev, a, maxRead)
		}},
		{name: "property", types: []any{texts}, call: propertyValue},
		{name: "property_compare", window: true, types: []any{sig[func() map[string]string](), sig[func(bool) map[string]string]()},
			call: func(ev *evaluation, a []any) (any, error) {
				previous, current := ev.compared(arg(a, 0))
				return propertyChanges(previous, current, nil, nil), nil
			}},
		{name: "property_compare_except", window: true, types: []any{sig[func(any) map[string]string](), sig[func(any, any) map[string]string](),
			sig[func(any, any, bool) map[string]string]()},
			call: func(ev *evaluation, a []any) (any, error) {
				names, err := textsOf(a[0])
				if err != nil {
					return nil, err
				}
				merge, values := arg(a, 2), arg(a, 1)
				if flag, ok := values.(bool); ok { // names and merge alone
					merge, values = flag, nil
				}
				before, err := textsOf(values)
				if err != nil {
					return nil, err
				}
				previous, current := ev.compared(merge)
				return propertyChanges(previous, current, names, before), nil
			}},
		{name: "entity_tag", types: []any{sig[func(any, string) string]()}, call: func(ev *evaluation, a []any) (any, error) {
			e, _ := ev.catalogEntity(strings.ToLower(textOf(a[0])))
			return e.Tags[strings.ToLower(textOf(a[1]))], nil
		}},
		{name: "entity_tags", types: []any{sig[func(any) map[string]string]()}, call: func(ev *evaluation, a []any) (any, error) {
			e, _ := ev.catalogEntity(strings.ToLower(textOf(a[0])))
			return mapOfAny(e.Tags)
		}},
		{name: "entity_label", types: []any{sig[func(any) string]()}, call: func(ev *evaluation, a []any) (any, error) {
			e, _ := ev.catalogEntity(strings.ToLower(textOf(a[0])))
			if e.Label != "" {
				return e.Label, nil
			}
			return textOf(a[0]), nil
		}},
		{name: "getEntity", types: []any{sig[func(any) any](), sig[func(any, bool) any]()}, call: func(ev *evaluation, a []any) (any, error) {
			e, ok := ev.catalogEntity(strings.ToLower(textOf(a[0])))
			if arg(a, 1) == true {
				var err error
				if e, ok, err = ev.entityByLabel(textOf(a[0])); err != nil {
					return nil, err
				}
			}
			if !ok {
				return nil, nil
			}
			return ev.newEntityObject(e), nil
		}},
		{name: "getEntities", types: []any{sig[func(string, string, string, string) []string]()}, call: func(ev *evaluation, a []any) (any, error) {
			return entitiesOf(ev, a)
		}},
		{name: "getEntityCount", types: []any{sig[func(string, string, string, string) int]()}, call: func(ev *evaluation, a []any) (any, error) {
			list, err := entitiesOf(ev, a)
			return len(list), err
		}},
		{name: "lookup", types: []any{sig[func(string, any) string](), sig[func(string, any, bool) string]()}, call: lookupTable},
		{name: "last_open", window: true, types: []any{sig[func() map[string]any]()}, call: lastOpen},
		{name: "rule_open", window: true, types: []any{sig[func(string) bool](), sig[func(string, any) bool](), sig[func(string, any, string) bool]()},
			call: ruleOpen},
		{name: "rule_window", window: true, types: []any{sig[func(string) any](), sig[func(string, any) any](), sig[func(string, any, string) any]()},
			call: ruleWindow},
	}
}

// seriesQuery resolves (metric [, entity [, tags]]), which start at a[from].
func (ev *evaluation) seriesQuery(a []any, from int) (core.SeriesQuery, error) {
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: ev.cmd.metric, Range: core.AllTime}
	entity := ev.cmd.entity
	if m := textOf(arg(a, from)); m != "" {
		q.Metric = strings.ToLower(m)
	}
	if e := textOf(arg(a, from+1)); e != "" {
		entity = strings.ToLower(e)
	}
	q.Entities = core.EntityFilter{Names: []string{entity}}
	if len(a) <= from+2 {
		if ev.win != nil && q.Metric == ev.cmd.metric {
			for _, t := range ev.win.tags {
				q.Tags = append(q.Tags, core.TagFilter{Name: t.Name, Patterns: []string{glob.Escape(t.Value)}})
			}
		}
		return q, nil
	}
	tags, err := tagsOf(a[from+2])
	for _, t := range tags {
		q.Tags = append(q.Tags, core.TagFilter{Name: t.Name, Patterns: []string{t.Value}})
	}
	q.ExactTags = len(tags) == 0
	return q, err
}

// series reads all samples of q; many says whether several series may match.
func (ev *evaluation) series(q core.SeriesQuery) (map[string]span, error) {
	out := map[string]span{}
	total := 0
	err := ev.reading(func(ctx context.Context, r core.Reader) error {
		for b, err := range r.Series(ctx, q) {
			if err != nil {
				return err
			}
			if total += len(b.Times); total > maxRead {
				return fmt.Errorf("more than %d samples", maxRead)
			}
			key := string(b.Key.Append(nil))
			s := out[key]
			out[key] = span{append(s.times, b.Times...), append(s.values, b.Values...)}
		}
		return nil
	})
	return out, err
}

func dbLast(ev *evaluation, a []any) (any, error) {
	if len(a) == 0 || len(a) > 3 {
		return nil, errNoArgument
	}
	q, err := ev.seriesQuery(a, 0)
	if err != nil {
		return nil, err
	}
	q.NewestFirst, q.Limit = true, 1
	all, err := ev.series(q)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		return lastOf(all[key].values), nil
	}
	return math.NaN(), err
}

func dbStatistic(ev *evaluation, a []any) (any, error) {
	if len(a) < 2 || len(a) > 5 {
		return nil, errNoArgument
	}
	interval, err := dates.ParseInterval(textOf(a[1]))
	if err != nil {
		return nil, err
	}
	q, err := ev.seriesQuery(a, 2)
	if err != nil {
		return nil, err
	}
	q.Range = core.Range{Start: interval.Before(ev.now, ev.zone()) + 1, End: ev.now + 1}
	all, err := ev.series(q)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("db_statistic: %d series match, it takes one: name the tags", len(all))
	}
	for _, s := range all {
		return storedStatistic(textOf(a[0]), s)
	}
	return math.NaN(), nil
}

// storedStatistic computes a statistic by its name in any case.
func storedStatistic(name string, s span) (any, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	aliases := map[string]string{"stddev": "stdev", "standard_deviation": "stdev"}
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	switch {
	case name == "first":
		return at(s.values, 0, false), nil
	case name == "last":
		return at(s.values, 0, true), nil
	case name == "delta":
		return at(s.values, 0, true) - at(s.values, 0, false), nil
	case name == "counter":
		return calc.CounterIncrease(at(s.values, 0, false), s.values), nil
	case name == "min_value_time":
		return timeOfExtreme(s, -1), nil
	case name == "max_value_time":
		return timeOfExtreme(s, 1), nil
	case strings.HasPrefix(name, "percentile"):
		f, err := calc.ParseFunction(name)
		return (&calc.Sorter{}).Percentile(s.values, f.P), err
	}
	if f, ok := statistics()[name]; ok {
		v, _ := floatOf(f(nil, s))
		return v, nil
	}
	return nil, fmt.Errorf("unknown statistic %q", name)
}

// timeOfExtreme is when the smallest (side < 0) or largest value first occurred, in Unix milliseconds; NaN without one.
func timeOfExtreme(s span, side float64) float64 {
	if i := slices.Index(s.values, extreme(s.values, side)); i >= 0 {
		return float64(s.times[i])
	}
	return math.NaN()
}

// dbBaseline is the mean of a statistic over the same window in earlier periods.
func dbBaseline(ev *evaluation, a []any) (any, error) {
	if len(a) < 3 || len(a) > 4 {
		return nil, errNoArgument
	}
	count, err := intOf(a[1])
	if err != nil || count < 1 || count > 1000 {
		return nil, errors.New("db_baseline: the count is not 1 to 1000")
	}
	period, err := dates.ParseInterval(textOf(a[2]))
	if err != nil {
		return nil, err
	}
	length := ev.rule.Window.Duration
	switch {
	case len(a) > 3:
		if length, err = dates.ParseInterval(textOf(a[3])); err != nil {
			return nil, err
		}
	case !ev.rule.Window.Timed():
		return nil, errors.New("db_baseline: a count window needs the length argument")
	}
	q, err := ev.seriesQuery(nil, 0)
	if err != nil {
		return nil, err
	}
	var results []float64
	for k := 1; k <= count; k++ {
		end := dates.Interval{Count: period.Count * int64(k), Unit: period.Unit}.Before(ev.win.commandTime, ev.zone())
		q.Range = core.Range{Start: length.Before(end, ev.zone()) + 1, End: end + 1}
		all, err := ev.series(q)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			v, err := storedStatistic(textOf(a[0]), s)
			if err != nil {
				return nil, err
			}
			f, _ := floatOf(v)
			results = append(results, f)
			break
		}
	}
	return calc.Mean(results), nil
}

// dbMessages reads stored messages in [T - interval, T), T the time of the last command, newest first.
func dbMessages(ev *evaluation, a []any, limit int) ([]map[string]any, error) {
	if len(a) < 3 || len(a) > 6 {
		return nil, errNoArgument
	}
	interval, err := dates.ParseInterval(textOf(a[0]))
	if err != nil {
		return nil, err
	}
	end := ev.win.commandTime
	q := core.MessageQuery{Scope: core.AllEntities, Type: strings.ToLower(textOf(a[1])), Source: strings.ToLower(textOf(a[2])),
		Range: core.Range{Start: interval.Before(end, ev.zone()), End: end}, Limit: limit, Expression: textOf(arg(a, 5))}
	tags, err := tagsOf(arg(a, 3))
	if err != nil {
		return nil, err
	}
	for _, t := range tags {
		q.Tags = append(q.Tags, core.TagFilter{Name: t.Name, Patterns: []string{glob.Escape(t.Value)}})
	}
	switch entity := strings.ToLower(textOf(arg(a, 4))); {
	case len(a) <= 4:
		q.Entities.Names = []string{ev.cmd.entity}
	case entity != "" && entity != "*":
		q.Entities.Names = []string{entity}
	}
	out := []map[string]any{}
	err = ev.reading(func(ctx context.Context, r core.Reader) error {
		for m, err := range r.Messages(ctx, q) {
			if err != nil {
				return err
			}
			if len(out) >= maxRead {
				return fmt.Errorf("more than %d messages", maxRead)
			}
			out = append(out, map[string]any{"entity": m.Entity, "type": m.Type, "source": m.Source, "tags": mapOf(m.Tags.Clone()),
				"severity": m.Severity.String(), "timestamp": int64(m.Time), "message": m.Text, "date": nil})
		}
		return nil
	})
	return out, err
}

// propertyValue is property([entity,] "type:key=value:tag" [, date [, merge]]).
func propertyValue(ev *evaluation, a []any) (any, error) {
	if len(a) == 0 {
		return nil, errNoArgument
	}
	entity, search := ev.cmd.entity, textOf(a[0])
	if len(a) > 1 {
		entity, search = strings.ToLower(textOf(a[0])), textOf(a[1])
	}
	typ, rest, ok1 := strings.Cut(search, ":")
	i := strings.LastIndexByte(rest, ':')
	if !ok1 || i < 0 {
		return nil, fmt.Errorf("property search %q: write type:key=value:tag", search)
	}
	keys, err := tagsOf(rest[:i])
	if err != nil {
		return nil, err
	}
	tag := glob.Compile(strings.ToLower(rest[i+1:]))
	q := core.PropertyQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{entity}}, Type: strings.ToLower(typ), Range: core.AllTime}
	if len(a) > 2 {
		start, err := dates.Moment{Now: ev.now, Zone: ev.zone()}.Parse(textOf(a[2]))
		if err != nil {
			return nil, err
		}
		q.Range.Start = start
	}
	best, newest := "", core.Time(-1)
	err = ev.reading(func(ctx context.Context, r core.Reader) error {
		for p, err := range r.Properties(ctx, q) {
			if err != nil {
				return err
			}
			for _, t := range p.Tags {
				if tag.Match(t.Name) && t.Time > newest && keysMatch(p.Key, keys) {
					best, newest = t.Value, t.Time
				}
			}
		}
		return nil
	})
	return strings.Clone(best), err
}

func keysMatch(key, patterns core.Tags) bool {
	for _, p := range patterns {
		v, ok := key.Get(p.Name)
		if !ok || !glob.Compile(p.Value).Match(v) {
			return false
		}
	}
	return true
}

// compared are the previous and the current record of a property rule: merged from all updates, or as the last two updates alone have them when merge is
// false.
func (ev *evaluation) compared(merge any) (previous, current core.Tags) {
	if merge == false {
		return ev.win.before, ev.win.last.props
	}
	return ev.win.previous, ev.win.current
}

// propertyChanges are the tags that differ between two records, except names and previous values that match a pattern.
func propertyChanges(previous, current core.Tags, names, before []string) map[string]string {
	out := map[string]string{}
	add := func(name, old, current string) {
		if old != current && !matchesAny(name, names) && !matchesAny(old, before) {
			out[name] = changeText(old, current)
		}
	}
	for _, t := range previous {
		add(t.Name, t.Value, current.Value(t.Name))
	}
	for _, t := range current {
		if _, ok := previous.Get(t.Name); !ok {
			add(t.Name, "", t.Value)
		}
	}
	return out
}

// entitiesOf lists entities whose last insert for a metric lies in [start, end) and that match an expression over their fields.
func entitiesOf(ev *evaluation, a []any) ([]string, error) {
	moment := dates.Moment{Now: ev.now, Zone: ev.zone()}
	window := core.AllTime
	var err error
	if s := textOf(a[1]); s != "" {
		if window.Start, err = moment.Parse(s); err != nil {
			return nil, err
		}
	}
	if s := textOf(a[2]); s != "" {
		if window.End, err = moment.Parse(s); err != nil {
			return nil, err
		}
	}
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: strings.ToLower(textOf(a[0])), Range: core.AllTime,
		Entities: core.EntityFilter{Expression: textOf(a[3])}}
	newest := map[string]core.Time{}
	err = ev.reading(func(ctx context.Context, r core.Reader) error {
		for k, err := range r.Keys(ctx, q) {
			if err != nil {
				return err
			}
			newest[strings.Clone(k.Key.Entity)] = max(newest[k.Key.Entity], k.Last)
		}
		return nil
	})
	var out []string
	for _, e := range slices.Sorted(maps.Keys(newest)) {
		if window.Contains(newest[e]) {
			out = append(out, e)
		}
	}
	return out, err
}

// lookupTable is lookup(table, key [, echo]) over a replacement table document.
func lookupTable(ev *evaluation, a []any) (any, error) {
	key := textOf(a[1])
	var doc struct {
		Keys map[string]string `json:"keys"`
	}
	err := ev.reading(func(ctx context.Context, r core.Reader) error {
		for d, err := range r.Documents(ctx, core.DocumentQuery{Kind: core.DocTable, Key: core.TableKey(textOf(a[0]))}) {
			if err != nil {
				return err
			}
			return json.Unmarshal(d.Body, &doc)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v, ok := doc.Keys[key]
	if !ok && arg(a, 2) == true {
		return key, nil
	}
	return v, nil
}

// otherWindow finds the first window, by key, of another rule (or another window of this one). Entity: absent = current, empty = any.
func (ev *evaluation) otherWindow(a []any, openOnly bool) (*window, error) {
	if ev.host == nil {
		return nil, nil
	}
	entity := ev.cmd.entity
	if len(a) > 1 {
		entity = strings.ToLower(textOf(a[1]))
	}
	var match *filter.Expr
	if text := textOf(arg(a, 2)); text != "" {
		var err error
		if match, err = filter.Compile(filter.Windows, text); err != nil {
			return nil, err
		}
	}
	windows := ev.host.windows[textOf(a[0])]
	for _, key := range slices.Sorted(maps.Keys(windows)) {
		w := windows[key]
		if w == ev.win || openOnly && !w.open() || entity != "" && w.entity != entity {
			continue
		}
		if match != nil {
			ok, err := match.Match(&filter.WindowEnv{Entity: w.entity, Message: w.last.text, Status: w.status, Severity: w.severity, Tags: w.tags})
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		return w, nil
	}
	return nil, nil
}

func ruleOpen(ev *evaluation, a []any) (any, error) {
	w, err := ev.otherWindow(a, true)
	return w != nil, err
}

func ruleWindow(ev *evaluation, a []any) (any, error) {
	w, err := ev.otherWindow(a, false)
	if w == nil || err != nil {
		return nil, err
	}
	return map[string]any{"rule": w.rule.Name, "status": string(w.status), "entity": w.entity, "metric": w.metric, "tags": mapOf(w.tags),
		"value": w.last.value, "repeat_count": w.repeat, "open_time": ev.at(w.openTime), "change_time": ev.at(w.changeTime), "lastText": w.last.text}, nil
}
