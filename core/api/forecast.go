package api

import (
	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core/query"
)

// forecast reads the forecast of a series query; its values are judged by core/query.
func (o *object) forecast(_ string, v gjson.Result) *query.ForecastSpec {
	f := &query.ForecastSpec{}
	o.read(v, fields{
		"horizon":             into(&f.Horizon, (*object).horizon),
		"autoAggregate":       into(&f.AutoAggregate, (*object).flag),
		"aggregationFunction": into(&f.AggregationFunction, (*object).text),
		"include":             into(&f.Include, (*object).texts),
		"scoreInterval":       into(&f.ScoreInterval, (*object).interval),
		"range":               into(&f.Range, (*object).threshold),
		"timeFilter":          into(&f.TimeFilter, (*object).timeFilter),
		"hw":                  into(&f.HW, (*object).holtWinters),
		"arima":               into(&f.ARIMA, (*object).arima),
		"ssa":                 into(&f.SSA, (*object).ssa),
		"baseline":            into(&f.Baseline, (*object).baseline),
		"order":               optional(&f.Order, (*object).count),
	})
	return f
}

func (o *object) horizon(_ string, v gjson.Result) *query.Horizon {
	h := &query.Horizon{}
	o.read(v, fields{
		"length":    optional(&h.Length, (*object).integer),
		"interval":  into(&h.Interval, (*object).interval),
		"endDate":   into(&h.EndDate, (*object).text),
		"startDate": into(&h.StartDate, (*object).text),
	})
	return h
}

func (o *object) timeFilter(_ string, v gjson.Result) *query.TimeFilter {
	f := &query.TimeFilter{}
	o.read(v, fields{
		"from":     into(&f.From, (*object).text),
		"to":       into(&f.To, (*object).text),
		"calendar": into(&f.Calendar, (*object).calendar),
	})
	return f
}

func (o *object) holtWinters(_ string, v gjson.Result) *query.HoltWinters {
	h := &query.HoltWinters{}
	o.read(v, fields{
		"auto":   optional(&h.Auto, (*object).flag),
		"period": into(&h.Period, (*object).interval),
		"alpha":  into(&h.Alpha, (*object).number),
		"beta":   into(&h.Beta, (*object).number),
		"gamma":  into(&h.Gamma, (*object).number),
	})
	return h
}

func (o *object) arima(_ string, v gjson.Result) *query.ARIMA {
	a := &query.ARIMA{}
	o.read(v, fields{
		"auto":                   optional(&a.Auto, (*object).flag),
		"p":                      optional(&a.P, (*object).integer),
		"autoRegressionInterval": into(&a.Interval, (*object).interval),
		"d":                      optional(&a.D, (*object).integer),
	})
	return a
}

func (o *object) baseline(_ string, v gjson.Result) *query.Baseline {
	b := &query.Baseline{}
	o.read(v, fields{
		"period":   into(&b.Period, (*object).interval),
		"count":    optional(&b.Count, (*object).integer),
		"function": into(&b.Function, (*object).text),
	})
	return b
}

func (o *object) ssa(_ string, v gjson.Result) *query.SSA {
	s := &query.SSA{}
	o.read(v, fields{
		"decompose": inner(fields{
			"eigentripleLimit":       optional(&s.Limit, (*object).integer),
			"method":                 into(&s.Method, (*object).text),
			"windowLength":           into(&s.WindowLength, (*object).number),
			"singularValueThreshold": into(&s.Threshold, (*object).number),
		}),
		"group": inner(fields{
			"auto":   into(&s.Auto, (*object).ssaGroups),
			"manual": inner(fields{"groups": into(&s.Manual, (*object).texts)}),
		}),
		"reconstruct": inner(fields{
			"averagingFunction": into(&s.Averaging, (*object).text),
			"fourier":           optional(&s.Fourier, (*object).flag),
		}),
		"forecast": inner(fields{
			"method": into(&s.ForecastMethod, (*object).text),
			"base":   into(&s.Base, (*object).text),
		}),
	})
	return s
}

// inner makes a reader of an object whose members belong to the one around it.
func inner(known fields) reader {
	return func(o *object, _ string, v gjson.Result) { o.read(v, known) }
}

func (o *object) ssaGroups(_ string, v gjson.Result) *query.SSAGroups {
	g := &query.SSAGroups{}
	o.read(v, fields{
		"count": optional(&g.Count, (*object).integer),
		"stack": optional(&g.Stack, (*object).flag),
		"union": into(&g.Union, (*object).texts),
		"clustering": inner(fields{
			"method": into(&g.Method, (*object).text),
			"params": into(&g.Params, (*object).numbers),
		}),
	})
	return g
}

// numbers reads name -> number.
func (o *object) numbers(member string, v gjson.Result) map[string]float64 {
	all := map[string]float64{}
	o.each(v, func(name string, v gjson.Result) { all[name] = *o.number(member+"."+name, v) })
	return all
}
