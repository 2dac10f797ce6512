package query

import (
	"cmp"
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

	Interpolate         *Regularize
	Group               *Group
	Rate                *Rate
	Aggregate           *Aggregate
	Smooth              *Smooth
	Downsample          *Downsample
	Forecast            *ForecastSpec
	Evaluate            *Evaluate
	TransformationOrder []string
	// Name and Inputs serve Evaluate: the name of the query itself as an input, and more inputs, of which only name and filters count.
	Name   string
	Inputs []Series
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
	filters    sampleFilters
	stages     []stage
	names      []string    // of all transformations that run, upper case
	outer      bool        // the samples next to the range are loaded too
	evaluation *evaluation // takes the place of loading; nil = none
}

// Validate judges the whole request before any name is looked up. m.Now is the instant that all queries of the request share, m.Zone the zone of the
// server, which the request may override.
func (s Series) Validate(m dates.Moment) (*Plan, error) {
	if s.Evaluate != nil {
		return s.validateEvaluation(m)
	}
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
	if err = p.compileFilters(m); err != nil {
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
	var err error
	if p.format, err = parseTimeFormat(p.request.TimeFormat); err != nil {
		return err
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
	asked := p.request.asked()
	set := setting{Moment: m, Range: p.dates}
	for i, name := range order {
		t := asked[name]
		if t == nil {
			continue
		}
		set.Inherited = nil
		if a := p.request.Aggregate; a != nil && slices.Contains(order[i:], "aggregate") {
			set.Inherited = a.Period
		}
		s, err := t.stage(set)
		if err != nil {
			return err
		}
		p.stages, p.names = append(p.stages, s), append(p.names, s.name)
		if name == "interpolate" && len(p.stages) == 1 { // other stages would compute with samples that are not asked for
			p.outer = p.request.Interpolate.outer()
		}
	}
	return nil
}

// asked returns the transformations of the request by name.
func (s Series) asked() map[string]transformation {
	m := map[string]transformation{}
	if s.Interpolate != nil {
		m["interpolate"] = s.Interpolate
	}
	if s.Group != nil {
		m["group"] = s.Group
	}
	if s.Rate != nil {
		m["rate"] = s.Rate
	}
	if s.Aggregate != nil {
		m["aggregate"] = s.Aggregate
	}
	if s.Smooth != nil {
		m["smooth"] = s.Smooth
	}
	if s.Downsample != nil {
		m["downsample"] = s.Downsample
	}
	if s.Forecast != nil {
		m["forecast"] = s.Forecast
	}
	return m
}

// order lists all transformations: those of the request first, the others after them in default order. Without a list the numbers decide that the
// transformations carry themselves.
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
	listed := len(order)
	for _, name := range transformations {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	if listed == 0 {
		numbers := s.numbers()
		slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(numbers[a], numbers[b]) })
	}
	return order, nil
}

// numbers returns the places that transformations ask for themselves; lower ones run first, 0 is the default.
func (s Series) numbers() map[string]int {
	m := map[string]int{}
	number := func(name string, order *int) {
		if order != nil {
			m[name] = *order
		}
	}
	if s.Group != nil {
		number("group", s.Group.Order)
	}
	if s.Rate != nil {
		number("rate", s.Rate.Order)
	}
	if s.Aggregate != nil {
		number("aggregate", s.Aggregate.Order)
	}
	if s.Evaluate != nil {
		number("evaluate", s.Evaluate.Order)
	}
	if s.Smooth != nil {
		number("smooth", s.Smooth.Order)
	}
	if s.Downsample != nil {
		number("downsample", s.Downsample.Order)
	}
	if s.Forecast != nil {
		number("forecast", s.Forecast.Order)
	}
	return m
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
	q.Kind, q.Versions = stores[p.kind], p.versions()
	if q.Kind != core.Measured {
		q.Forecast = s.ForecastName
	}
	if s.Cache { // the newest sample of all decides, not the newest in the range
		q.Range, q.NewestFirst, q.Limit = core.AllTime, true, 1
		return
	}
	if len(p.stages) == 0 && s.Limit > 0 && p.filters.idle() {
		q.NewestFirst, q.Limit = !strings.EqualFold(s.Direction, "ASC"), s.Limit
	}
}
