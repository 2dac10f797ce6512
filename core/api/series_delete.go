package api

import (
	"strings"

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
	for _, d := range b.Series[:n] { // the deviations of a forecast go with it, uncounted
		if measured, kind, forecast, _ := d.Key.Store(); kind == core.Predicted {
			b.Series = append(b.Series, core.SeriesDelete{Key: measured.In(core.Deviation, forecast), Range: core.AllTime})
		}
	}
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
	kind           core.Kind // what was measured, or a stored forecast with its deviations
	forecast       string
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
		case "type":
			switch kind := strings.ToUpper(o.text(name, v)); kind {
			case "", "HISTORY":
			case "FORECAST":
				del.kind = core.Predicted
			default:
				o.fail("unknown series type %s", excerpt(v.Raw))
			}
		case "forecastName":
			del.forecast = trimmed(o.text(name, v))
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
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: del.metric, Entities: core.EntityFilter{Names: []string{del.entity}}, Range: core.AllTime,
		Kind: del.kind}
	if del.kind != core.Measured {
		q.Forecast = del.forecast
	}
	for info, err := range c.server.Reader.Keys(c.reading(), q) {
		if err != nil {
			return err
		}
		if !del.selects(info.Key.Tags) {
			continue
		}
		target := info.Key.In(del.kind, del.forecast)
		key := string(target.Append(nil))
		if chosen[key] {
			continue
		}
		chosen[key] = true
		if len(b.Series) >= c.server.Limits.Records {
			return c.tooMany()
		}
		b.Series = append(b.Series, core.SeriesDelete{Key: target.Clone(), Range: core.AllTime})
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
