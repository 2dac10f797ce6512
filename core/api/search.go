package api

import (
	"cmp"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
	"github.com/tidemark-db/tidemark/core/search"
)

// defaultHits is how many series a search returns unless it says otherwise.
const defaultHits = 100

// seriesSearch finds series by words, in live data: there is no index that could lag behind.
func (c *call) seriesSearch() error {
	begin := c.now()
	q, err := search.Parse(c.values.Get("query"))
	if err != nil {
		return err
	}
	limit, err := c.searchCount("limit", defaultHits, 1)
	if err != nil {
		return err
	}
	offset, err := c.searchCount("offset", 0, 0)
	if err != nil {
		return err
	}
	found, err := q.Expand(c.server.Synonyms).Run(c.searchable(), search.Page{Offset: offset, Limit: limit, Keep: c.keepHits})
	if err != nil {
		return err
	}
	hits := found.Hits
	body := appendString([]byte(`{"query":`), q.String())
	body = strconv.AppendInt(append(body, `,"recordsTotal":`...), int64(found.Total), 10)
	body = strconv.AppendInt(append(body, `,"recordsFiltered":`...), int64(found.Found), 10)
	p := newHitPrinter(c)
	data := []byte{'['}
	for i := range hits {
		if i > 0 {
			data = append(data, ',')
		}
		if data, err = p.append(data, &hits[i]); err != nil {
			return err
		}
		if err = c.fits(data); err != nil {
			return err
		}
	}
	body = strconv.AppendInt(append(body, `,"time":`...), int64(c.now()-begin), 10)
	body = append(append(body, `,"data":`...), data...)
	return c.sendJSON(append(body, "]}"...))
}

// keepHits bounds what a search keeps in memory: by limits.records, and with the bodies of all requests by limits.bodies.
func (c *call) keepHits(n int) error {
	const hitBytes, block = 256, 4096 // a hit with its texts, roughly; a block is 1 MiB
	if n > c.server.Limits.Records {
		return core.Errorf(core.TooLarge, "the search keeps more than limits.records (%d) series in memory: lower offset and limit, or use fewer terms", c.server.Limits.Records)
	}
	if n%block != 0 {
		return nil
	}
	return c.hold(c.held + block*hitBytes)
}

// searchCount reads a parameter that is a number of records.
func (c *call) searchCount(name string, fallback, least int) (int, error) {
	text := c.values.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(least) {
		return 0, core.Errorf(core.Invalid, "IllegalArgumentException: %s must be a whole number of at least %d, not %s", name, least, excerpt(text))
	}
	return int(min(n, math.MaxInt)), nil // more than 32 bits of records are as many as there can be
}

// searchable yields the series that the caller may read, as the store has them.
func (c *call) searchable() iter.Seq2[search.Document, error] {
	return func(yield func(search.Document, error) bool) {
		metrics, entities := lookups(c.server.Catalog.Metric), lookups(c.server.Catalog.Entity)
		for k, err := range c.server.Reader.Keys(c.reading(), core.SeriesQuery{Scope: c.id.Grants.ReadScope(), Range: core.AllTime}) {
			if err == nil {
				err = c.reading().Err()
			}
			if err != nil {
				yield(search.Document{}, err)
				return
			}
			d := search.Document{Key: k.Key, Serial: k.Serial, Last: k.Last, Metric: metrics(k.Key.Metric), Entity: entities(k.Key.Entity)}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// maxLookups is how many names are remembered, some MB of entities; then all are forgotten.
const maxLookups = 16_384

// lookups remembers what find found.
func lookups[T any](find func(string) (T, bool)) func(string) *T {
	known := map[string]*T{}
	return func(name string) *T {
		one, ok := known[name]
		if ok {
			return one
		}
		if len(known) >= maxLookups {
			clear(known)
		}
		if found, ok := find(name); ok {
			one = &found
		}
		known[name] = one
		return one
	}
}

// hitPrinter prints found series with the fields and tags that were asked for.
type hitPrinter struct {
	c                          *call
	metricFields, entityFields []string
	metricTags, entityTags     func(string) bool
	metrics, entities          map[string]string // objects that were printed, by name
}

func newHitPrinter(c *call) *hitPrinter {
	return &hitPrinter{c: c, metricFields: nameList(c.values.Get("metricFields")), entityFields: nameList(c.values.Get("entityFields")),
		metricTags: oneOfNames(nameList(c.values.Get("metricTags"))), entityTags: oneOfNames(nameList(c.values.Get("entityTags"))),
		metrics: map[string]string{}, entities: map[string]string{}}
}

// nameList splits at commas; names are compared in lower case.
func nameList(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = lowered(strings.TrimSpace(name)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func oneOfNames(names []string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, "*") || slices.Contains(names, name) }
}

// append prints the ten elements of a hit.
func (p *hitPrinter) append(b []byte, h *search.Hit) ([]byte, error) {
	metric, err := p.metric(h)
	if err != nil {
		return b, err
	}
	entity, err := p.entity(h)
	if err != nil {
		return b, err
	}
	b = append(appendString(append(b, '['), h.Key.Metric), ',')
	b = append(append(b, metric...), ',')
	b = append(appendString(b, h.Key.Entity), ',')
	b = append(append(b, entity...), ',')
	b = query.AppendTags(b, h.Key.Tags.Map(), query.AllTags)
	b = strconv.AppendFloat(append(b, ','), h.Relevance, 'f', -1, 64)
	return append(b, ']'), nil
}

// metric prints label, fields and tags of the metric of a hit.
func (p *hitPrinter) metric(h *search.Hit) (string, error) {
	if text, ok := p.metrics[h.Key.Metric]; ok || h.Metric == nil {
		return cmp.Or(text, "null,{},{}"), nil
	}
	f := query.MetaFields{}
	if len(p.metricFields) > 0 {
		for one, err := range p.c.server.Metadata.Metrics(p.c.reading(), core.MetaQuery{Name: h.Key.Metric}) {
			if err != nil {
				return "", err
			}
			f.Insert, f.Last = one.Inserted, one.Last
		}
	}
	text := describedHit(h.Metric.Label, query.AppendMetric(nil, h.Metric, f), p.metricFields, h.Metric.Tags, p.metricTags)
	p.metrics[h.Key.Metric] = text
	return text, nil
}

// entity is metric for the entity of a hit.
func (p *hitPrinter) entity(h *search.Hit) (string, error) {
	if text, ok := p.entities[h.Key.Entity]; ok || h.Entity == nil {
		return cmp.Or(text, "null,{},{}"), nil
	}
	f := query.MetaFields{}
	if len(p.entityFields) > 0 {
		for one, err := range p.c.server.Metadata.Entities(p.c.reading(), core.MetaQuery{Name: h.Key.Entity}) {
			if err != nil {
				return "", err
			}
			f.Insert, f.Last = one.Inserted, one.Last
		}
	}
	text := describedHit(h.Entity.Label, query.AppendEntity(nil, h.Entity, f), p.entityFields, h.Entity.Tags, p.entityTags)
	p.entities[h.Key.Entity] = text
	return text, nil
}

// describedHit prints a label, the wanted members of an object, and the wanted tags.
func describedHit(label string, object []byte, fields []string, tags map[string]string, wanted func(string) bool) string {
	b := []byte("null")
	if label != "" {
		b = appendString(nil, label)
	}
	b = append(b, ",{"...)
	keep, some := oneOfNames(fields), false
	gjson.ParseBytes(object).ForEach(func(name, value gjson.Result) bool {
		if keep(lowered(name.Str)) {
			if some {
				b = append(b, ',')
			}
			some = true
			b = append(append(append(b, name.Raw...), ':'), value.Raw...)
		}
		return true
	})
	return string(query.AppendTags(append(b, "},"...), tags, wanted))
}

// indexState is the page that automation polls after it asked for a refresh of the index. Searches read live data: nothing is ever under way.
const indexState = `<!DOCTYPE html><html><head><title>Search</title></head><body><table id="indexInfo">` +
	`<tr><td>Index</td><td>live data</td></tr><tr><td>Delay</td><td>0</td></tr><tr><td>Schedule</td><td>none</td></tr><tr><td>State</td><td>Idle</td></tr></table></body></html>`

// indexPage shows the state of the index.
func (c *call) indexPage() error {
	c.Header().Set("Content-Type", "text/html;charset=utf-8")
	c.WriteHeader(http.StatusOK)
	c.Write([]byte(indexState)) // fails only when the client is gone
	return nil
}

// indexForm answers who asks for a refresh of the index, of which there is no need.
func (c *call) indexForm() error { return c.found("/admin/series/index") }
