package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/glob"
)

// Place asks to divide a group: into at most Count subgroups, or into the entities of Bins, which hold what fits.
type Place struct {
	Count      *float64 // most subgroups
	Constraint string   // boolean text about a subgroup; empty = always true
	Minimize   string   // number text about a subgroup, whose sum is to be least; empty = 0
	Method     string   // greedy_simple or greedy_correlations: both get the exact answer
	Bins       EntityFilter
}

// Bounds of a partition. The contract fixes both.
const (
	maxPlacedSeries = 64
	maxPartitions   = 1_000_000
)

// placement is a validated Place.
type placement struct {
	count                int // 0 = bins
	constraint, minimize placeExpr
	bins                 core.EntityFilter
	moment               dates.Moment // of dates in the expression of bins
}

func (p *Place) plan(m dates.Moment) (*placement, error) {
	if p == nil {
		return nil, nil
	}
	out := &placement{moment: m}
	method := strings.TrimSpace(p.Method)
	if method != "" && !strings.EqualFold(method, "greedy_simple") && !strings.EqualFold(method, "greedy_correlations") {
		return nil, invalid("Unknown place method: " + p.Method)
	}
	var err error
	if out.constraint, err = compilePlace(p.Constraint); err != nil {
		return nil, invalid("place constraint: " + err.Error())
	}
	if out.minimize, err = compilePlace(p.Minimize); err != nil {
		return nil, invalid("place minimize: " + err.Error())
	}
	if !p.Bins.Empty() {
		out.bins, err = p.Bins.Resolve(EscapesAlways)
		return out, err
	}
	if p.Count == nil || !(*p.Count >= 1) {
		return nil, invalid("Place needs a count of at least 1, or entities")
	}
	out.count = int(min(*p.Count, maxPlacedSeries))
	return out, nil
}

func (p *Place) appendJSON(b []byte) []byte {
	o := openObject(b)
	if p.Count != nil {
		o.number("count", *p.Count)
	}
	o.optional("constraint", p.Constraint)
	o.optional("minimize", p.Minimize)
	o.optional("method", p.Method)
	if len(p.Bins.Entities) > 0 {
		o.name("entities")
		o.b = appendTexts(o.b, p.Bins.Entities)
	}
	o.optional("entityGroup", p.Bins.Group)
	o.optional("entityExpression", p.Bins.Expression)
	return o.close()
}

// placed is one subgroup.
type placed struct {
	*members
	bin          string // entity that holds it, "" = none
	score, total float64
}

// appendMeta appends the members of `meta` about the subgroup.
func (p *placed) appendMeta(o *object) {
	o.number("groupScore", p.score)
	o.number("totalScore", p.total)
	labels := make([]string, len(p.list))
	for i, r := range p.list {
		labels[i] = label(r)
	}
	o.text("name", strings.Join(labels, " "))
	o.optional("group-entity", p.bin)
	o.tags("grouping-tags", p.tags)
}

func (p *placement) divide(ctx context.Context, m *grouper, g *members) ([]*placed, error) {
	d := &divider{placement: p, grouper: m, members: g, seen: map[uint64]verdict{}}
	var parts []*placed
	var err error
	if p.count > 0 {
		parts, err = d.partition(ctx)
	} else {
		parts, err = d.pack(ctx)
	}
	total := 0.0
	for _, one := range parts {
		total += one.score
	}
	for _, one := range parts {
		one.total = total
	}
	return parts, err
}

// divider divides one group.
type divider struct {
	*placement
	grouper *grouper
	*members
	seen map[uint64]verdict // by the set of members
}

// verdict is what the texts say about one subgroup.
type verdict struct {
	fits  bool
	score float64
}

// judge computes the texts for a subgroup.
func (d *divider) judge(ctx context.Context, list []*Result, bin core.Tags) (verdict, error) {
	series, _, err := d.grouper.total(ctx, &members{list: list})
	if err != nil {
		return verdict{}, err
	}
	env := &placeEnv{values: series[0].Values, bin: bin}
	for _, r := range list {
		e, _ := d.grouper.Catalog.Entity(r.Entity)
		env.tags = append(env.tags, e.Tags)
	}
	v := verdict{fits: true}
	if d.constraint != nil {
		fits := d.constraint(env)
		v.fits = fits != 0 && !math.IsNaN(fits)
	}
	if d.minimize != nil {
		v.score = d.minimize(env)
	}
	return v, nil
}

func (d *divider) subset(set uint64) []*Result {
	var list []*Result
	for i, r := range d.list {
		if set>>i&1 != 0 {
			list = append(list, r)
		}
	}
	return list
}

// partition tries all partitions into at most count subgroups.
func (d *divider) partition(ctx context.Context) ([]*placed, error) {
	if n := len(d.list); n > maxPlacedSeries {
		return nil, invalid(fmt.Sprintf("place: the group has %d series, more than %d", n, maxPlacedSeries))
	}
	if partitions(len(d.list), d.count) > maxPartitions {
		return nil, invalid(fmt.Sprintf("place: there are more than %d partitions: lower count or narrow the group", maxPartitions))
	}
	s := &partitionSearch{divider: d, best: math.Inf(1)}
	if err := s.try(ctx, 0); err != nil {
		return nil, err
	}
	if s.found == nil {
		return nil, invalid("place: no partition meets the constraint")
	}
	var parts []*placed
	for _, set := range s.found {
		parts = append(parts, &placed{members: &members{tags: d.tags, list: d.subset(set)}, score: d.seen[set].score})
	}
	return parts, nil
}

// partitions counts the partitions of n series into at most k subgroups, up to just beyond the limit.
func partitions(n, k int) int {
	row := make([]int, k+1) // row[j]: partitions of the series so far into exactly j
	row[0] = 1
	for range n {
		for j := k; j >= 1; j-- {
			row[j] = min(j*row[j]+row[j-1], maxPartitions+1)
		}
		row[0] = 0
	}
	total := 0
	for _, c := range row {
		total = min(total+c, maxPartitions+1)
	}
	return total
}

// partitionSearch walks the partitions: series after series goes into one of the subgroups there are, or into a further one.
type partitionSearch struct {
	*divider
	sets  []uint64
	found []uint64
	best  float64
}

func (s *partitionSearch) try(ctx context.Context, next int) error {
	if next == len(s.list) {
		return s.weigh(ctx)
	}
	bit := uint64(1) << next
	for i := range s.sets {
		s.sets[i] |= bit
		if err := s.try(ctx, next+1); err != nil {
			return err
		}
		s.sets[i] &^= bit
	}
	if len(s.sets) == s.count {
		return nil
	}
	s.sets = append(s.sets, bit)
	err := s.try(ctx, next+1)
	s.sets = s.sets[:len(s.sets)-1]
	return err
}

// weigh judges a whole partition.
func (s *partitionSearch) weigh(ctx context.Context) error {
	sum := 0.0
	for _, set := range s.sets {
		v, known := s.seen[set]
		if !known {
			var err error
			if v, err = s.judge(ctx, s.subset(set), nil); err != nil {
				return err
			}
			s.seen[set] = v
		}
		if !v.fits || math.IsNaN(v.score) {
			return nil
		}
		sum += v.score
	}
	if s.found == nil || sum < s.best || sum == s.best && len(s.sets) < len(s.found) {
		s.best, s.found = sum, slices.Clone(s.sets)
	}
	return nil
}

// pack fills one bin after the other with series that keep its constraint; what is left over is a subgroup of its own.
func (d *divider) pack(ctx context.Context) ([]*placed, error) {
	bins, err := d.entities(ctx)
	if err != nil {
		return nil, err
	}
	left := slices.Clone(d.list)
	slices.SortStableFunc(left, (*Result).compare)
	var parts []*placed
	for _, bin := range bins {
		part := &placed{members: &members{tags: d.tags}, bin: bin}
		e, _ := d.grouper.Catalog.Entity(bin)
		var rest []*Result
		for _, r := range left {
			v, err := d.judge(ctx, append(slices.Clone(part.list), r), core.TagsOf(e.Tags))
			if err != nil {
				return nil, err
			}
			if !v.fits {
				rest = append(rest, r)
				continue
			}
			part.list, part.score = append(part.list, r), v.score
		}
		if left = rest; len(part.list) > 0 {
			parts = append(parts, part)
		}
	}
	if len(left) > 0 {
		v, err := d.judge(ctx, left, nil)
		if err != nil {
			return nil, err
		}
		parts = append(parts, &placed{members: &members{tags: d.tags, list: left}, score: v.score})
	}
	return parts, nil
}

// entities lists the bins by name, as far as the caller may read them.
func (d *divider) entities(ctx context.Context) ([]string, error) {
	names, err := d.candidates(ctx)
	if err != nil || d.bins.Expression == "" {
		return names, err
	}
	g, now := d.grouper, func() core.Time { return d.moment.Now }
	source := filter.Source{Reader: g.Reader, Catalog: g.Catalog, Now: now}
	compiler := filter.Compiler{Functions: source.Functions(ctx).Within(g.within()), Zone: d.moment.Zone, Now: now,
		Calendar: d.moment.Calendar, Calendars: d.moment.Calendars}
	expr, err := compiler.Compile(filter.Entities, d.bins.Expression)
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, name := range names {
		entity, _ := g.Catalog.Entity(name)
		yes, err := expr.Match(filter.EntityEnv{Entity: &entity})
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if yes {
			kept = append(kept, name)
		}
	}
	return kept, nil
}

// candidates lists the entities that names, patterns or a group select; all when the expression alone decides.
func (d *divider) candidates(ctx context.Context) ([]string, error) {
	g, f := d.grouper, &d.bins
	switch {
	case f.Group != "":
		return g.members(ctx, f.Group)
	case len(f.Names) > 0 && len(f.Patterns) == 0:
		return slices.DeleteFunc(slices.Clone(f.Names), func(name string) bool {
			_, known := g.Catalog.Entity(name)
			return !known || !g.readable(name)
		}), nil
	}
	patterns := make([]*glob.Pattern, len(f.Patterns))
	for i, p := range f.Patterns {
		patterns[i] = glob.Compile(p)
	}
	var names []string
	readable := g.within()
	for doc, err := range alive(ctx, g.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocEntity})) {
		if err != nil {
			return nil, err
		}
		wanted := len(f.Names)+len(patterns) == 0 || slices.Contains(f.Names, doc.Key) ||
			slices.ContainsFunc(patterns, func(p *glob.Pattern) bool { return p.Match(doc.Key) })
		if wanted && readable(doc.Key) {
			names = append(names, doc.Key)
		}
	}
	return names, nil
}

// placeEnv is what the texts of a placement look at.
type placeEnv struct {
	values []float64           // of the series of the subgroup
	bin    core.Tags           // of the entity that would hold it
	tags   []map[string]string // of the entities of the members
}

func number(text string) float64 {
	n, err := calc.ParseNumber(strings.TrimSpace(text))
	if err != nil {
		return math.NaN()
	}
	return n.Value
}

// placeExpr computes a number; a condition is 1 or 0.
type placeExpr func(env *placeEnv) float64

// placeFunctions are the statistics that the texts know.
var placeFunctions = map[string]func([]float64) float64{
	"max":            func(v []float64) float64 { return new(calc.Sorter).Percentile(v, 100) },
	"min":            func(v []float64) float64 { return new(calc.Sorter).Percentile(v, 0) },
	"sum":            calc.Sum,
	"count":          func(v []float64) float64 { return float64(calc.Count(v)) },
	"avg":            calc.Mean,
	"median":         func(v []float64) float64 { return new(calc.Sorter).Median(v) },
	"median_abs_dev": func(v []float64) float64 { return new(calc.Sorter).MedianAbsDev(v) },
	"stdev": func(v []float64) float64 {
		if calc.Count(v) == 1 {
			return 0
		}
		return calc.StdDev(v)
	},
}

var errPlaceDepth = errors.New("the text is nested too deep")
