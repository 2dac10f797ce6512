package query

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
)

// Series is one series query as the client wrote it. The zero value of a field means absent.
type Series struct {
	RequestID string
	Metric    string
	Type      string // HISTORY, FORECAST, FORECAST_DEVIATION, RECONSTRUCTED
	Entities  EntityFilter
	Dates     DateFilter

	Tags          map[string][]string // any of the values; null values are left out by whoever decodes
	ExactMatch    bool
	TagExpression string

	MinInsertDate, MaxInsertDate string

	ForecastName  string
	Versioned     bool
	VersionFilter string
	SampleFilter  string

	Limit       int    // <= 0: all
	Direction   string // DESC keeps the last, ASC the first
	SeriesLimit int    // <= 0: all
	Cache       bool
	TimeFormat  string // iso or milliseconds
	AddMeta     bool
	Timezone    string

	Aggregate           *Aggregate
	TransformationOrder []string
	// Transformations holds the text of those that are asked for by name but not built, such as group.
	Transformations map[string]string
}

// transformations in the order in which they run unless the request says otherwise.
var transformations = [...]string{"interpolate", "group", "rate", "aggregate", "smooth", "downsample", "forecast", "evaluate"}

// maxSeries is what one query without limit may match; the contract fixes it.
const maxSeries = 10_000

// Plan is a validated series query.
type Plan struct {
	request    Series
	query      core.SeriesQuery // without scope
	dates      core.Range
	kind       SeriesType
	format     TimeFormat
	minInsert  core.Time
	maxInsert  core.Time // exclusive
	insertTest bool
	warning    string // the tag expression does not parse: the answer is a placeholder
	stages     []stage
}

// Validate judges the whole request before any name is looked up. m.Now is the instant that all queries of the request share, m.Zone the zone of the
// server, which the request may override.
func (s Series) Validate(m dates.Moment) (*Plan, error) {
	m, err := inZone(m, s.Timezone)
	if err != nil {
		return nil, err
	}
	p := &Plan{request: s, minInsert: dates.MinDate, maxInsert: dates.MaxDate + 1}
	if p.dates, err = s.Dates.Range(m); err != nil {
		return nil, err
	}
	if p.query.Entities, err = s.Entities.Resolve(EscapesAlways); err != nil {
		return nil, err
	}
	if blank(s.Metric) {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Empty metric")
	}
	if err = p.insertDates(m); err != nil {
		return nil, err
	}
	if err = p.enums(); err != nil {
		return nil, err
	}
	if err = p.transform(m); err != nil {
		return nil, err
	}
	if err = p.unbuilt(); err != nil {
		return nil, err
	}
	p.selection()
	return p, nil
}

func (p *Plan) insertDates(m dates.Moment) error {
	from, hasFrom, err := readDate(m, "minInsertDate", p.request.MinInsertDate, nil)
	if err != nil {
		return err
	}
	to, hasTo, err := readDate(m, "maxInsertDate", p.request.MaxInsertDate, nil)
	if err != nil {
		return err
	}
	if hasFrom {
		p.minInsert = from
	}
	if hasTo {
		p.maxInsert = to
	}
	p.insertTest = hasFrom || hasTo
	return nil
}

func (p *Plan) enums() error {
	switch s := p.request; {
	case s.TimeFormat == "" || strings.EqualFold(s.TimeFormat, "iso"):
	case strings.EqualFold(s.TimeFormat, "milliseconds"):
		p.format = Millis
	default:
		return core.Errorf(core.Invalid, "IllegalArgumentException: Unknown timeFormat: %s", s.TimeFormat)
	}
	if d := p.request.Direction; d != "" && !strings.EqualFold(d, "DESC") && !strings.EqualFold(d, "ASC") {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Unknown direction: %s", d)
	}
	p.kind = History
	if p.request.Type != "" {
		p.kind = SeriesType(strings.ToUpper(p.request.Type))
	}
	switch p.kind {
	case History, Forecast, ForecastDeviation, Reconstructed:
		return nil
	}
	return core.Errorf(core.Invalid, "IllegalArgumentException: Unknown series type: %s", p.request.Type)
}

// transform turns the transformations of the request into stages in their order.
func (p *Plan) transform(m dates.Moment) error {
	order, err := p.request.order()
	if err != nil {
		return err
	}
	for _, name := range order {
		if name == "aggregate" && p.request.Aggregate != nil {
			s, err := p.request.Aggregate.stage(p.dates, m)
			if err != nil {
				return err
			}
			p.stages = append(p.stages, s)
		}
	}
	return nil
}

// order lists all transformations: those of the request first, the others after them in default order.
func (s Series) order() ([]string, error) {
	var order []string
	for _, name := range s.TransformationOrder {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(transformations[:], name) {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Unknown transformation: %s", name)
		}
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, name := range transformations {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order, nil
}

// unbuilt refuses what this server does not do: a wrong answer would be worse.
func (p *Plan) unbuilt() error {
	s := p.request
	missing := func(field string) error {
		return core.Errorf(core.Unimplemented, "not implemented: series query field '%s'", field)
	}
	for _, name := range transformations {
		if _, asked := s.Transformations[name]; asked && name != "aggregate" {
			return missing(name)
		}
	}
	switch {
	case !blank(s.SampleFilter):
		return missing("sampleFilter")
	case !blank(s.VersionFilter):
		return missing("versionFilter")
	case p.kind == Forecast || p.kind == ForecastDeviation:
		return core.Errorf(core.Unimplemented, "not implemented: series query type '%s'", p.kind)
	}
	return nil
}

// selection completes the query for the backend.
func (p *Plan) selection() {
	s, q := p.request, &p.query
	q.Metric = strings.ToLower(strings.TrimSpace(s.Metric))
	q.Tags = tagFilters(s.Tags, EscapesAlways)
	q.ExactTags = s.ExactMatch
	q.Range = p.dates.Intersect(core.AllTime)
	if !blank(s.TagExpression) {
		q.TagExpression = s.TagExpression
		if _, err := filter.Compile(filter.SeriesTags, s.TagExpression); err != nil {
			p.warning = "IllegalStateException: " + err.Error()
		}
	}
	if s.Cache { // the newest sample of all decides, not the newest in the range
		q.Range, q.NewestFirst, q.Limit = core.AllTime, true, 1
		return
	}
	if len(p.stages) == 0 && s.Limit > 0 {
		q.NewestFirst, q.Limit = !strings.EqualFold(s.Direction, "ASC"), s.Limit
	}
}
