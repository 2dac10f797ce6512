package api

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// defaultSeverity is that of a message inserted without one.
const defaultSeverity = core.Undefined

// messagesInsert stores an array of messages, all or none. A message with neither text nor tags is left out without an error.
func (c *call) messagesInsert() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	b := c.batch()
	now := c.now()
	err = c.objects(body, func(v gjson.Result) error {
		m, err := decodeMessage(v, now)
		if err == nil && (m.Text != "" || len(m.Tags) > 0) {
			b.Messages = append(b.Messages, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.ingest(b)
}

// decodeMessage reads one message. Every text is trimmed at both ends before it is judged, so that a name with margins is a good name. Of the two
// date fields `date` wins; `timestamp` is that of older clients.
func decodeMessage(v gjson.Result, now core.Time) (core.Message, error) {
	m := core.Message{Time: now, Type: core.DefaultMessageType, Source: core.DefaultMessageSource, Severity: defaultSeverity, Flags: core.Default}
	var o object
	var date, stamp gjson.Result
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "entity":
			m.Entity = lowered(trimmed(o.text(name, v)))
		case "type":
			m.Type = orDefault(lowered(trimmed(o.text(name, v))), core.DefaultMessageType)
		case "source":
			m.Source = orDefault(lowered(trimmed(o.text(name, v))), core.DefaultMessageSource)
		case "severity":
			m.Severity = o.severity(name, v)
		case "message":
			m.Text = trimmed(o.text(name, v))
		case "tags":
			m.Tags = messageTags(&o, v)
		case "persist":
			if !o.flag(name, v) {
				m.Flags &^= core.Stored
			}
		case "date":
			date = v
		case "timestamp":
			stamp = v
		}
	})
	if o.err != nil {
		return m, o.err
	}
	switch {
	case m.Entity == "":
		o.fail("Empty entity")
	case !validName(m.Entity):
		o.fail("Invalid entity name '%s'", m.Entity)
	case !validName(m.Type):
		o.fail("Invalid message type '%s'", m.Type)
	case !validName(m.Source):
		o.fail("Invalid message source '%s'", m.Source)
	case date.Exists():
		fault := core.Errorf(core.Invalid, "IllegalArgumentException: Failed to parse date %s", excerpt(date.String()))
		m.Time, o.err = recordTime(date.String(), fault)
	case stamp.Exists():
		m.Time = core.Time(o.integer("timestamp", stamp))
		if o.err == nil {
			o.err = checkTime(m.Time)
		}
	}
	return m, o.err
}

// messageTags reads tags; those that are named like a field are no tags, and an empty one says nothing.
func messageTags(o *object, v gjson.Result) core.Tags {
	var tags core.Tags
	o.each(v, func(name string, v gjson.Result) {
		value := trimmed(o.text(name, v))
		name = lowered(trimmed(name))
		switch name {
		case "type", "source", "severity":
			return
		}
		if name == "" || !validName(name) {
			o.fail("Invalid tag name '%s'", name)
			return
		}
		if value != "" {
			tags = append(tags, core.Tag{Name: name, Value: value})
		}
	})
	return tags.Normal()
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// appendCount appends a number and closes an object.
func appendCount(dst []byte, n int) []byte { return append(strconv.AppendInt(dst, int64(n), 10), '}') }

// messagesQuery answers with one flat array of messages, query by query, newest first. All queries are judged before the first one reads.
func (c *call) messagesQuery() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	moment := c.moment()
	var plans []*query.MessagePlan
	err = c.objects(body, func(v gjson.Result) error {
		request, err := decodeMessageQuery(v)
		if err != nil {
			return err
		}
		p, err := request.Validate(moment)
		plans = append(plans, p)
		return err
	})
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	for _, p := range plans {
		for m, err := range p.Run(c.r.Context(), c.source()) {
			if err != nil {
				return err
			}
			out.next()
			out.body = query.AppendMessage(out.body, &m)
			if err := c.fits(out.body); err != nil {
				return err
			}
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// decodeMessageQuery reads one query; its values are judged by core/query.
func decodeMessageQuery(v gjson.Result) (query.Messages, error) {
	var q query.Messages
	var o object
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "type":
			q.Type = o.text(name, v)
		case "source":
			q.Source = o.text(name, v)
		case "tags":
			q.Tags = o.tagValues(name, v)
		case "severity":
			q.Severity = o.text(name, v)
		case "severities":
			q.Severities = o.texts(name, v)
		case "minSeverity":
			q.MinSeverity = o.text(name, v)
		case "expression":
			q.Expression = o.text(name, v)
		case "timezone", "timeZone":
			q.Timezone = o.text(name, v)
		case "limit":
			n := o.count(name, v)
			q.Limit = &n
		default:
			if !o.dateField(&q.Dates, name, v) {
				o.entityFilter(&q.Entities, name, v)
			}
		}
	})
	return q, o.err
}
