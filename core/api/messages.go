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
	now := c.now()
	return c.insert(func(b *core.Batch, v gjson.Result) error {
		m, err := decodeMessage(v, now)
		if err == nil && (m.Text != "" || len(m.Tags) > 0) {
			b.Messages = append(b.Messages, m)
		}
		return err
	})
}

// insert stores what add makes of each element of the body, all or none.
func (c *call) insert(add func(b *core.Batch, v gjson.Result) error) error {
	body, err := c.json()
	if err != nil {
		return err
	}
	b := c.batch()
	if err := c.objects(body, func(v gjson.Result) error { return add(b, v) }); err != nil {
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
	default:
		o.err = recordTime(&m.Time, date, stamp, "Failed to parse date "+excerpt(date.String()))
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

// messagesQuery answers with one flat array of messages, query by query, newest first.
func (c *call) messagesQuery() error {
	p, err := plans(c, decodeMessageQuery)
	if err != nil {
		return err
	}
	return answer(c, p, func(dst []byte, m core.Message) []byte { return query.AppendMessage(dst, &m) })
}

// messageStats answers with counts of messages in the shape of a series query.
func (c *call) messageStats() error {
	p, err := plans(c, decodeMessageStats)
	if err != nil {
		return err
	}
	return answer(c, p, func(dst []byte, m *query.MessageCounts) []byte { return m.AppendJSON(dst) })
}

// decodeMessageQuery reads one query; its values are judged by core/query.
func decodeMessageQuery(v gjson.Result) ([]query.Messages, error) {
	var q query.Messages
	var o object
	o.read(v, fields{
		"limit": optional(&q.Limit, (*object).count),
	}.messages(&q))
	return []query.Messages{q}, o.err
}

func decodeMessageStats(v gjson.Result) ([]query.MessageStats, error) {
	var q query.MessageStats
	var o object
	o.read(v, fields{
		"metric":        into(&q.Metric, (*object).text),
		"groupKeys":     into(&q.GroupKeys, (*object).texts),
		"aggregate":     into(&q.Aggregate, (*object).aggregate),
		"tagExpression": into(&q.TagExpression, (*object).text),
		"requestId":     into(&q.RequestID, (*object).text),
		"timeFormat":    into(&q.TimeFormat, (*object).text),
	}.messages(&q.Messages))
	return []query.MessageStats{q}, o.err
}

// messages adds the conditions on messages that both queries have.
func (f fields) messages(q *query.Messages) fields {
	f["type"] = into(&q.Type, (*object).text)
	f["source"] = into(&q.Source, (*object).text)
	f["tags"] = into(&q.Tags, (*object).tagValues)
	f["severity"] = into(&q.Severity, (*object).text)
	f["severities"] = into(&q.Severities, (*object).texts)
	f["minSeverity"] = into(&q.MinSeverity, (*object).text)
	f["expression"] = into(&q.Expression, (*object).text)
	return f.timezone(&q.Timezone).dates(&q.Dates).entities(&q.Entities)
}
