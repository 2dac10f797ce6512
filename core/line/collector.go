package line

import (
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// collector reads `put METRIC TIME VALUE [TAG=VALUE]...`. The tag host becomes the entity.
func (p *Parser) collector(b *core.Batch, line string) error {
	words := strings.Fields(line)
	if len(words) < 4 {
		return refuse(command.BadSyntax, "put takes a metric, a time, a value and tags: %q", excerpt(line))
	}
	t, err := secondsOrMillis(words[2])
	if err != nil {
		return err
	}
	n, ok := command.ParseNumber(words[3])
	if !ok {
		return refuse(command.BadValue, "%q is not a number", excerpt(words[3]))
	}
	point := Point{Metric: words[1], Time: t, Number: n}
	for _, word := range words[4:] {
		tag, value, found := strings.Cut(word, "=")
		if !found || tag == "" || value == "" {
			return refuse(command.BadSyntax, "%q is not a tag: write name=value", excerpt(word))
		}
		point.Tags = append(point.Tags, core.Tag{Name: tag, Value: value})
	}
	return point.Add(b)
}

// Point is one sample of OpenTSDB, as tcollector and scollector send it.
type Point struct {
	Metric string
	Time   core.Time
	Number command.Number
	Tags   core.Tags // as they were sent, in any order; Add takes them over
}

// Add appends the point to a batch. The tag host becomes the entity, tcollector when there is none.
func (p *Point) Add(b *core.Batch) error {
	if p.Metric == "" {
		return refuse(command.BadName, "no metric")
	}
	if len(p.Tags) > command.MaxTags {
		return refuse(command.BadSyntax, "%d tags: at most %d are allowed", len(p.Tags), command.MaxTags)
	}
	if _, err := storable(p.Time, p.Time.Std().String()); err != nil {
		return err
	}
	key := core.SeriesKey{Metric: name(p.Metric), Entity: CollectorEntity}
	tags := p.Tags[:0]
	for _, tag := range p.Tags {
		tag.Name, tag.Value = name(tag.Name), value(tag.Value)
		switch {
		case tag.Name == "" || tag.Value == "":
			return refuse(command.BadSyntax, "tag %q has an empty name or value", excerpt(tag.Name))
		case tag.Name == "host":
			key.Entity = name(tag.Value)
		default:
			tags = append(tags, tag)
		}
	}
	if len(tags) > 0 {
		key.Tags = tags.Normal()
	}
	add(b, key, p.Time, p.Number)
	return nil
}
