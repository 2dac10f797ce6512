package query

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
)

// MessageCount is the only metric of message statistics.
const MessageCount = "message-count"

// MessageStats is one query of message counts as the client wrote it: a message query whose Expression and Limit are not used, and how to count.
type MessageStats struct {
	Messages
	Metric        string
	GroupKeys     []string // entity, type, source, severity or the name of a tag
	Aggregate     *Aggregate
	TagExpression string
	RequestID     string
	TimeFormat    string
}

// MessageStatsPlan is a validated query of message counts.
type MessageStatsPlan struct {
	request  MessageStats
	messages *MessagePlan
	keys     []string // GroupKeys in lower case, each once
	count    calc.Aggregation
	format   TimeFormat
	warning  string // the tag expression does not parse: the answer is a placeholder
}

// Validate judges the whole request before any name is looked up.
func (s MessageStats) Validate(m dates.Moment) (*MessageStatsPlan, error) {
	p := &MessageStatsPlan{request: s}
	if !blank(s.Expression) {
		return nil, invalid("The expression field is not supported")
	}
	s.Messages.Limit = new(int)
	var err error
	if p.messages, err = s.Messages.Validate(m); err != nil {
		return nil, err
	}
	if metric := strings.TrimSpace(s.Metric); !strings.EqualFold(metric, MessageCount) {
		return nil, invalid("metric must be '" + MessageCount + "', not '" + metric + "'")
	}
	if p.format, err = parseTimeFormat(s.TimeFormat); err != nil {
		return nil, err
	}
	if m, err = inZone(m, s.Timezone); err != nil {
		return nil, err
	}
	if err = p.aggregation(m); err != nil {
		return nil, err
	}
	for _, key := range s.GroupKeys {
		if key = strings.ToLower(strings.TrimSpace(key)); key != "" && !slices.Contains(p.keys, key) {
			p.keys = append(p.keys, key)
		}
	}
	if !blank(s.TagExpression) {
		p.messages.query.Expression = s.TagExpression
		if err = filter.Check(filter.Messages, s.TagExpression); err != nil {
			p.warning = "IllegalStateException: " + err.Error()
		}
	}
	return p, nil
}

// aggregation takes COUNT alone; DETAIL, which some clients send with it, counts as well.
func (p *MessageStatsPlan) aggregation(m dates.Moment) error {
	p.count = calc.Aggregation{Range: p.messages.query.Range, Functions: []calc.Function{{Kind: calc.KindCount}}}
	a := p.request.Aggregate
	if a == nil {
		return nil
	}
	if len(a.Types) == 0 {
		return invalid("Aggregation type is required")
	}
	for _, name := range a.Types {
		if f, err := calc.ParseFunction(name); err != nil || f.Kind != calc.KindCount && f.Kind != calc.KindDetail {
			return invalid("Aggregation type of messages must be COUNT, not " + name)
		}
	}
	if a.Period == nil {
		return nil
	}
	var err error
	if p.count.Period, err = a.Period.resolve(m); err != nil {
		return err
	}
	if a.Interpolate != nil {
		if p.count.Fill, err = a.Interpolate.resolve(); err != nil {
			return err
		}
		p.count.Fill.Extend = true // up to both ends of the range
	}
	if err = p.count.Validate(); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// MessageCounts is one series of an answer.
type MessageCounts struct {
	RequestID string
	Entity    string
	Tags      core.Tags
	Period    *Period // nil: one count over the whole range
	Warning   string
	Times     []core.Time // period starts
	Counts    []float64
	format    TimeFormat
}

// AppendJSON appends the counts in the shape of a series query.
func (c *MessageCounts) AppendJSON(b []byte) []byte {
	o := openObject(b)
	o.optional("requestId", c.RequestID)
	o.text("entity", c.Entity)
	o.text("metric", MessageCount)
	o.tags("tags", c.Tags)
	o.text("type", string(History))
	o.name("aggregate")
	inner := openObject(o.b)
	inner.text("type", "COUNT")
	if c.Period != nil {
		inner.name("period")
		period := openObject(inner.b)
		period.integer("count", dates.NewInterval(c.Period.Count, dates.Day).Count)
		unit := strings.ToUpper(c.Period.Unit)
		if u, err := dates.ParseUnit(unit); err == nil { // a plural is echoed as its unit
			unit = u.String()
		}
		period.text("unit", unit)
		inner.b = period.close()
	}
	o.b = inner.close()
	o.optional("warning", c.Warning)
	o.name("data")
	o.b = append(o.b, '[')
	r := Result{Format: c.format}
	for i, t := range c.Times {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(r.appendTime(append(o.b, '{'), t), `,"v":`...)
		o.b = append(strconv.AppendInt(o.b, int64(c.Counts[i]), 10), '}')
	}
	o.b = append(o.b, ']')
	return o.close()
}

// messageGroup is what is known of one series while messages are read.
type messageGroup struct {
	entity string
	tags   core.Tags
	times  []core.Time // newest first
}

// Run counts and yields the series by entity and tags. Without group keys there is always one.
func (p *MessageStatsPlan) Run(ctx context.Context, src Source) iter.Seq2[*MessageCounts, error] {
	return func(yield func(*MessageCounts, error) bool) {
		if p.warning != "" {
			yield(p.series(messageGroup{entity: p.entity()}, p.warning), nil)
			return
		}
		groups, err := p.read(ctx, src)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, g := range groups {
			s := p.series(*g, "")
			if err := p.tally(s, g.times); err != nil {
				yield(nil, err)
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// read collects the times of the messages of each group.
func (p *MessageStatsPlan) read(ctx context.Context, src Source) ([]*messageGroup, error) {
	index := map[string]*messageGroup{}
	var groups []*messageGroup
	var key []byte
	for m, err := range p.messages.Run(ctx, src) {
		if err != nil {
			return nil, err
		}
		key = key[:0]
		for _, name := range p.keys {
			key = append(append(key, groupValue(&m, name)...), 0)
		}
		g, ok := index[string(key)]
		if !ok {
			g = p.group(&m)
			index[string(key)] = g
			groups = append(groups, g)
		}
		g.times = append(g.times, m.Time)
	}
	if len(p.keys) == 0 && len(groups) == 0 {
		groups = []*messageGroup{{entity: p.entity(), tags: p.filterTags()}}
	}
	slices.SortFunc(groups, func(a, b *messageGroup) int {
		if c := strings.Compare(a.entity, b.entity); c != 0 {
			return c
		}
		return a.tags.Compare(b.tags)
	})
	return groups, nil
}

// groupValue is what a message counts under; a tag that it does not have is the empty text.
func groupValue(m *core.Message, key string) string {
	switch key {
	case "entity":
		return m.Entity
	case "type":
		return m.Type
	case "source":
		return m.Source
	case "severity":
		return strings.ToLower(m.Severity.String())
	}
	return m.Tags.Value(key)
}

func (p *MessageStatsPlan) group(m *core.Message) *messageGroup {
	g := &messageGroup{entity: p.entity(), tags: p.filterTags()}
	for _, name := range p.keys {
		switch value := groupValue(m, name); {
		case name == "entity":
			g.entity = value
		case value != "":
			g.tags = append(g.tags, core.Tag{Name: name, Value: strings.Clone(value)})
		}
	}
	g.entity = strings.Clone(g.entity)
	g.tags = g.tags.Normal()
	return g
}

// filterTags shows the conditions on single values; a group key of the same name holds the same value.
func (p *MessageStatsPlan) filterTags() core.Tags {
	var tags core.Tags
	q := &p.messages.query
	if q.Source != "" {
		tags = append(tags, core.Tag{Name: "source", Value: q.Source})
	}
	if q.Type != "" {
		tags = append(tags, core.Tag{Name: "type", Value: q.Type})
	}
	if !blank(p.request.Severity) && len(q.Severities) == 1 {
		tags = append(tags, core.Tag{Name: "severity", Value: strings.ToLower(q.Severities[0].String())})
	}
	return tags.Normal()
}

// entity is the name of a series that is not grouped by entity: what was asked for.
func (p *MessageStatsPlan) entity() string {
	f := p.request.Entities
	if blank(f.Entity) && len(f.Entities) > 0 {
		names := make([]string, 0, len(f.Entities))
		for _, name := range f.Entities {
			if !blank(name) {
				names = append(names, strings.ToLower(name))
			}
		}
		return strings.Join(names, "_")
	}
	return f.named()
}

func (p *MessageStatsPlan) series(g messageGroup, warning string) *MessageCounts {
	s := &MessageCounts{RequestID: p.request.RequestID, Entity: g.entity, Tags: g.tags, Warning: warning, format: p.format}
	if p.request.Aggregate != nil {
		s.Period = p.request.Aggregate.Period
	}
	return s
}

// tally counts the messages of one group.
func (p *MessageStatsPlan) tally(s *MessageCounts, newestFirst []core.Time) error {
	if len(newestFirst) == 0 {
		return nil
	}
	if s.Period == nil {
		s.Times, s.Counts = []core.Time{p.messages.query.Range.Start}, []float64{float64(len(newestFirst))}
		return nil
	}
	slices.Reverse(newestFirst)
	out, err := calc.Aggregate(p.count, newestFirst, make([]float64, len(newestFirst)))
	if err != nil {
		return invalid(err.Error())
	}
	s.Times, s.Counts = out[0].Times, out[0].Values
	return nil
}

// parseTimeFormat reads a name in any case; the empty text is ISO.
func parseTimeFormat(text string) (TimeFormat, error) {
	switch {
	case text == "" || strings.EqualFold(text, "iso"):
		return ISO, nil
	case strings.EqualFold(text, "milliseconds"):
		return Millis, nil
	}
	return ISO, invalid("Unknown timeFormat: " + text)
}
