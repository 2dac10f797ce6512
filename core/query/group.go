package query

import (
	"context"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// Group asks to merge series: all of them into one, or those of each entity and of equal tags.
type Group struct {
	Types       []string
	By          *[]string // nil: one group; empty: one for each entity; else for each entity and values of these tags
	Period      *Period   // nil: values of the same time are merged, unless an aggregation with a period follows
	Interpolate *Interpolation
	Truncate    *bool
	Place       *Place
	Order       *int
}

// groupKinds are the functions that a group may have.
var groupKinds = []calc.Kind{
	calc.KindCount, calc.KindMin, calc.KindMax, calc.KindAvg, calc.KindSum, calc.KindPercentile, calc.KindStdDev, calc.KindMedianAbsDev, calc.KindFirst,
	calc.KindLast, calc.KindMinValueTime, calc.KindMaxValueTime, calc.KindDetail,
}

func (g *Group) stage(s setting) (stage, error) {
	c := calc.Grouping{Range: s.Range, Truncate: g.Truncate != nil && *g.Truncate}
	if len(g.Types) == 0 {
		return stage{}, invalid("Group type is required")
	}
	for _, name := range g.Types {
		f, err := calc.ParseFunction(name)
		if err != nil {
			return stage{}, invalid(err.Error())
		}
		if !slices.Contains(groupKinds, f.Kind) {
			return stage{}, invalid("function " + f.String() + " can not be used in group")
		}
		c.Functions = append(c.Functions, f)
	}
	if err := g.periods(&c, s); err != nil {
		return stage{}, err
	}
	if g.Interpolate != nil {
		fill, err := g.Interpolate.resolve()
		if err != nil {
			return stage{}, err
		}
		c.Fill = fill
	}
	p, err := g.Place.plan(s.Moment)
	if err != nil {
		return stage{}, err
	}
	return stage{name: "GROUP", run: func(ctx context.Context, e *execution, in flow) flow {
		return func(yield func(*Result, error) bool) {
			m := &grouper{Group: g, Grouping: c, execution: e, place: p, yield: yield, held: e.hold()}
			if err := m.run(ctx, in); err != nil {
				yield(nil, err)
			}
		}
	}}, nil
}

func (g *Group) periods(c *calc.Grouping, s setting) error {
	p := g.Period
	if p == nil {
		p = s.Inherited
	}
	if p == nil {
		return nil
	}
	period, err := p.resolve(s.Moment)
	if err != nil {
		return err
	}
	if err := period.Validate(); err != nil {
		return invalid(err.Error())
	}
	c.Period = period
	return nil
}

// merges reports whether series of different entities become one.
func (g *Group) merges() bool { return g != nil && g.By == nil }

// tags returns the tags of the group that a series with these tags belongs to.
func (g *Group) tags(of core.Tags) core.Tags {
	var tags core.Tags
	if g.By != nil {
		for _, name := range *g.By {
			name = strings.ToLower(strings.TrimSpace(name))
			if v, ok := of.Get(name); ok {
				tags = append(tags, core.Tag{Name: name, Value: v})
			}
		}
	}
	return tags.Normal()
}

// grouper collects members and merges them when all of a group are known.
type grouper struct {
	*Group
	calc.Grouping
	*execution
	place  *placement
	yield  func(*Result, error) bool
	held   held
	groups []*members // of the current entity, or of all
	index  map[string]*members
}

// members are the series of one group.
type members struct {
	tags core.Tags
	list []*Result
}

// errStopped ends a stage whose reader wants no more.
var errStopped = core.Errorf(core.Internal, "the reader of a stage has left")

func (m *grouper) run(ctx context.Context, in flow) error {
	entity := ""
	for r, err := range alive(ctx, in) {
		if err != nil {
			return err
		}
		if m.By != nil && r.Entity != entity {
			if err := m.flush(ctx); err != nil {
				return stopped(err)
			}
			entity = r.Entity
		}
		if r.Samples.Len() == 0 {
			continue // no member
		}
		if err := m.held.add(r.Samples.Len()); err != nil {
			return err
		}
		m.join(r)
	}
	return stopped(m.flush(ctx))
}

// stopped turns the end that the reader wanted into none.
func stopped(err error) error {
	if err == errStopped {
		return nil
	}
	return err
}

// join adds a series to its group: of the same metric, tags, store, and output of earlier stages.
func (m *grouper) join(r *Result) {
	tags := m.tags(r.Tags)
	k := string(core.SeriesKey{Metric: r.Metric, Tags: tags}.Append(nil)) + string(r.Type) + r.Lineage
	if m.index == nil {
		m.index = map[string]*members{}
	}
	if m.index[k] == nil {
		m.index[k] = &members{tags: tags}
		m.groups = append(m.groups, m.index[k])
	}
	m.index[k].list = append(m.index[k].list, r)
}

// flush merges the collected groups, in the order of their tags.
func (m *grouper) flush(ctx context.Context) error {
	slices.SortStableFunc(m.groups, func(a, b *members) int { return a.tags.Compare(b.tags) })
	for _, g := range m.groups {
		if err := m.divide(ctx, g); err != nil {
			return err
		}
	}
	m.groups, m.index = nil, nil
	m.held.count = 0
	return nil
}

// divide merges one group, or the subgroups that a placement makes of it.
func (m *grouper) divide(ctx context.Context, g *members) error {
	if m.place == nil {
		return m.merge(ctx, g, nil)
	}
	parts, err := m.place.divide(ctx, m, g)
	for _, p := range parts {
		if err == nil {
			err = m.merge(ctx, p.members, p)
		}
	}
	return err
}

// merge yields the series of one group: one for each function, and each of its members for DETAIL.
func (m *grouper) merge(ctx context.Context, g *members, placed *placed) error {
	series, grid, err := m.total(ctx, g)
	if err != nil {
		return err
	}
	first := g.list[0]
	for i, s := range series {
		name := strings.ToUpper(strings.TrimSpace(m.Types[i]))
		if m.Functions[i].Kind == calc.KindDetail {
			for _, r := range g.list {
				out := *r
				out.Echo = with(r.Echo, "group", m.appendJSON(nil, name, []*Result{r}, placed))
				out.Lineage += "/" + name
				if !m.yield(&out, nil) {
					return errStopped
				}
			}
			continue
		}
		if len(s.Times) == 0 {
			continue
		}
		out := &Result{Entity: first.Entity, Metric: first.Metric, Tags: g.tags, Type: first.Type, Decimal: first.Decimal, Lineage: first.Lineage + "/" + name}
		out.Echo = with(first.Echo, "group", m.appendJSON(nil, name, g.list, placed))
		if m.merges() {
			out.Entity = m.request.Entities.named()
			out.Echo = m.echoFilter(out.Echo)
		}
		if placed != nil {
			out.Meta = &Meta{Place: placed}
		}
		out.compute(s, grid)
		if !m.yield(out, nil) {
			return errStopped
		}
	}
	return nil
}

// total computes the functions over the members of a group.
func (m *grouper) total(ctx context.Context, g *members) ([]calc.Series, *calc.Grid, error) {
	c := m.Grouping
	inputs := make([]calc.Series, len(g.list))
	for i, r := range g.list {
		inputs[i] = calc.Series{Times: r.Samples.Times, Values: r.Samples.Values, Decimals: r.Samples.Decimals}
		c.Decimal = c.Decimal || r.Decimal
		if reach := r.reach(m.Range, c.Period); reach.End > c.Range.End {
			c.Range = reach
		}
	}
	series, grid, err := calc.Group(ctx, c, inputs)
	if err != nil && ctx.Err() == nil {
		err = invalid(err.Error())
	}
	return series, grid, err
}

// echoFilter repeats which entities were merged, where no single name says it.
func (m *grouper) echoFilter(parts []Part) []Part {
	switch f := m.request.Entities; {
	case !blank(f.Entity):
	case len(m.query.Entities.Names)+len(m.query.Entities.Patterns) > 0:
		parts = with(parts, "entities", appendTexts(nil, f.Entities))
	case f.Group != "":
		parts = with(parts, "entityGroup", appendText(nil, f.Group))
	}
	return parts
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, text)
	}
	return append(b, ']')
}

// appendJSON appends what was sent, with the function of one series and the members that it was made of.
func (g *Group) appendJSON(b []byte, function string, list []*Result, p *placed) []byte {
	o := openObject(b)
	o.text("type", function)
	o.order(g.Order)
	if g.By != nil {
		o.name("groupByEntityAndTags")
		o.b = appendTexts(o.b, *g.By)
	}
	if g.Period != nil {
		o.name("period")
		o.b = g.Period.appendJSON(o.b)
	}
	if g.Interpolate != nil {
		o.name("interpolate")
		o.b = g.Interpolate.appendJSON(o.b)
	}
	if g.Truncate != nil {
		o.boolean("truncate", *g.Truncate)
	}
	if g.Place != nil {
		o.name("place")
		o.b = g.Place.appendJSON(o.b)
	}
	if p != nil {
		o.number("groupScore", p.score)
		o.number("totalScore", p.total)
	}
	o.name("series")
	o.b = append(o.b, '[')
	for i, r := range list {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		inner := openObject(o.b)
		inner.text("entity", r.Entity)
		inner.tags("tags", r.Tags)
		inner.text("label", label(r))
		o.b = inner.close()
	}
	o.b = append(o.b, ']')
	return o.close()
}

// label names a series for people: entity:tag=value,tag=value.
func label(r *Result) string {
	text := r.Entity
	for i, t := range r.Tags {
		separator := ","
		if i == 0 {
			separator = ":"
		}
		text += separator + t.Name + "=" + t.Value
	}
	return text
}
