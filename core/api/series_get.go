package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// seriesGet is the query by URL, as JSON or CSV.
func (c *call) seriesGet() error {
	format := strings.ToLower(c.param("format"))
	if format != "json" && format != "csv" {
		return core.Errorf(core.NotFound, "unknown format '%s': use json or csv", excerpt(c.param("format")))
	}
	request, err := c.seriesByURL()
	if err != nil {
		return err
	}
	plan, err := request.Validate(c.moment())
	if err != nil {
		return err
	}
	if format == "csv" {
		return c.seriesCSV(plan, slices.Sorted(maps.Keys(request.Tags)))
	}
	return answer(c, []*query.Plan{plan}, appendSeries)
}

// seriesByURL makes a query of path and parameters. The entity may be a pattern, with the escapes of a query; the metric is a literal name.
func (c *call) seriesByURL() (query.Series, error) {
	q := query.Series{TimeFormat: "milliseconds"}
	var err error
	if q.Entities.Entity, err = c.pathName("entity"); err != nil {
		return q, err
	}
	if q.Metric, err = c.pathName("metric"); err != nil {
		return q, err
	}
	params := c.values
	q.Dates = query.DateFilter{StartDate: params.Get("startDate"), EndDate: params.Get("endDate"), Interval: params.Get("interval")}
	for name, into := range map[string]**core.Time{"startTime": &q.Dates.StartTime, "endTime": &q.Dates.EndTime} {
		if text := params.Get(name); text != "" {
			n, ok := parseInteger(text)
			if !ok {
				return q, core.Errorf(core.Invalid, "IllegalArgumentException: Wrong %s syntax: %s", name, excerpt(text))
			}
			t := core.Time(n)
			*into = &t
		}
	}
	for name, values := range params {
		if tag, ok := strings.CutPrefix(name, "t:"); ok {
			if q.Tags == nil {
				q.Tags = map[string][]string{}
			}
			q.Tags[lowered(tag)] = append(q.Tags[lowered(tag)], values...)
		}
	}
	if text := params.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil {
			return q, core.Errorf(core.Invalid, "IllegalArgumentException: limit: a number is expected, not %s", excerpt(text))
		}
	}
	q.TimeFormat = orDefault(params.Get("timeFormat"), q.TimeFormat)
	if q.Cache, err = flagParameter(params, "last", false); err != nil {
		return q, err
	}
	if function := params.Get("aggregate"); function != "" {
		q.Aggregate = &query.Aggregate{Types: []string{function}}
		if period := params.Get("period"); period != "" {
			q.Aggregate.Period = &query.Period{Align: params.Get("align")}
			return q, parsePeriod(q.Aggregate.Period, period)
		}
	}
	return q, nil
}

// seriesCSV prints the samples of a plan as a table; nothing found is the header alone.
func (c *call) seriesCSV(plan *query.Plan, tags []string) error {
	params := c.values
	var columns []string
	if text := orDefault(params.Get("columns"), params.Get("fields")); text != "" {
		columns = strings.Split(text, ",")
	}
	table, err := query.NewCSV(columns, tags)
	if err != nil {
		return err
	}
	body := table.AppendHeader(nil)
	for r, err := range plan.Run(c.reading(), c.source()) {
		if err != nil {
			return err
		}
		body = table.AppendRows(body, r)
		if err := c.fits(body); err != nil {
			return err
		}
	}
	return c.send(csvType, body)
}
