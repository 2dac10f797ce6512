package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// unsafeString is a string that points into b, as the strings of a batch may.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// compareEvery is how many steps pass between two comparisons of everything.
const compareEvery = 16

// Histories appends steps random batches to a backend and to the oracle, and compares what both show, at intervals in full and in between with a
// random query. Equal seeds give equal histories.
func Histories(t *testing.T, seed uint64, steps int, open func() Backend) {
	t.Helper()
	t.Logf("seed %d", seed)
	backend, oracle := open(), memstore.New()
	ours, theirs := NewGenerator(seed), NewGenerator(seed) // a batch belongs to whom it is given: each gets its own
	queries := rand.New(rand.NewPCG(seed, 1))
	for step := range steps {
		r, err := backend.Append(t.Context(), theirs.Next())
		b := ours.Next()
		b.Received = r.Received
		want := oracle.Apply(t.Context(), core.Entry{Position: r.Position, Batch: b})
		if (err == nil) != (want == nil) || err != nil && core.CodeOf(err) != core.CodeOf(want) {
			t.Fatalf("step %d: append %v, the oracle says %v", step, err, want)
		}
		ask(t, backend, oracle, queries)
		if step%compareEvery == compareEvery-1 || step == steps-1 {
			Compare(t, backend, oracle)
		}
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

// Generator makes random batches over a small world, so that they meet: few names, few times.
type Generator struct {
	r     *rand.Rand
	event int
}

// NewGenerator makes a generator; equal seeds give equal batches.
func NewGenerator(seed uint64) *Generator { return &Generator{r: rand.New(rand.NewPCG(seed, 0))} }

// Next returns the next batch. Some are refused by every backend, and some are replays.
func (g *Generator) Next() *core.Batch {
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for range 1 + g.r.IntN(3) {
		switch g.r.IntN(10) {
		case 0, 1, 2, 3:
			g.samples(b)
		case 4:
			b.Messages = append(b.Messages, g.message())
		case 5, 6:
			b.Properties = append(b.Properties, g.property())
		case 7:
			b.Documents = append(b.Documents, g.document())
		case 8:
			b.Alerts = append(b.Alerts, g.alert())
		case 9:
			g.remove(b)
		}
	}
	return b
}

func (g *Generator) pick(names ...string) string { return names[g.r.IntN(len(names))] }

func (g *Generator) entity() string { return g.pick("a", "b", "b-1", "c") }

func (g *Generator) tags() core.Tags {
	var t core.Tags
	for _, name := range []string{"k", "l"} {
		if g.r.IntN(2) == 0 {
			t = append(t, core.Tag{Name: name, Value: g.pick("1", "2", "long value")})
		}
	}
	return t
}

func (g *Generator) key() core.SeriesKey {
	k := core.SeriesKey{Metric: g.pick("m", "n", "versioned"), Entity: g.entity(), Tags: g.tags()}
	switch g.r.IntN(12) {
	case 0:
		return k.In(core.Predicted, g.pick("", "plan"))
	case 1:
		return k.In(core.Deviation, g.pick("", "plan"))
	}
	return k
}

func (g *Generator) time() core.Time { return core.Time(g.r.IntN(40) * 1000) }

func (g *Generator) flags() core.Flags {
	if g.r.IntN(10) == 0 {
		return core.ForRules
	}
	return core.Default
}

func (g *Generator) samples(b *core.Batch) {
	s := &b.Samples
	for range 1 + g.r.IntN(12) {
		i := b.Add(b.Ref(g.key()), g.time(), math.Round(g.r.Float64()*1000)/10)
		flags := g.flags()
		if g.r.IntN(4) > 0 {
			flags |= core.HasValue
		}
		if flags&core.HasValue == 0 || g.r.IntN(4) == 0 {
			s.Texts = append(s.Texts, core.TextAt{Index: uint32(i), Text: g.pick("", "on", "off", "on;\noff")})
			if g.r.IntN(2) == 0 {
				flags |= core.AppendText
			}
		}
		if flags&core.HasValue != 0 && g.r.IntN(5) == 0 {
			d := core.Decimal{Significand: g.r.Int64(), Exponent: int32(g.r.IntN(9) - 4)}
			s.Decimals = append(s.Decimals, core.DecimalAt{Index: uint32(i), Decimal: d})
		}
		if b.Keys[s.Series[i]].Metric == "versioned" && g.r.IntN(3) > 0 {
			s.Versions = append(s.Versions, core.VersionAt{Index: uint32(i), Source: g.pick("", "gui"), Status: g.pick("ok", "bad"), Written: g.time()})
		}
		s.Flags[i] = flags
	}
}

func (g *Generator) message() core.Message {
	return core.Message{Time: g.time(), Entity: g.entity(), Type: g.pick("t", "u"), Source: g.pick("s", "r"), Severity: core.Severity(g.r.IntN(8)),
		Text: g.pick("", "one", "two"), Tags: g.tags(), Flags: g.flags()}
}

func (g *Generator) property() core.Property {
	p := core.Property{PropertyKey: core.PropertyKey{Entity: g.entity(), Type: g.pick("disk", "cpu", core.EntityTagsType), Key: g.tags()}, Time: g.time(), Flags: g.flags()}
	for _, name := range []string{"x", "y", "z"} {
		if g.r.IntN(2) == 0 {
			p.Tags = append(p.Tags, core.Tag{Name: name, Value: g.pick("", "1", "2")})
		}
	}
	return p
}

func (g *Generator) document() core.DocChange {
	c := core.DocChange{Kind: core.DocKind(g.pick("rule", "metric", "entity", "group")), Op: core.DocOp(g.r.IntN(3))}
	switch c.Kind {
	case core.DocMetric:
		c.Key = g.pick("m", "n", "versioned")
	case core.DocEntity:
		c.Key = g.entity()
	case core.DocGroup:
		c.Key = g.pick("g", "h")
	default:
		c.Key = g.pick("r1", "r2")
	}
	if (c.Kind == core.DocMetric || c.Kind == core.DocEntity) && g.r.IntN(4) == 0 {
		c.Op, c.Body = core.DocRename, []byte(g.pick(`{"name":"m"}`, `{"name":"a"}`, `{"name":"c"}`, `{"name":"other"}`, `{"name":""}`))
		return c
	}
	if c.Op != core.DocDelete {
		c.Body = []byte(g.pick(`{"enabled":true,"members":["a","b"]}`, `{"enabled":true,"expression":"tags.x = '1'","tags":{"x":"1"}}`,
			`{"enabled":true,"versioned":true}`, `{"label":null,"enabled":false}`, `{"enabled":7}`, `{broken`))
	}
	return c
}

func (g *Generator) alert() core.AlertChange {
	if g.event == 0 || g.r.IntN(3) > 0 {
		g.event++
	}
	c := core.AlertChange{Event: fmt.Sprint("event-", g.event),
		Kind: core.AlertChangeKind(g.r.IntN(6)), Alert: core.Alert{ID: uint64(g.event), Rule: "r", Value: g.r.Float64()}}
	if g.r.IntN(3) > 0 {
		c.Row = &core.AlertRow{Time: g.time(), Entity: g.entity(), Rule: g.pick("r", "q"), Metric: "m",
			Text: fmt.Sprint(g.event), Type: core.StatusOpen, Tags: g.tags()}
	}
	return c
}

func (g *Generator) remove(b *core.Batch) {
	if g.r.IntN(2) == 0 {
		b.Removed = append(b.Removed, g.property().PropertyKey)
		return
	}
	from := g.time()
	b.Series = append(b.Series, core.SeriesDelete{Key: g.key(), Range: core.Range{Start: from, End: from + g.time()}})
}

// ask compares the answers to one random query.
func ask(t *testing.T, got, want reading, r *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	g := &Generator{r: r}
	scope := core.AllEntities
	if r.IntN(4) == 0 {
		scope = core.Scope{Groups: []string{g.pick("g", "h", "none")}}
	}
	from := g.time()
	span := core.Range{Start: from, End: from + g.time()}
	q := core.SeriesQuery{Scope: scope, Metric: g.pick("", "m", "versioned"), Entities: g.entityFilter(), Range: span, NewestFirst: r.IntN(2) == 0,
		Limit: r.IntN(4), ExactTags: r.IntN(3) == 0, Versions: r.IntN(2) == 0}
	if r.IntN(5) == 0 {
		q.Kind, q.Forecast = core.Kind(1+r.IntN(2)), g.pick("", "plan")
	}
	if r.IntN(2) == 0 {
		q.Tags = []core.TagFilter{{Name: g.pick("k", "l"), Patterns: []string{g.pick("*", "1", "long*")}}}
	}
	check := func(what string, got, want []string) {
		if d := diff(got, want); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	check(fmt.Sprintf("%+v", q), VersionLines(got.Series(ctx, q)), VersionLines(want.Series(ctx, q)))
	mq := core.MessageQuery{Scope: scope, Entities: g.entityFilter(), Type: g.pick("", "t"), MinSeverity: core.Severity(r.IntN(6)),
		Range: span, Limit: r.IntN(4)}
	check(fmt.Sprintf("%+v", mq), linesOf(got.Messages(ctx, mq), messageLine), linesOf(want.Messages(ctx, mq), messageLine))
	pq := core.PropertyQuery{Scope: scope, Entities: g.entityFilter(), Type: g.pick("", "disk", core.EntityTagsType), Key: g.tags(),
		ExactKey: r.IntN(2) == 0, Range: core.AllTime}
	check(fmt.Sprintf("%+v", pq), linesOf(got.Properties(ctx, pq), recordLine), linesOf(want.Properties(ctx, pq), recordLine))
	aq := core.AlertHistoryQuery{Scope: scope, Entities: g.entityFilter(), Rules: []string{g.pick("*", "q")}, Range: span, Limit: r.IntN(4)}
	check(fmt.Sprintf("%+v", aq), linesOf(got.AlertHistory(ctx, aq), rowLine), linesOf(want.AlertHistory(ctx, aq), rowLine))
	entity, group, tag := g.entity(), g.pick("g", "h"), g.pick("k", "l")
	if got.Member(entity, group) != want.Member(entity, group) || got.TagKnown(tag) != want.TagKnown(tag) {
		t.Errorf("member %s of %s or tag %s differ", entity, group, tag)
	}
}

// reading is what can be asked of a Backend.
type reading interface {
	core.Reader
	core.Catalog
	core.Metadata
}

func (g *Generator) entityFilter() core.EntityFilter {
	return [...]core.EntityFilter{{}, {Names: []string{"a", "b"}}, {Patterns: []string{"b*"}}, {Names: []string{"c"}, Patterns: []string{"?"}}, {Group: "g"},
		{Expression: "tags.x != ''"}, {Expression: "hasMetric('m') AND versionDate > createdDate"}, {Names: []string{"a"}, Expression: "memberOf('h')"}}[g.r.IntN(8)]
}

func linesOf[T any](results func(func(T, error) bool), line func(T) string) []string {
	var lines []string
	for one, err := range results {
		lines = append(lines, lineOf(line(one), err))
	}
	return lines
}
