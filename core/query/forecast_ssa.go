package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core/calc/forecast"
)

// SSA are the parameters of `ssa`; nil and empty ones have their defaults.
type SSA struct {
	Limit        *int64 // eigentriples, 0 = chosen
	Method       string // FULL, TRUNCATED, AUTO
	WindowLength *float64
	Threshold    *float64 // percent; negative = not set

	Auto   *SSAGroups
	Manual []string // lists of eigentriples, such as 1;3-5

	Averaging string // AVG, MEDIAN
	Fourier   *bool

	ForecastMethod string // RECURRENT, VECTOR
	Base           string // RECONSTRUCTED, ORIGINAL
}

// SSAGroups says how eigentriples are grouped without being named.
type SSAGroups struct {
	Count  *int64
	Stack  *bool
	Union  []string // lists of groups, such as A;C-D
	Method string   // HIERARCHICAL, XMEANS, NOVOSIBIRSK
	// Params of the clustering: NOVOSIBIRSK has v, the distance from 0 to 1 above which it cuts, 0.5 by default.
	Params map[string]float64
}

const (
	defaultWindow = 50 // percent of the input
	defaultCut    = 0.5
)

// choice reads one of some names, any case; the empty text is the first.
func choice(field, text string, names ...string) (int, error) {
	if blank(text) {
		return 0, nil
	}
	for i, name := range names {
		if strings.EqualFold(strings.TrimSpace(text), name) {
			return i, nil
		}
	}
	return 0, invalid(fmt.Sprintf("%s: %s is none of %s", field, text, strings.Join(names, ", ")))
}

// ssa validates `ssa`.
func (p *forecaster) ssa() (func(context.Context, *regular) ([]outcome, error), error) {
	model := forecast.SSA{Window: defaultWindow, Threshold: -1, Cut: defaultCut}
	s := p.SSA
	for _, read := range []func(*forecast.SSA) error{s.decomposition, s.grouping, s.reconstruction, s.continuation} {
		if err := read(&model); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, in *regular) ([]outcome, error) {
		fit, err := model.Run(ctx, in.input())
		if err != nil {
			return nil, err
		}
		var all []outcome
		for _, g := range fit.Groups {
			o := in.outcome(g.Output, s.echo(model, fit, g, in.known))
			o.group = "/" + g.Name
			all = append(all, o)
		}
		return all, nil
	}, nil
}

func (s *SSA) decomposition(m *forecast.SSA) error {
	// the order of the constants of forecast.Method
	method, err := choice("forecast.ssa.decompose.method", s.Method, "AUTO", "FULL", "TRUNCATED")
	if err != nil {
		return err
	}
	m.Method = forecast.Method(method)
	if n := s.Limit; n != nil {
		if *n < 0 || *n > forecast.MaxTriples {
			return invalid(fmt.Sprintf("forecast.ssa.decompose.eigentripleLimit: %d is not in 0 to %d", *n, forecast.MaxTriples))
		}
		m.Limit = int(*n)
	}
	if w := s.WindowLength; w != nil {
		if !(*w > 0 && *w <= 50) {
			return invalid(fmt.Sprintf("forecast.ssa.decompose.windowLength: %v is not above 0 and up to 50 percent", *w))
		}
		m.Window = *w
	}
	if t := s.Threshold; t != nil {
		if !(*t < 100) {
			return invalid(fmt.Sprintf("forecast.ssa.decompose.singularValueThreshold: %v is not below 100 percent", *t))
		}
		m.Threshold = max(*t, -1)
	}
	return nil
}

func (s *SSA) grouping(m *forecast.SSA) error {
	if s.Manual != nil {
		if s.Auto != nil {
			return invalid("forecast.ssa.group: auto and manual exclude each other")
		}
		if len(s.Manual) == 0 {
			return invalid("forecast.ssa.group.manual.groups is empty")
		}
		for _, text := range s.Manual {
			set, err := forecast.ParseSet(text, forecast.MaxTriples)
			if err != nil {
				return invalid("forecast.ssa.group.manual.groups: " + err.Error())
			}
			m.Groups = append(m.Groups, set)
		}
		return nil
	}
	a := s.Auto
	if a == nil {
		return nil
	}
	if a.Count != nil {
		if *a.Count < 0 || *a.Count > forecast.MaxTriples {
			return invalid(fmt.Sprintf("forecast.ssa.group.auto.count: %d is not in 0 to %d", *a.Count, forecast.MaxTriples))
		}
		m.Count = int(*a.Count)
	}
	m.Stack = a.Stack != nil && *a.Stack
	for _, text := range a.Union {
		set, err := forecast.ParseLetters(text, forecast.MaxTriples)
		if err != nil {
			return invalid("forecast.ssa.group.auto.union: " + err.Error())
		}
		m.Union = append(m.Union, set)
	}
	// the order of the constants of forecast.Clustering
	method, err := choice("forecast.ssa.group.auto.clustering.method", a.Method, "HIERARCHICAL", "XMEANS", "NOVOSIBIRSK")
	m.Clustering = forecast.Clustering(method)
	if v, ok := a.Params["v"]; ok && err == nil {
		if !(v >= 0 && v <= 1) {
			return invalid(fmt.Sprintf("forecast.ssa.group.auto.clustering.params.v: %v is not in 0 to 1", v))
		}
		m.Cut = v
	}
	return err
}

func (s *SSA) reconstruction(m *forecast.SSA) error {
	function, err := choice("forecast.ssa.reconstruct.averagingFunction", s.Averaging, "AVG", "MEDIAN")
	m.Median, m.Direct = function == 1, s.Fourier != nil && !*s.Fourier
	return err
}

func (s *SSA) continuation(m *forecast.SSA) error {
	method, err := choice("forecast.ssa.forecast.method", s.ForecastMethod, "RECURRENT", "VECTOR")
	if err != nil {
		return err
	}
	base, err := choice("forecast.ssa.forecast.base", s.Base, "RECONSTRUCTED", "ORIGINAL")
	m.Vector, m.Original = method == 1, base == 1
	return err
}

// echo shows the effective parameters of one group; n is the length of the input. The window shows what is used where a bound shortened it.
func (s *SSA) echo(m forecast.SSA, fit forecast.SSAFit, g forecast.SSAGroup, n int) []byte {
	o := openObject(nil)
	o.name("decompose")
	d := openObject(o.b)
	d.integer("eigentripleLimit", int64(fit.Triples))
	d.text("method", [...]string{"AUTO", "FULL", "TRUNCATED"}[fit.Method])
	window := m.Window
	if float64(fit.Window+1) < float64(n)*window/100 {
		window = 100 * float64(fit.Window) / float64(n)
	}
	d.number("windowLength", window)
	if m.Threshold >= 0 {
		d.number("singularValueThreshold", m.Threshold)
	}
	o.b = d.close()
	o.name("group")
	o.b = s.echoGroup(o.b, m, g)
	o.name("reconstruct")
	r := openObject(o.b)
	r.text("averagingFunction", chosen(s.Averaging, "AVG"))
	r.boolean("fourier", !m.Direct)
	o.b = r.close()
	o.name("forecast")
	f := openObject(o.b)
	f.text("method", chosen(s.ForecastMethod, "RECURRENT"))
	f.text("base", chosen(s.Base, "RECONSTRUCTED"))
	o.b = f.close()
	return o.close()
}

// echoGroup shows how groups are formed, and the name and eigentriples of this one.
func (s *SSA) echoGroup(b []byte, m forecast.SSA, g forecast.SSAGroup) []byte {
	o := openObject(b)
	if s.Manual != nil {
		o.name("manual")
		inner := openObject(o.b)
		inner.texts("groups", s.Manual)
		o.b = inner.close()
	} else {
		o.name("auto")
		inner := openObject(o.b)
		inner.integer("count", int64(m.Count))
		inner.boolean("stack", m.Stack)
		if s.Auto != nil && s.Auto.Union != nil {
			inner.texts("union", s.Auto.Union)
		}
		inner.name("clustering")
		c := openObject(inner.b)
		c.text("method", [...]string{"HIERARCHICAL", "XMEANS", "NOVOSIBIRSK"}[m.Clustering])
		if m.Clustering == forecast.Novosibirsk {
			c.name("params")
			v := openObject(c.b)
			v.number("v", m.Cut)
			c.b = v.close()
		}
		inner.b = c.close()
		o.b = inner.close()
	}
	o.text("name", g.Name)
	o.name("eigentriples")
	o.b = append(o.b, '[')
	for i, n := range g.Triples {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = strconv.AppendInt(o.b, int64(n), 10)
	}
	o.b = append(o.b, ']')
	return o.close()
}

// chosen is the name that choice accepted, as it is echoed.
func chosen(text, standard string) string {
	if blank(text) {
		return standard
	}
	return strings.ToUpper(strings.TrimSpace(text))
}

// texts appends an array of texts.
func (o *object) texts(name string, values []string) {
	o.name(name)
	o.b = append(o.b, '[')
	for i, v := range values {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendText(o.b, v)
	}
	o.b = append(o.b, ']')
}
