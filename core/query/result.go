package query

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// SeriesType is the store that a series is read from.
type SeriesType string

const (
	History           SeriesType = "HISTORY"
	Forecast          SeriesType = "FORECAST"
	ForecastDeviation SeriesType = "FORECAST_DEVIATION"
	Reconstructed     SeriesType = "RECONSTRUCTED"
)

// stores are those of the types that are stored.
var stores = map[SeriesType]core.Kind{History: core.Measured, Forecast: core.Predicted, ForecastDeviation: core.Deviation}

// TimeFormat is how times of samples are printed.
type TimeFormat uint8

const (
	ISO    TimeFormat = iota // "d":"2021-05-03T10:00:00.000Z"
	Millis                   // "t":1620036000000
)

// Result is one series of an answer. A placeholder is a Result without samples.
type Result struct {
	RequestID string
	Entity    string
	Metric    string
	Tags      core.Tags
	Type      SeriesType
	// ForecastName is the name of a stored forecast, "" for the default one.
	ForecastName string
	Echo         []Part   // what the answer repeats of the transformations, in the order of the answer
	Order        []string // transformations that ran, in order
	Warning      string
	Meta         *Meta
	Samples      Samples

	Decimal   bool // of a metric whose values are decimal numbers: what is computed from them is exact
	Computed  bool // values come from a calculation: printed with a fraction digit
	Format    TimeFormat
	Versioned bool // print versions

	// Grid is the row of times that the samples stand on, without gaps. It is set only for a result that is regular by construction: of an
	// interpolation, of an aggregation or a group with a period, and of what keeps every one of their times. Samples as stored have none.
	Grid *calc.Grid
	// Lineage tells the outputs of earlier stages with several outputs apart: a group merges only results with the same.
	Lineage string
	// Before and After are the samples next to the range, which only an interpolation with outer boundaries loads.
	Before, After *calc.Point
}

// Meta is what addMeta adds to a result, and the placement of a group; absent parts are nil.
type Meta struct {
	Metric *core.Metric
	Entity *core.Entity
	Place  *placed
}

// AppendJSON appends the result as one JSON object.
func (r *Result) AppendJSON(b []byte) []byte {
	o := openObject(b)
	o.optional("requestId", r.RequestID)
	o.text("entity", r.Entity)
	o.text("metric", r.Metric)
	o.tags("tags", r.Tags)
	o.text("type", string(r.Type))
	o.optional("forecastName", r.ForecastName)
	for _, p := range r.Echo {
		o.name(p.Name)
		o.b = append(o.b, p.JSON...)
	}
	if len(r.Order) > 0 {
		o.name("transformationOrder")
		o.b = append(o.b, '[')
		for i, name := range r.Order {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = appendText(o.b, name)
		}
		o.b = append(o.b, ']')
	}
	if r.Meta != nil {
		o.name("meta")
		o.b = r.Meta.appendJSON(o.b)
	}
	o.optional("warning", r.Warning)
	o.name("data")
	o.b = r.appendSamples(o.b)
	return o.close()
}

func (m *Meta) appendJSON(b []byte) []byte {
	o := openObject(b)
	if m.Metric != nil {
		o.name("metric")
		o.b = AppendMetric(o.b, m.Metric, MetaFields{Tags: AllTags})
	}
	if m.Entity != nil {
		o.name("entity")
		o.b = AppendEntity(o.b, m.Entity, MetaFields{Tags: AllTags})
	}
	if m.Place != nil {
		m.Place.appendMeta(&o)
	}
	return o.close()
}

func (r *Result) appendSamples(b []byte) []byte {
	s := &r.Samples
	if len(s.Times) == 0 {
		return append(b, "[]"...)
	}
	texts, decimals, versions := s.Texts, s.Decimals, s.Versions
	head := newSampleHead(r.Format)
	const usual = 48 // bytes of a sample
	if more := usual * len(s.Times); cap(b)-len(b) < more {
		b = slices.Grow(b, max(more, len(b))) // twice the size: a large answer is copied once, and not once for every few series
	}
	b = append(b, '[')
	for i, t := range s.Times {
		b = head.append(b, t)
		if len(decimals) > 0 && int(decimals[0].Index) == i {
			b = r.appendDigits(b, decimals[0].Decimal)
			decimals = decimals[1:]
		} else {
			b = r.appendValue(b, s.Values[i])
		}
		if len(texts) > 0 && int(texts[0].Index) == i {
			b = append(b, `,"x":`...)
			b = appendText(b, texts[0].Text)
			texts = texts[1:]
		}
		if len(versions) > 0 && int(versions[0].Index) == i {
			if r.Versioned {
				b = r.appendVersion(b, versions[0])
			}
			versions = versions[1:]
		}
		b = append(b, '}', ',')
	}
	b[len(b)-1] = ']'
	return b
}

func (r *Result) appendVersion(b []byte, v core.VersionAt) []byte {
	b = append(b, `,"version":{`...)
	b = r.appendTime(b, v.Written)
	o := object{b: b, some: true}
	o.optional("source", v.Source)
	o.optional("status", v.Status)
	return o.close()
}

// appendTime appends the member for a time.
func (r *Result) appendTime(b []byte, t core.Time) []byte {
	if r.Format == Millis {
		return strconv.AppendInt(append(b, `"t":`...), int64(t), 10)
	}
	return appendDate(append(b, `"d":`...), t)
}

// appendDigits appends a number that a double does not give; a computed one has at least one fraction digit.
func (r *Result) appendDigits(b []byte, d core.Decimal) []byte {
	start := len(b)
	b = appendDecimal(b, d)
	if r.Computed && !bytes.ContainsAny(b[start:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

func (r *Result) appendValue(b []byte, v float64) []byte {
	if r.Computed && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return calc.AppendComputed(b, v)
	}
	return appendNumber(b, v)
}
