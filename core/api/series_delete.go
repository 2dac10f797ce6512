package api

import (
	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
)

// seriesDelete deletes whole series. The caller needs write permission, which the pipeline checks.
func (c *call) seriesDelete() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	b := c.batch()
	chosen := map[string]bool{} // canonical keys: each series is deleted, and counted, once
	err = c.objects(body, func(v gjson.Result) error {
		del, err := decodeSeriesDelete(v)
		if err != nil {
			return err
		}
		if err := c.known(del.metric, del.entity); err != nil {
			return err
		}
		return c.matchSeries(b, del, chosen)
	})
	if err != nil {
		return err
	}
	if len(b.Series) == 0 {
		return core.Errorf(core.NotFound, "SeriesNotFoundException: No series found")
	}
	n := len(b.Series)
	receipt, err := c.submit(b)
	if err != nil {
		return err
	}
	c.durability(receipt.Durability)
	return c.sendJSON(appendCount([]byte(`{"series":`), n))
}

type seriesSelection struct {
	metric, entity string
	tags           core.Tags
	exact          bool
}

// decodeSeriesDelete reads one element. exactMatch is true unless told otherwise, the opposite of a query.
func decodeSeriesDelete(v gjson.Result) (seriesSelection, error) {
	del := seriesSelection{exact: true}
	var o object
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "metric":
			del.metric = lowered(trimmed(o.text(name, v)))
		case "entity":
			del.entity = lowered(trimmed(o.text(name, v)))
		case "exactMatch":
			del.exact = o.flag(name, v)
		case "tags":
			if o.err == nil {
				del.tags, o.err = decodeTags(v, nil)
				del.tags = del.tags.Normal()
			}
		}
	})
	switch {
	case o.err != nil:
	case del.entity == "":
		o.fail("Empty entity")
	case del.metric == "":
		o.fail("Empty metric")
	}
	return del, o.err
}

// known refuses names that no record ever had.
func (c *call) known(metric, entity string) error {
	if _, ok := c.server.Catalog.Entity(entity); !ok {
		return core.Errorf(core.NotFound, "DictionaryNotFoundException: ENTITY not found for name: '%s'", entity)
	}
	if _, ok := c.server.Catalog.Metric(metric); !ok {
		return core.Errorf(core.NotFound, "DictionaryNotFoundException: METRIC not found for name: '%s'", metric)
	}
	return nil
}

// matchSeries adds the deletes of a selection to the batch, each series once. Tag values are compared literally.
func (c *call) matchSeries(b *core.Batch, del seriesSelection, chosen map[string]bool) error {
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: del.metric, Entities: core.EntityFilter{Names: []string{del.entity}}, Range: core.AllTime}
	for info, err := range c.server.Reader.Keys(c.reading(), q) {
		if err != nil {
			return err
		}
		if !del.selects(info.Key.Tags) {
			continue
		}
		key := string(info.Key.Append(nil))
		if chosen[key] {
			continue
		}
		chosen[key] = true
		if len(b.Series) >= c.server.Limits.Records {
			return c.tooMany()
		}
		b.Series = append(b.Series, core.SeriesDelete{Key: info.Key.Clone(), Range: core.AllTime})
	}
	return nil
}

func (s seriesSelection) selects(tags core.Tags) bool {
	if s.exact {
		return tags.Equal(s.tags)
	}
	return containsTags(tags, s.tags)
}

// containsTags reports whether all holds every tag of some.
func containsTags(all, some core.Tags) bool {
	for _, t := range some {
		if v, ok := all.Get(t.Name); !ok || v != t.Value {
			return false
		}
	}
	return true
}
