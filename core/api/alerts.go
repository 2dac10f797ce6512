package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// alertQuery is one element of either alert query. Entity and date filter may be missing: then all entities, all dates.
type alertQuery struct {
	dates        query.DateFilter
	entities     query.EntityFilter
	rules        []string
	metrics      []string
	severities   []core.Severity
	minSeverity  core.Severity
	acknowledged *bool
	limit        int // <= 0: none
}

// decodeAlertQuery reads what both alert queries know: the history has the single names rule and metric, open alerts their plurals. Each form is
// accepted by both. limit is the default of the endpoint.
func decodeAlertQuery(v gjson.Result, limit int) (alertQuery, error) {
	q := alertQuery{limit: limit}
	var o object
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "rule", "rules":
			q.rules = append(q.rules, o.patterns(name, v)...)
		case "metric", "metrics":
			for _, metric := range o.patterns(name, v) {
				q.metrics = append(q.metrics, lowered(metric))
			}
		case "severities":
			q.severities = o.severities(name, v)
		case "minSeverity":
			q.minSeverity = o.severity(name, v)
		case "acknowledged":
			on := o.flag(name, v)
			q.acknowledged = &on
		case "limit":
			q.limit = int(o.integer(name, v))
		default:
			if !o.dateField(&q.dates, name, v) {
				o.entityFilter(&q.entities, name, v)
			}
		}
	})
	return q, o.err
}

// patterns reads names that may hold wildcards. A backslash in a name without them is an ordinary character.
func (o *object) patterns(name string, v gjson.Result) []string {
	list := o.texts(name, v)
	for i, text := range list {
		list[i] = literalPattern(text)
	}
	return slices.DeleteFunc(list, func(text string) bool { return text == "" })
}

// literalPattern makes a name without wildcards a pattern that matches only itself.
func literalPattern(name string) string {
	if strings.ContainsAny(name, "*?") {
		return name
	}
	return strings.ReplaceAll(name, `\`, `\\`)
}

// severities reads names, aliases and codes, mixed, or just one of them.
func (o *object) severities(name string, v gjson.Result) []core.Severity {
	var list []core.Severity
	if !v.IsArray() {
		return append(list, o.severity(name, v))
	}
	v.ForEach(func(_, item gjson.Result) bool {
		if item.Type != gjson.Null {
			list = append(list, o.severity(name, item))
		}
		return o.err == nil
	})
	return list
}

// resolve evaluates the filters that both alert queries share.
func (q *alertQuery) resolve(c *call) (core.Range, core.EntityFilter, error) {
	span, entities := core.AllTime, core.EntityFilter{}
	var err error
	if !q.dates.Empty() {
		if span, err = q.dates.Range(c.moment()); err != nil {
			return span, entities, err
		}
	}
	if !q.entities.Empty() {
		if entities, err = q.entities.Resolve(query.EscapesInPatterns); err != nil {
			return span, entities, err
		}
	}
	return span, entities, c.mayRead(entities)
}

// unknownEntity returns the warning that stands in for the answer about an entity nobody has heard of. A name that is one of several is
// skipped without a word.
func (c *call) unknownEntity(f core.EntityFilter) (warning []byte, unknown bool) {
	if len(f.Names) != 1 || len(f.Patterns) > 0 {
		return nil, false
	}
	if _, ok := c.server.Catalog.Entity(f.Names[0]); ok {
		return nil, false
	}
	warning = appendString([]byte(`{"warning":`), "ENTITY not found for name: '"+f.Names[0]+"'")
	return append(warning, '}'), true
}

// alertsQuery answers with open alerts, query by query.
func (c *call) alertsQuery() error {
	if c.server.Alerts == nil {
		return c.missing()
	}
	return c.answerList(func(out *list, v gjson.Result) error {
		q, err := decodeAlertQuery(v, 0)
		if err != nil {
			return err
		}
		span, entities, err := q.resolve(c)
		if err != nil {
			return err
		}
		if warning, unknown := c.unknownEntity(entities); unknown {
			out.next()
			out.body = append(out.body, warning...)
			return nil
		}
		alerts, err := c.server.Alerts.Query(c.r.Context(), core.AlertFilter{
			Scope: c.id.Grants.ReadScope(), Rules: q.rules, Metrics: q.metrics, Severities: q.severities, MinSeverity: q.minSeverity,
			Acknowledged: q.acknowledged, Entities: entities, Range: span,
		})
		if err != nil {
			return err
		}
		if q.limit > 0 && len(alerts) > q.limit {
			alerts = alerts[:q.limit]
		}
		for i := range alerts {
			out.next()
			out.body = appendAlert(out.body, &alerts[i])
		}
		return nil
	})
}

// list is a JSON array under construction.
type list struct {
	body []byte
	n    int
}

// next makes room for one more element.
func (l *list) next() {
	if l.n++; l.n > 1 {
		l.body = append(l.body, ',')
	}
}

// answerList reads queries and answers with one flat array of what each adds to it.
func (c *call) answerList(f func(out *list, v gjson.Result) error) error {
	body, err := c.json()
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	if err := c.objects(body, func(v gjson.Result) error { return f(&out, v) }); err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// appendAlert writes an open alert with exactly the contract's fields: strict clients refuse others.
func appendAlert(dst []byte, a *core.Alert) []byte {
	dst = strconv.AppendUint(append(dst, `{"id":`...), a.ID, 10)
	dst = appendString(append(dst, `,"entity":`...), a.Entity)
	dst = appendTags(append(dst, `,"tags":`...), a.Tags)
	dst = appendInt(dst, "repeatCount", int64(a.RepeatCount))
	dst = appendString(append(dst, `,"textValue":`...), a.TextValue)
	dst = appendString(append(dst, `,"metric":`...), a.Metric)
	if a.Metric == "message" || a.Metric == "property" {
		dst = appendString(append(dst, `,"message":`...), a.Message) // clients refuse it for series rules, and miss it for the others
	}
	dst = appendString(append(dst, `,"severity":`...), a.Severity.String())
	dst = appendString(append(dst, `,"rule":`...), a.Rule)
	dst = appendFlag(dst, "acknowledged", a.Acknowledged)
	dst = appendDate(dst, "openDate", a.OpenTime)
	dst = appendNumber(append(dst, `,"openValue":`...), a.OpenValue)
	dst = appendDate(dst, "lastEventDate", a.LastEvent)
	return append(appendNumber(append(dst, `,"value":`...), a.Value), '}')
}

// appendTags writes tags as an object; they are sorted already.
func appendTags(dst []byte, tags core.Tags) []byte {
	dst = append(dst, '{')
	for i, t := range tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(appendString(dst, t.Name), ':'), t.Value)
	}
	return append(dst, '}')
}

// defaultHistoryLimit is how many rows a history query without a limit gives.
const defaultHistoryLimit = 1000

// alertHistory answers with stored status changes, newest first, query by query.
func (c *call) alertHistory() error {
	return c.answerList(func(out *list, v gjson.Result) error {
		q, err := decodeAlertQuery(v, defaultHistoryLimit)
		if err != nil {
			return err
		}
		span, entities, err := q.resolve(c)
		if err != nil {
			return err
		}
		if err := c.knownMetrics(v); err != nil {
			return err
		}
		if warning, unknown := c.unknownEntity(entities); unknown {
			out.next()
			out.body = append(out.body, warning...)
			return nil
		}
		history := core.AlertHistoryQuery{Scope: c.id.Grants.ReadScope(), Entities: entities, Rules: q.rules, Metrics: q.metrics, Range: span,
			Limit: max(q.limit, 0)}
		for row, err := range c.server.Reader.AlertHistory(c.r.Context(), history) {
			if err != nil {
				return err
			}
			out.next()
			out.body = appendAlertRow(out.body, &row)
		}
		return nil
	})
}

// knownMetrics refuses an exact metric name that no sample ever had.
func (c *call) knownMetrics(v gjson.Result) error {
	name := lowered(v.Get("metric").String())
	if name == "" || name == "message" || name == "property" || strings.ContainsAny(name, "*?") {
		return nil
	}
	if _, ok := c.server.Catalog.Metric(name); !ok {
		return core.Errorf(core.NotFound, "Metric %s not found", name)
	}
	return nil
}

// appendAlertRow writes a row of the history. Unlike in open alerts its tags are one text, absent when there are none, and a row of type CANCEL
// has no severity.
func appendAlertRow(dst []byte, r *core.AlertRow) []byte {
	severity, duration := r.Severity, r.Received-r.OpenTime
	switch r.Type {
	case core.StatusCancel:
		severity = core.Undefined
	case core.StatusOpen:
		duration = 0
	}
	dst = append(dates.AppendISO(append(dst, `{"date":"`...), r.Time), '"')
	dst = appendString(append(dst, `,"entity":`...), r.Entity)
	dst = appendString(append(dst, `,"metric":`...), r.Metric)
	dst = appendText(dst, "tags", joinTags(r.Tags))
	dst = appendString(append(dst, `,"type":`...), string(r.Type))
	dst = appendNumber(append(dst, `,"value":`...), r.Value)
	dst = appendString(append(dst, `,"alert":`...), r.Text)
	dst = appendString(append(dst, `,"severity":`...), severity.String())
	dst = appendString(append(dst, `,"rule":`...), r.Rule)
	dst = appendString(append(dst, `,"ruleExpression":`...), r.Condition)
	dst = appendText(dst, "ruleFilter", r.Filter)
	dst = appendString(append(dst, `,"window":`...), r.Window)
	dst = appendText(dst, "schedule", r.Schedule)
	dst = appendInt(dst, "repeatCount", int64(r.RepeatCount))
	dst = appendInt(dst, "alertDuration", int64(duration))
	dst = appendDate(dst, "alertOpenDate", r.OpenTime)
	return append(appendDate(dst, "receivedDate", r.Received), '}')
}

// joinTags is the text form of tags in history rows: pairs joined by semicolons, sorted by name.
func joinTags(tags core.Tags) string {
	var b strings.Builder
	for i, t := range tags {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(t.Name + "=" + t.Value)
	}
	return b.String()
}

// alertsUpdate sets the acknowledgement of alerts. Unknown ids are ignored.
func (c *call) alertsUpdate() error {
	return c.changeAlerts(func(ids []uint64, flags []core.Acknowledgement) error {
		// Elements take effect in order; a run of equal ones is one call.
		for start := 0; start < len(ids); {
			end := start + 1
			for end < len(ids) && flags[end] == flags[start] {
				end++
			}
			if err := c.server.Alerts.Acknowledge(c.r.Context(), c.id.Origin(core.DoorHTTP), ids[start:end], flags[start]); err != nil {
				return err
			}
			start = end
		}
		return nil
	})
}

// alertsDelete closes alerts without a trigger. Unknown ids are ignored.
func (c *call) alertsDelete() error {
	return c.changeAlerts(func(ids []uint64, _ []core.Acknowledgement) error {
		if len(ids) == 0 {
			return nil
		}
		return c.server.Alerts.Delete(c.r.Context(), c.id.Origin(core.DoorHTTP), ids)
	})
}

// changeAlerts reads the elements {"id":n,"acknowledged":b}, or plain ids, and checks the permission on each alert's entity.
func (c *call) changeAlerts(change func(ids []uint64, flags []core.Acknowledgement) error) error {
	if c.server.Alerts == nil {
		return c.missing()
	}
	body, err := c.json()
	if err != nil {
		return err
	}
	var ids []uint64
	var flags []core.Acknowledgement
	err = c.objects(body, func(v gjson.Result) error {
		id, flag, err := decodeAlertChange(v)
		ids, flags = append(ids, id), append(flags, flag)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.mayChangeAlerts(ids); err != nil {
		return err
	}
	if err := change(ids, flags); err != nil {
		return err
	}
	return c.ping() // an empty 200
}

// decodeAlertChange reads one element. A missing flag un-acknowledges; ids may come as text.
func decodeAlertChange(v gjson.Result) (id uint64, flag core.Acknowledgement, err error) {
	var o object
	text := ""
	if v.IsObject() {
		o.each(v, func(name string, v gjson.Result) {
			switch name {
			case "id":
				text = o.text(name, v)
			case "acknowledged":
				if o.flag(name, v) {
					flag = core.Acknowledge
				}
			}
		})
	} else {
		text = o.text("id", v)
	}
	n, ok := parseInteger(text)
	if o.err == nil && (!ok || n < 0) {
		o.fail("id: the number of an alert is expected, not %s", excerpt(v.Raw))
	}
	return uint64(n), flag, o.err
}

// mayChangeAlerts needs the write permission for the entity of each open alert that is named.
func (c *call) mayChangeAlerts(ids []uint64) error {
	if c.id.Grants.WriteAll || len(ids) == 0 {
		return nil
	}
	open, err := c.server.Alerts.Query(c.r.Context(), core.AlertFilter{Scope: core.AllEntities, Range: core.AllTime})
	if err != nil {
		return err
	}
	named := slices.Sorted(slices.Values(ids))
	for _, a := range open {
		if _, ok := slices.BinarySearch(named, a.ID); ok && !c.writable(a.Entity) {
			return auth.Denied()
		}
	}
	return nil
}
