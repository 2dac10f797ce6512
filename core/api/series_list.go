package api

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// defaultSeriesLimit is how many series of a metric are listed unless the parameter `limit` says otherwise. No other list has such a bound.
const defaultSeriesLimit = 5000

// seriesChoice are the parameters that choose series of a metric.
type seriesChoice struct {
	listing
	query core.SeriesQuery
}

// selectSeries reads the parameters `entity`, `tags.NAME` and the bounds of the newest sample.
func (c *call) selectSeries(metric string) (s seriesChoice, err error) {
	if s.min, s.hasMin, err = c.dateParameter(c.values, "minInsertDate"); err != nil {
		return s, err
	}
	if s.max, s.hasMax, err = c.dateParameter(c.values, "maxInsertDate"); err != nil {
		return s, err
	}
	s.query = core.SeriesQuery{Scope: core.AllEntities, Metric: metric, Range: core.AllTime}
	if entity := lowered(c.values.Get("entity")); strings.ContainsAny(entity, "*?") {
		s.query.Entities.Patterns = []string{entity}
	} else if entity != "" {
		s.query.Entities.Names = []string{entity}
	}
	for _, parameter := range slices.Sorted(maps.Keys(c.values)) {
		name, ok := strings.CutPrefix(parameter, "tags.")
		if !ok {
			continue
		}
		f := core.TagFilter{Name: lowered(trimmed(name))}
		for _, value := range c.values[parameter] {
			if value = trimmed(value); value == "" {
				continue // an empty parameter equals an absent one
			}
			if !strings.ContainsAny(value, "*?") {
				value = query.Quote(value, query.EscapesAlways) // a plain value
			}
			f.Patterns = append(f.Patterns, value)
		}
		if len(f.Patterns) > 0 {
			s.query.Tags = append(s.query.Tags, f)
		}
	}
	return s, nil
}

// selected yields the series, by entity and tags.
func (c *call) selected(s seriesChoice) iter.Seq2[core.KeyInfo, error] {
	return func(yield func(core.KeyInfo, error) bool) {
		for k, err := range c.server.Reader.Keys(c.reading(), s.query) {
			if err != nil {
				yield(core.KeyInfo{}, err)
				return
			}
			if s.inserted(k.Last, true) && !yield(k, nil) {
				return
			}
		}
	}
}

// metricSeries lists the series of a metric.
func (c *call) metricSeries() error {
	limit, err := c.limit(defaultSeriesLimit)
	if err != nil {
		return err
	}
	addMeta, err := flagParameter(c.values, "addMeta", false)
	if err != nil {
		return err
	}
	name, metric, err := metricMeta.existing(c)
	if err != nil {
		return err
	}
	s, err := c.selectSeries(name)
	if err != nil {
		return err
	}
	s.limit = limit
	meta := func(dst []byte, _ string) []byte { return dst }
	if addMeta {
		meta = c.seriesMeta(&metric)
	}
	out := list{body: []byte{'['}}
	for k, err := range c.selected(s) {
		if err != nil {
			return err
		}
		out.next()
		out.body = appendString(append(out.body, `{"metric":`...), k.Key.Metric)
		out.body = appendText(out.body, "entity", k.Key.Entity)
		out.body = append(out.body, `,"tags":{`...)
		for i, tag := range k.Key.Tags {
			if i > 0 {
				out.body = append(out.body, ',')
			}
			out.body = append(appendString(out.body, tag.Name), ':')
			out.body = appendString(out.body, tag.Value)
		}
		out.body = appendDate(append(out.body, '}'), "lastInsertDate", k.Last)
		out.body = append(meta(out.body, k.Key.Entity), '}')
		if err := c.fits(out.body); err != nil {
			return err
		}
		if !s.more(&out) {
			break
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// seriesMeta prints the member `meta`. Series come by entity, so that the text of the last one serves again.
func (c *call) seriesMeta(metric *core.Metric) func(dst []byte, entity string) []byte {
	before := append(query.AppendMetric([]byte(`,"meta":{"metric":`), metric, query.MetaFields{Tags: query.AllTags}), `,"entity":`...)
	last, text := "", []byte(nil)
	return func(dst []byte, entity string) []byte {
		if entity != last || text == nil {
			e, _ := c.server.Catalog.Entity(entity)
			text = append(query.AppendEntity(append([]byte(nil), before...), &e, query.MetaFields{Tags: query.AllTags}), '}')
			last = strings.Clone(entity)
		}
		return append(dst, text...)
	}
}

// metricSeriesTags lists the values of each tag over the series of a metric. A filter on one tag does not hide the others.
func (c *call) metricSeriesTags() error {
	name, _, err := metricMeta.existing(c)
	if err != nil {
		return err
	}
	s, err := c.selectSeries(name)
	if err != nil {
		return err
	}
	keep := tagNames(c.values.Get("tags"))
	if keep == nil {
		keep = query.AllTags
	}
	values := map[string]map[string]bool{}
	for k, err := range c.selected(s) {
		if err != nil {
			return err
		}
		for _, tag := range k.Key.Tags {
			if !keep(tag.Name) {
				continue
			}
			set := values[tag.Name]
			if set == nil {
				set = map[string]bool{}
				values[strings.Clone(tag.Name)] = set
			}
			if !set[tag.Value] {
				set[strings.Clone(tag.Value)] = true
			}
		}
	}
	body := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(appendString(body, name), ':')
		body = appendStrings(body, slices.Sorted(maps.Keys(values[name])))
	}
	return c.sendJSON(append(body, '}'))
}
