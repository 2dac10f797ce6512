package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Evaluate asks for what a script makes of several inputs. Mode and Timezone change nothing: scripts of the supported forms do not depend on them.
type Evaluate struct {
	Mode       string // STRICT or NOT_STRICT
	Libs       []string
	Expression string
	Script     string // when there is no expression
	Order      *int
	Timezone   string
}

// maxInputs is what one evaluation may name; the script could not mention many more.
const maxInputs = 100

// evaluation is a validated Evaluate.
type evaluation struct {
	script *script
	names  []string // of the inputs
	inputs []*Plan  // with the stages that run before
}

// validateEvaluation makes the plan of a query with evaluate: each input is a query of its own with the stages before the evaluation, and the plan has
// those after it.
func (s Series) validateEvaluation(m dates.Moment) (*Plan, error) {
	order, err := s.order()
	if err != nil {
		return nil, err
	}
	inputs, err := s.inputs()
	if err != nil {
		return nil, err
	}
	v := &evaluation{}
	at := slices.Index(order, "evaluate")
	for _, q := range inputs {
		p, err := q.without(order[at:]).Validate(m)
		if err != nil {
			return nil, err
		}
		v.names, v.inputs = append(v.names, q.Name), append(v.inputs, p)
	}
	if v.script, err = s.Evaluate.compile(v.names); err != nil {
		return nil, err
	}
	first := inputs[0]
	s.Metric, s.Type, s.Entities, s.Tags = first.Metric, first.Type, first.Entities, first.Tags
	p := &Plan{request: s, evaluation: v}
	if m, err = inZone(m, s.Timezone); err != nil {
		return nil, err
	}
	if p.dates, err = s.Dates.Range(m); err != nil {
		return nil, err
	}
	if err = p.enums(); err != nil {
		return nil, err
	}
	p.request = s.without(order[:at+1])
	if err = p.transform(m); err != nil {
		return nil, err
	}
	p.query.Metric = strings.ToLower(strings.TrimSpace(s.Metric))
	p.names = append(append(slices.Clone(v.inputs[0].names), "EVALUATE"), p.names...)
	return p, nil
}

// inputs returns a query for each input: that of the top level first, when it has a metric or an entity filter.
func (s Series) inputs() ([]Series, error) {
	var inputs []Series
	if !blank(s.Metric) || !s.Entities.Empty() || len(s.Inputs) == 0 {
		top := s
		if blank(top.Name) {
			top.Name = "A"
		}
		inputs = append(inputs, top)
	}
	for _, in := range s.Inputs {
		q := s
		q.Name, q.Metric, q.Type, q.Entities = in.Name, in.Metric, in.Type, in.Entities
		q.Tags, q.TagExpression, q.ExactMatch = in.Tags, in.TagExpression, in.ExactMatch
		inputs = append(inputs, q)
	}
	if len(inputs) > maxInputs {
		return nil, invalid(fmt.Sprintf("evaluate has %d inputs, more than %d", len(inputs), maxInputs))
	}
	seen := map[string]bool{}
	for i := range inputs {
		q := &inputs[i]
		switch q.Name = strings.TrimSpace(q.Name); {
		case q.Name == "":
			return nil, invalid("Series name is required in evaluate")
		case seen[q.Name]:
			return nil, invalid("Series name '" + q.Name + "' is used twice in evaluate")
		}
		seen[q.Name] = true
		q.Limit, q.SeriesLimit, q.Inputs, q.Evaluate = 0, 0, nil, nil
	}
	return inputs, nil
}

// without returns the query without the named transformations.
func (s Series) without(names []string) Series {
	for _, name := range names {
		switch name {
		case "interpolate":
			s.Interpolate = nil
		case "group":
			s.Group = nil
		case "rate":
			s.Rate = nil
		case "aggregate":
			s.Aggregate = nil
		case "smooth":
			s.Smooth = nil
		case "downsample":
			s.Downsample = nil
		case "forecast":
			s.Forecast = nil
		}
	}
	s.Evaluate = nil
	return s
}

func (v *Evaluate) compile(inputs []string) (*script, error) {
	if m := strings.TrimSpace(v.Mode); m != "" && !strings.EqualFold(m, "STRICT") && !strings.EqualFold(m, "NOT_STRICT") {
		return nil, invalid("Unknown evaluate mode: " + v.Mode)
	}
	if slices.ContainsFunc(v.Libs, func(l string) bool { return !blank(l) }) {
		return nil, invalid("evaluate libs are not supported")
	}
	text := v.Expression
	if blank(text) {
		text = v.Script
	}
	if blank(text) {
		return nil, invalid("Evaluate expression is required")
	}
	s, err := compileScript(text, inputs)
	if err != nil {
		return nil, invalid("evaluate: " + err.Error())
	}
	return s, nil
}

// evaluated runs the inputs, then the script, and yields its series.
func (e *execution) evaluated(ctx context.Context) flow {
	return func(yield func(*Result, error) bool) {
		list, err := e.evaluate(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, r := range list {
			if r.Samples.Len() > 0 && !yield(r, nil) {
				return
			}
		}
	}
}

func (e *execution) evaluate(ctx context.Context) ([]*Result, error) {
	v := e.evaluation
	held := e.hold()
	values := make([]*collection, len(v.inputs))
	for i, p := range v.inputs {
		values[i] = &collection{input: true}
		in := &execution{p, e.Source}
		in.Transient = false // a script sees all inputs at once
		if err := in.authorise(in.query.Entities.Names); err != nil {
			return nil, err
		}
		if in.warn() != "" {
			continue // nothing has that name: the input is empty
		}
		for r, err := range in.results(ctx) {
			if err == nil {
				err = held.add(r.Samples.Len())
			}
			if err != nil {
				return nil, err
			}
			if r.Type == "" {
				r.Type = in.kind
			}
			values[i].list = append(values[i].list, r)
		}
	}
	list, err := v.script.run(values)
	if err != nil {
		return nil, invalid("evaluate: " + err.Error())
	}
	return e.distinct(&held, list)
}

// distinct copies what occurs a second time: every result belongs to whoever gets it.
func (e *execution) distinct(h *held, list []*Result) ([]*Result, error) {
	seen := make(map[*Result]bool, len(list))
	for i, r := range list {
		if seen[r] {
			if err := h.add(r.Samples.Len()); err != nil {
				return nil, err
			}
			second := *r
			second.Samples = Samples{}
			second.Samples.add(core.Block{Times: r.Samples.Times, Values: r.Samples.Values, Texts: r.Samples.Texts, Decimals: r.Samples.Decimals, Versions: r.Samples.Versions})
			list[i] = &second
			continue
		}
		seen[r] = true
	}
	return list, nil
}
