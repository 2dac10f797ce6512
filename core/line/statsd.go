package line

import (
	"bytes"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// looksLikeStatsD reports whether a word has the shape NAME:NUMBER|TYPE.
func looksLikeStatsD(word []byte) bool {
	bar := bytes.IndexByte(word, '|')
	if bar < 0 {
		return false
	}
	colon := bytes.LastIndexByte(word[:bar], ':')
	return colon > 0 && numeric(string(word[colon+1:bar]))
}

// statsD reads `NAME:VALUE|TYPE[|@RATE][|#TAG:VALUE,TAG2]`. The value is stored as it was received, whatever type and rate say; `entity/metric` sets the
// entity. A tag without a value has the value true.
func (p *Parser) statsD(b *core.Batch, line string) error {
	parts := strings.Split(line, "|")
	colon := strings.LastIndexByte(parts[0], ':')
	sent, text := parts[0][:colon], parts[0][colon+1:]
	n, ok := command.ParseNumber(text)
	if !ok {
		return refuse(command.BadValue, "%q is not a number", excerpt(text))
	}
	if parts[1] == "" {
		return refuse(command.BadSyntax, "no type after the value: %q", excerpt(line))
	}
	key := core.SeriesKey{Entity: StatsDEntity, Metric: sent}
	if entity, metric, found := strings.Cut(sent, "/"); found {
		key.Entity, key.Metric = entity, metric
	}
	if key.Entity, key.Metric = name(key.Entity), name(key.Metric); key.Entity == "" || key.Metric == "" {
		return refuse(command.BadName, "%q has no entity or no metric", excerpt(sent))
	}
	for _, part := range parts[2:] {
		switch {
		case strings.HasPrefix(part, "@"):
			if rate, ok := command.ParseNumber(part[1:]); !ok || !(rate.Value > 0) {
				return refuse(command.BadSyntax, "bad sample rate %q", excerpt(part))
			}
		case strings.HasPrefix(part, "#"):
			var err error
			if key.Tags, err = statsDTags(part[1:]); err != nil {
				return err
			}
		default:
			return refuse(command.BadSyntax, "unknown part %q: @rate or #tags is expected", excerpt(part))
		}
	}
	add(b, key, p.Received, n)
	return nil
}

func statsDTags(text string) (core.Tags, error) {
	var tags core.Tags
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		tag, v, found := strings.Cut(part, ":")
		if !found {
			v = "true"
		}
		if tag, v = name(tag), value(v); tag == "" || v == "" {
			return nil, refuse(command.BadSyntax, "tag %q has an empty name or value", excerpt(part))
		}
		tags = append(tags, core.Tag{Name: tag, Value: v})
	}
	if len(tags) > command.MaxTags {
		return nil, refuse(command.BadSyntax, "%d tags: at most %d are allowed", len(tags), command.MaxTags)
	}
	return tags.Normal(), nil
}
