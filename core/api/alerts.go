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

	exactMetric string // of the field metric, as it was sent
	within      core.Range
	whose       core.EntityFilter
}

// alertQueries makes the decoder of an alert query. Both know the same members: the history has the single names rule and metric, open alerts
// their plurals, and each form is accepted by both. limit is the default of the endpoint.
func alertQueries(limit int) func(gjson.Result) ([]alertQuery, error) {
	return func(v gjson.Result) ([]alertQuery, error) {
		q := alertQuery{limit: limit}
		err := q.decode(v)
		return []alertQuery{q}, err
	}
}

func (q *alertQuery) decode(v gjson.Result) error {
	var o object
	rules := func(o *object, name string, v gjson.Result) { q.rules = append(q.rules, o.patterns(name, v)...) }
	metrics := func(o *object, name string, v gjson.Result) {
		if name == "metric" {
			q.exactMetric = lowered(v.String())
		}
		for _, metric := range o.patterns(name, v) {
			q.metrics = append(q.metrics, lowered(metric))
		}
	}
	o.read(v, fields{
		"rule": rules, "rules": rules,
		"metric": metrics, "metrics": metrics,
		"severities":  into(&q.severities, (*object).severities),
		"minSeverity": into(&q.minSeverity, (*object).severity),
		"acknowledged": func(o *object, name string, v gjson.Result) {
			if v.String() != "" {
				optional(&q.acknowledged, (*object).flag)(o, name, v)
			}
		},
		"limit": into(&q.limit, (*object).count),
	}.dates(&q.dates).entities(&q.entities))
	return o.err
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

// severities reads names, aliases and codes, mixed, or just one of them. Null and empty ones are absent.
func (o *object) severities(name string, v gjson.Result) []core.Severity {
	var list []core.Severity
	add := func(v gjson.Result) {
		if v.Type != gjson.Null && trimmed(v.String()) != "" {
			list = append(list, o.severity(name, v))
		}
	}
	if !v.IsArray() {
		add(v)
		return list
	}
	v.ForEach(func(_, item gjson.Result) bool {
		add(item)
		return o.err == nil
	})
	return list
}

// Validate evaluates the filters. It makes the query its own plan.
func (q alertQuery) Validate(m dates.Moment) (alertQuery, error) {
	q.within = core.AllTime
	var err error
	if !q.dates.Empty() {
		if q.within, err = q.dates.Range(m); err != nil {
			return q, err
		}
	}
	if !q.entities.Empty() {
		q.whose, err = q.entities.Resolve(query.EscapesInPatterns)
	}
	return q, err
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
	return c.answerAlerts(0, func(out *list, q *alertQuery) error {
		alerts, err := c.server.Alerts.Query(c.reading(), core.AlertFilter{
			Scope: c.id.Grants.ReadScope(), Rules: q.rules, Metrics: q.metrics, Severities: q.severities, MinSeverity: q.minSeverity,
			Acknowledged: q.acknowledged, Entities: q.whose, Range: q.within,
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
		return c.fits(out.body)
	})
}

// answerAlerts reads queries and answers with one flat array of what each adds to it, or of the warning in its place. limit is their default.
func (c *call) answerAlerts(limit int, run func(out *list, q *alertQuery) error) error {
	queries, err := plans(c, alertQueries(limit))
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	for i := range queries {
		q := &queries[i]
		if err := c.mayRead(q.whose); err != nil {
			return err
		}
		if warning, unknown := c.unknownEntity(q.whose); unknown {
			out.next()
			out.body = append(out.body, warning...)
			continue
		}
		if err := run(&out, q); err != nil {
			return err
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// list is a JSON array under construction.
type list struct {
	body []byte
	n    int
}

// next makes room for one more element. The body doubles where append would add a quarter: an answer of many megabytes is then copied once on the way
// and not five times.
func (l *list) next() {
	const element = 1 << 10 // bytes that most elements take
	if cap(l.body)-len(l.body) < element {
		l.body = slices.Grow(l.body, max(4*element, len(l.body)))
	}
	if l.n++; l.n > 1 {
		l.body = append(l.body, ',')
	}
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
	return c.answerAlerts(defaultHistoryLimit, func(out *list, q *alertQuery) error {
		if err := c.knownMetric(q.exactMetric); err != nil {
			return err
		}
		history := core.AlertHistoryQuery{Scope: c.id.Grants.ReadScope(), Entities: q.whose, Rules: q.rules, Metrics: q.metrics, Range: q.within,
			Limit: max(q.limit, 0)}
		for row, err := range c.server.Reader.AlertHistory(c.reading(), history) {
			if err != nil {
				return err
			}
			out.next()
			out.body = appendAlertRow(out.body, &row)
			if err := c.fits(out.body); err != nil {
				return err
			}
		}
		return nil
	})
}

// knownMetric refuses an exact metric name that no sample ever had.
func (c *call) knownMetric(name string) error {
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
	if o.err == nil && !ok {
		o.fail("id: the number of an alert is expected, not %s", excerpt(v.Raw))
	}
	return uint64(max(n, 0)), flag, o.err // 0 and less are numbers of no alert
}

// mayChangeAlerts needs the write permission for the entity of each open alert that is named.
func (c *call) mayChangeAlerts(ids []uint64) error {
	if c.id.Grants.WriteAll || len(ids) == 0 {
		return nil
	}
	open, err := c.server.Alerts.Query(c.reading(), core.AlertFilter{Scope: core.AllEntities, Range: core.AllTime})
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
