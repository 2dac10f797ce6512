package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is hh:mm of 2024-03-04 UTC, a Monday.
func at(clock string) core.Time {
	t, err := time.Parse("2006-01-02 15:04", "2024-03-04 "+clock)
	if err != nil {
		panic(err)
	}
	return core.TimeOf(t)
}

func iso(text string) core.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return core.TimeOf(t)
}

// loader collects a batch.
type loader struct{ batch core.Batch }

func (l *loader) sample(key core.SeriesKey, t core.Time, v float64, texts ...string) {
	s := &l.batch.Samples
	ref := l.batch.Ref(key)
	s.Series, s.Times, s.Values, s.Flags = append(s.Series, ref), append(s.Times, t), append(s.Values, v), append(s.Flags, core.Stored|core.HasValue)
	for _, text := range texts {
		s.Texts = append(s.Texts, core.TextAt{Index: uint32(s.Len() - 1), Text: text})
	}
}

func (l *loader) document(kind core.DocKind, key string, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	l.batch.Documents = append(l.batch.Documents, core.DocChange{Kind: kind, Key: key, Op: core.DocPut, Body: body})
}

func (l *loader) store(t testing.TB) *memstore.Store {
	t.Helper()
	s := memstore.New()
	l.batch.Origin = core.SystemOrigin(0)
	if err := s.Apply(t.Context(), core.Entry{Position: 1, Batch: &l.batch}); err != nil {
		t.Fatal(err)
	}
	return s
}

func key(metric, entity string, tags ...string) core.SeriesKey {
	k := core.SeriesKey{Metric: metric, Entity: entity}
	for i := 0; i < len(tags); i += 2 {
		k.Tags = append(k.Tags, core.Tag{Name: tags[i], Value: tags[i+1]})
	}
	k.Tags = k.Tags.Normal()
	return k
}

// example is the data of appendix A.0 of the contract.
func example(t testing.TB) *memstore.Store {
	t.Helper()
	var l loader
	metric := func(name string, of core.DataType) core.Metric {
		m := core.NewMetric(name, 1)
		m.DataType = of
		return m
	}
	flow := metric("flow", core.TypeDouble)
	flow.Label, flow.Units, flow.Tags = "Flow rate", "l/min", map[string]string{"group": "hydraulics"}
	state := metric("state", core.TypeFloat)
	state.Interpolate = "PREVIOUS"
	for _, m := range []core.Metric{flow, metric("level", core.TypeLong), metric("temp", core.TypeDouble), state, metric("odo", core.TypeDouble), metric("daily", core.TypeDouble)} {
		l.document(core.DocMetric, m.Name, m)
	}
	l.document(core.DocEntity, "pump-1", core.Entity{Name: "pump-1", Enabled: true, Label: "Pump One", TimeZone: "America/New_York", Created: 1,
		Tags: map[string]string{"site": "North", "type": "centrifugal"}})
	l.document(core.DocEntity, "pump-2", core.Entity{Name: "pump-2", Enabled: true, Created: 1, Tags: map[string]string{"site": "South"}})
	for _, s := range []struct {
		key    core.SeriesKey
		clocks string
		values []float64
	}{
		{key("flow", "pump-1"), "10:00 10:02 10:05 10:11", []float64{10, 14, 20, 8}},
		{key("flow", "pump-2"), "10:00 10:09", []float64{3, 7.5}},
		{key("level", "pump-1", "tank", "A"), "10:00 10:05", []float64{100, 90}},
		{key("level", "pump-1", "side", "left", "tank", "B"), "10:00 10:05", []float64{55, 65}},
		{key("level", "valve-9"), "10:05", []float64{7}},
		{key("temp", "pump-1"), "10:00 10:05 10:10", []float64{21.5, 22, 23}},
		{key("temp", "pump-2"), "10:00", []float64{30}},
		{key("odo", "pump-1"), "10:00 10:04 10:06 10:09", []float64{5, 9, 2, 6}},
	} {
		for i, clock := range strings.Fields(s.clocks) {
			l.sample(s.key, at(clock), s.values[i])
		}
	}
	l.sample(key("flow", "pump-2"), at("10:05"), math.NaN(), "sensor fault")
	for clock, text := range map[string]string{"10:01": "idle", "10:04": "run", "10:10": "idle"} {
		l.sample(key("state", "pump-1"), at(clock), math.NaN(), text)
	}
	for i, when := range []string{"2024-01-30T12:00:00Z", "2024-01-31T23:30:00Z", "2024-02-01T00:30:00Z", "2024-02-29T10:00:00Z", "2024-03-01T00:00:00Z"} {
		l.sample(key("daily", "plant"), iso(when), float64(i+1))
	}
	return l.store(t)
}

// facts knows the entities of a store, all of which may be read.
type facts struct{ *memstore.Store }

func (f facts) Lookup(string, string) (string, bool, bool, error)        { return "", false, false, nil }
func (f facts) Collection(string) ([]string, bool, error)                { return nil, false, nil }
func (f facts) Metrics(string) ([]string, error)                         { return nil, nil }
func (f facts) Property(string, string, core.Time, bool) (string, error) { return "", nil }

func (f facts) Entity(name string, _ *core.Time) (core.Entity, bool, error) {
	e, ok := f.Store.Entity(name)
	return e, ok, nil
}

func (f facts) Groups(entity string) ([]string, error) {
	return map[string][]string{"pump-1": {"north", "pumps"}, "pump-2": {"pumps"}}[entity], nil
}

func environment(s *memstore.Store) *expr.Env {
	return &expr.Env{Now: at("12:00"), Zone: time.UTC, ServerZone: time.UTC, Facts: facts{s}}
}

// run1 runs a plan and returns its rows as texts, the cells of a row joined by blanks.
func run1(t testing.TB, s *memstore.Store, root plan.Operator, change ...func(*Config)) []string {
	t.Helper()
	rows, err := tryRun(t.Context(), s, root, change...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func tryRun(ctx context.Context, s *memstore.Store, root plan.Operator, change ...func(*Config)) (rows []string, err error) {
	c := Config{Reader: s, Catalog: s, Metadata: s, Memory: NewMemory(64 << 20), Workers: 2}
	for _, f := range change {
		f(&c)
	}
	for b, err := range Run(ctx, &plan.Query{Root: root, Env: environment(s)}, c) {
		if err != nil {
			return rows, err
		}
		for i := range b.Len {
			var cells []string
			for _, v := range b.Columns {
				cells = append(cells, cell(v, i))
			}
			rows = append(rows, strings.Join(cells, " "))
		}
	}
	if used := c.Memory.Used(); used != 0 {
		return rows, fmt.Errorf("%d bytes of memory were not given back", used)
	}
	return rows, nil
}

// cell is a value as text: instants of the day of the example as @hh:mm, NULL as -.
func cell(v *column.Vector, i int) string {
	x := v.Value(i)
	switch {
	case x.IsNull():
		return "-"
	case x.Type == column.Timestamp:
		if at := core.Time(x.Int).Std(); at.Format("2006-01-02") == "2024-03-04" {
			return at.Format("@15:04")
		}
		return core.Time(x.Int).Std().Format("2006-01-02T15:04")
	case x.Type == column.String:
		return x.Text
	case x.Type == column.Boolean:
		return strconv.FormatBool(x.Int != 0)
	case x.Whole:
		return strconv.FormatInt(x.Int, 10)
	case x.Text != "":
		return x.Text
	}
	return strconv.FormatFloat(x.Float, 'f', -1, 64)
}

func want(t testing.TB, got []string, rows ...string) {
	t.Helper()
	if !slices.Equal(got, rows) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(rows, "\n  "))
	}
}

// Columns of scans in the tests, in this order: those that every scan has, then value, text and others.
const (
	valueColumn = plan.ScanColumns + iota
	textColumn
	furtherColumn
)

// scanOf is a scan of metrics over all of time; times are timestamps.
func scanOf(metrics ...string) *plan.Scan {
	return &plan.Scan{Metrics: metrics, Scope: core.AllEntities, Intervals: []plan.Interval{{Range: core.AllTime}}, Needs: plan.Needs{Value: true, Text: true},
		Columns: []plan.Source{{Kind: plan.SourceTime, Type: column.Timestamp}, {Kind: plan.SourceMetric, Type: column.String}, {Kind: plan.SourceEntity, Type: column.String},
			{Kind: plan.SourceTags, Type: column.String}, {Kind: plan.SourceValue, Type: column.Double}, {Kind: plan.SourceText, Type: column.String}}}
}

func of(entity string, s *plan.Scan) *plan.Scan {
	s.Entities.Names = []string{entity}
	return s
}

// within bounds a scan by intervals: pairs of times.
func within(s *plan.Scan, times ...core.Time) *plan.Scan {
	s.Intervals = nil
	for i := 0; i < len(times); i += 2 {
		s.Intervals = append(s.Intervals, plan.Interval{Range: core.Range{Start: times[i], End: times[i+1]}, HasFrom: true, HasTo: true})
	}
	return s
}

// more adds a column to a scan and returns its place.
func more(s *plan.Scan, kind plan.SourceKind, name string, of column.Type) int {
	s.Columns = append(s.Columns, plan.Source{Kind: kind, Name: name, Type: of})
	return len(s.Columns) - 1
}

// pick projects columns.
func pick(in plan.Operator, columns ...int) *plan.Project {
	p := &plan.Project{In: in}
	for _, c := range columns {
		p.Exprs = append(p.Exprs, place{c, column.Null})
	}
	return p
}

// function is an expression that a test makes of one row at a time.
type function struct {
	of   column.Type
	make func(row func(int) column.Value) column.Value
}

func (f function) Type() column.Type { return f.of }
func (f function) Clone() expr.Node  { return f }

func (f function) Eval(_ *expr.Env, in *column.Batch) (*column.Vector, error) {
	b := column.NewBuilder(f.of)
	for i := range in.Len {
		b.Append(f.make(func(c int) column.Value { return in.Columns[c].Value(i) }))
	}
	return b.Vector(), nil
}

// valueAbove is value > limit.
type valueAbove struct {
	column int
	limit  float64
}

func (f valueAbove) Type() column.Type { return column.Boolean }
func (f valueAbove) Clone() expr.Node  { return f }

func (f valueAbove) Eval(_ *expr.Env, in *column.Batch) (*column.Vector, error) {
	out := &column.Vector{Type: column.Boolean, Len: in.Len, Ints: make([]int64, in.Len)}
	for i := range in.Len {
		if in.Columns[f.column].Float(i) > f.limit {
			out.Ints[i] = 1
		}
	}
	return out, nil
}

func (f valueAbove) Bounds(column int) (low, high float64, ok bool) {
	return f.limit, math.Inf(1), column == f.column
}
