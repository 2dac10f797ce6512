package query

import (
	"math"
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
	Aggregate *AggregateEcho // of this series; nil when none was asked for
	Order     []string       // transformations that ran, in order
	Warning   string
	Meta      *Meta
	Samples   Samples

	Decimal   bool // of a metric whose values are decimal numbers: what is computed from them is exact
	Computed  bool // values come from a calculation: printed with a fraction digit
	Format    TimeFormat
	Versioned bool // print versions
}

// Meta is what addMeta adds to a result; absent parts are nil.
type Meta struct {
	Metric *core.Metric
	Entity *core.Entity
}

// AppendJSON appends the result as one JSON object.
func (r *Result) AppendJSON(b []byte) []byte {
	o := openObject(b)
	o.optional("requestId", r.RequestID)
	o.text("entity", r.Entity)
	o.text("metric", r.Metric)
	o.tags("tags", r.Tags)
	o.text("type", string(r.Type))
	if r.Aggregate != nil {
		o.name("aggregate")
		o.b = r.Aggregate.appendJSON(o.b)
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
		o.b = AppendMetric(o.b, *m.Metric)
	}
	if m.Entity != nil {
		o.name("entity")
		o.b = AppendEntity(o.b, *m.Entity)
	}
	return o.close()
}

func (r *Result) appendSamples(b []byte) []byte {
	b = append(b, '[')
	s := &r.Samples
	texts, decimals, versions := s.Texts, s.Decimals, s.Versions
	for i, t := range s.Times {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = r.appendTime(b, t)
		b = append(b, `,"v":`...)
		if len(decimals) > 0 && int(decimals[0].Index) == i {
			b = appendDecimal(b, decimals[0].Decimal)
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
		b = append(b, '}')
	}
	return append(b, ']')
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

func (r *Result) appendValue(b []byte, v float64) []byte {
	if !r.Computed || math.IsNaN(v) || math.IsInf(v, 0) {
		return appendNumber(b, v)
	}
	return calc.AppendComputed(b, v)
}
