// Package storetest is the contract of core/store.go in executable form: every backend runs it, core/memstore included. Run states each promise as a
// test with its expected values; Histories compares a backend with the oracle over random histories.
package storetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// Backend is what the suite needs: a store that can be written to through a log.
type Backend interface {
	core.Reader
	core.Catalog
	core.Metadata
	Append(ctx context.Context, b *core.Batch) (core.Receipt, error)
}

// Feed makes a Backend of a Store: a log that numbers batches and gives them a time one millisecond after the one before.
func Feed(s core.Store) Backend { return &feed{Store: s, now: Epoch} }

// Epoch is the time of the first batch of a fed store.
const Epoch core.Time = 1_900_000_000_000

type feed struct {
	core.Store
	position core.Position
	now      core.Time
}

func (f *feed) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	b.Received = f.now + 1
	if err := f.Apply(ctx, core.Entry{Position: f.position + 1, Batch: b}); err != nil {
		return core.Receipt{}, err
	}
	f.position, f.now = f.position+1, b.Received
	return core.Receipt{Position: f.position, Received: f.now}, nil
}

// Run tests every promise of core.Reader and core.Catalog, and what each kind of record does to the state. open returns an empty backend.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Series", seriesTests}, {"Messages", messageTests}, {"Properties", propertyTests}, {"Documents", documentTests},
		{"Groups", groupTests}, {"Metadata", metadataTests}, {"Alerts", alertTests}, {"Batches", batchTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, one := range group.tests {
				t.Run(one.name, func(t *testing.T) { one.run(&suite{T: t, Backend: open(t)}) })
			}
		})
	}
}

type test struct {
	name string
	run  func(s *suite)
}

// suite is one test with its backend. Its methods fail the test.
type suite struct {
	*testing.T
	Backend
}

func (s *suite) append(b *core.Batch) core.Receipt {
	s.Helper()
	r, err := s.Append(s.Context(), b)
	if err != nil {
		s.Fatalf("append: %v", err)
	}
	return r
}

// refused appends a batch that must fail with a code, and of which nothing may be stored.
func (s *suite) refused(b *core.Batch, code core.Code) {
	s.Helper()
	before := Lines(s.Context(), s)
	if _, err := s.Append(s.Context(), b); core.CodeOf(err) != code || err == nil {
		s.Errorf("append: error %v, want code %v", err, code)
	}
	if d := diff(Lines(s.Context(), s), before); d != "" {
		s.Errorf("a refused batch left something behind:\n%s", d)
	}
}

func (s *suite) want(got, want []string) {
	s.Helper()
	if d := diff(got, want); d != "" {
		s.Error(d)
	}
}

// wantSeries compares `metric entity {tags} time=value...` lines.
func (s *suite) wantSeries(q core.SeriesQuery, want ...string) {
	s.Helper()
	s.want(SeriesLines(s.Series(s.Context(), s.full(q))), want)
}

func (s *suite) wantMessages(q core.MessageQuery, want ...string) {
	s.Helper()
	q.Scope, q.Range = scopeOf(q.Scope), rangeOf(q.Range)
	var got []string
	for m, err := range s.Messages(s.Context(), q) {
		got = append(got, lineOf(m.Text, err))
	}
	s.want(got, want)
}

func (s *suite) wantProperties(q core.PropertyQuery, want ...string) {
	s.Helper()
	q.Scope, q.Range = scopeOf(q.Scope), rangeOf(q.Range)
	var got []string
	for r, err := range s.Properties(s.Context(), q) {
		got = append(got, lineOf(recordLine(r), err))
	}
	s.want(got, want)
}

func (s *suite) full(q core.SeriesQuery) core.SeriesQuery {
	q.Scope, q.Range = scopeOf(q.Scope), rangeOf(q.Range)
	return q
}

// scopeOf and rangeOf fill in what most tests do not care about.
func scopeOf(s core.Scope) core.Scope {
	if s.Groups == nil {
		return core.AllEntities
	}
	return s
}

func rangeOf(r core.Range) core.Range {
	if r == (core.Range{}) {
		return core.AllTime
	}
	return r
}

func lineOf(text string, err error) string {
	if err != nil {
		return "error " + core.CodeOf(err).String()
	}
	return text
}

// diff returns the first difference of two lists, with a few lines around it, or "".
func diff(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(lines []string) string {
		return strings.Join(lines[max(0, min(i-2, len(lines))):min(len(lines), i+3)], "\n    ")
	}
	return fmt.Sprintf("line %d of %d differs, want %d lines\n  got\n    %s\n  want\n    %s", i, len(got), len(want), around(got), around(want))
}

// SeriesLines writes blocks as a line a sample. Blocks of one series are put together in ascending order; that they come in the promised order is
// checked: keys ascend, times inside a block ascend, blocks of a series ascend or all descend.
func SeriesLines(blocks iter.Seq2[core.Block, error]) []string { return seriesLines(blocks, 1) }

// VersionLines is SeriesLines for queries that ask for versions: times may be equal.
func VersionLines(blocks iter.Seq2[core.Block, error]) []string { return seriesLines(blocks, 0) }

// seriesLines checks that samples are at least step apart.
func seriesLines(blocks iter.Seq2[core.Block, error], step core.Time) []string {
	var lines []string
	var run []core.Block // of one series
	flush := func() {
		if len(run) > 1 && run[0].Times[0] > run[1].Times[0] {
			slices.Reverse(run)
		}
		last := core.MinTime - 1
		for _, b := range run {
			for i, t := range b.Times {
				if t < last+step {
					lines = append(lines, fmt.Sprintf("time %d after %d is out of order", t, last))
				}
				last = t
				lines = append(lines, sampleLine(&b, i))
			}
		}
		run = nil
	}
	for b, err := range blocks {
		if err != nil {
			flush()
			return append(lines, lineOf("", err))
		}
		if len(run) > 0 {
			if c := run[0].Key.Compare(b.Key); c > 0 {
				lines = append(lines, fmt.Sprintf("key %v after %v is out of order", b.Key, run[0].Key))
			} else if c != 0 {
				flush()
			}
		}
		if len(b.Times) == 0 {
			lines = append(lines, fmt.Sprintf("empty block of %v", b.Key))
			continue
		}
		run = append(run, cloneBlock(b))
	}
	flush()
	return lines
}

// cloneBlock copies what is valid until the next iteration only.
func cloneBlock(b core.Block) core.Block {
	return core.Block{Key: b.Key.Clone(), Times: slices.Clone(b.Times), Values: slices.Clone(b.Values), Texts: slices.Clone(b.Texts),
		Decimals: slices.Clone(b.Decimals), Versions: slices.Clone(b.Versions)}
}

func sampleLine(b *core.Block, i int) string {
	line := fmt.Sprintf("%s %s %s %d=%v", b.Key.Metric, b.Key.Entity, tagLine(b.Key.Tags), b.Times[i], b.Values[i])
	for _, at := range b.Texts {
		if int(at.Index) == i {
			line += fmt.Sprintf(" text %q", at.Text)
		}
	}
	for _, at := range b.Decimals {
		if int(at.Index) == i {
			line += fmt.Sprintf(" decimal %de%d", at.Significand, at.Exponent)
		}
	}
	for _, at := range b.Versions {
		if int(at.Index) == i {
			line += fmt.Sprintf(" version %q %q %d", at.Source, at.Status, at.Written)
		}
	}
	return line
}

func tagLine(t core.Tags) string {
	parts := make([]string, len(t))
	for i, tag := range t {
		parts[i] = tag.Name + "=" + tag.Value
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func messageLine(m core.Message) string {
	return fmt.Sprintf("message %d %s %s %s %v %q %s", m.Time, m.Entity, m.Type, m.Source, m.Severity, m.Text, tagLine(m.Tags))
}

func recordLine(r core.PropertyRecord) string {
	line := fmt.Sprintf("%s %s %s %d", r.Entity, r.Type, tagLine(r.Key), r.Time)
	for _, tag := range r.Tags {
		line += fmt.Sprintf(" %s=%s@%d", tag.Name, tag.Value, tag.Time)
	}
	return line
}

func rowLine(r core.AlertRow) string { return fmt.Sprintf("row %+v", r) }

var allKinds = []core.DocKind{core.DocMetric, core.DocEntity, core.DocGroup, core.DocTable, core.DocCollection, core.DocUser, core.DocUserGroup, core.DocToken,
	core.DocRule, core.DocParser, core.DocCheckpoint, core.DocOutbox, core.DocDeadLetter}

// Lines writes everything that a reader can see, in the promised order: two backends with equal lines hold the same.
func Lines(ctx context.Context, r core.Reader) []string {
	q := core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}
	lines := SeriesLines(r.Series(ctx, q))
	for _, kind := range []core.Kind{core.Measured, core.Predicted, core.Deviation} {
		for _, forecast := range []string{"", "plan"} {
			q := core.SeriesQuery{Scope: q.Scope, Range: q.Range, Versions: true, Kind: kind, Forecast: forecast}
			for _, line := range VersionLines(r.Series(ctx, q)) {
				lines = append(lines, fmt.Sprintf("kind %d %q %s", kind, forecast, line))
			}
		}
	}
	for k, err := range r.Keys(ctx, q) {
		lines = append(lines, lineOf(fmt.Sprintf("key %v last %d", k.Key, k.Last), err))
	}
	for m, err := range r.Messages(ctx, core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		lines = append(lines, lineOf(messageLine(m), err))
	}
	for p, err := range r.Properties(ctx, core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		lines = append(lines, lineOf(recordLine(p), err))
	}
	for a, err := range r.AlertHistory(ctx, core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		lines = append(lines, lineOf(rowLine(a), err))
	}
	for _, kind := range allKinds {
		for d, err := range r.Documents(ctx, core.DocumentQuery{Kind: kind}) {
			lines = append(lines, lineOf(fmt.Sprintf("document %s %s %s", d.Kind, d.Key, d.Body), err))
		}
	}
	if m, ok := r.(core.Metadata); ok {
		lines = append(lines, metadataLines(ctx, m)...)
	}
	return lines
}

// metadataLines writes metrics and entities with the times of their newest samples, and all versions of the entities.
func metadataLines(ctx context.Context, r core.Metadata) []string {
	var lines []string
	for m, err := range r.Metrics(ctx, core.MetaQuery{}) {
		lines = append(lines, lineOf(fmt.Sprintf("metric %+v last %d %v", m.Metric, m.Last, m.Inserted), err))
	}
	for e, err := range r.Entities(ctx, core.MetaQuery{}) {
		lines = append(lines, lineOf(entityLine(e), err))
		if err != nil {
			break
		}
		for _, v := range r.EntityVersions(e.Name) {
			lines = append(lines, fmt.Sprintf("version %+v", v))
		}
	}
	return lines
}

func entityLine(e core.EntityInfo) string {
	return fmt.Sprintf("entity %+v last %d %v", e.Entity, e.Last, e.Inserted)
}

// Compare fails the test when both readers do not show the same.
func Compare(t *testing.T, got, want core.Reader) {
	t.Helper()
	if d := diff(Lines(t.Context(), got), Lines(t.Context(), want)); d != "" {
		t.Fatal(d)
	}
}

// Shorthands for building batches.

func keyOf(metric, entity string, tags ...string) core.SeriesKey {
	return core.SeriesKey{Metric: metric, Entity: entity, Tags: tagsOf(tags...)}
}

// tagsOf takes name, value, name, value.
func tagsOf(pairs ...string) core.Tags {
	var t core.Tags
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, core.Tag{Name: pairs[i], Value: pairs[i+1]})
	}
	return t.Normal()
}

// numbers adds time, value, time, value to a series.
func numbers(b *core.Batch, k core.SeriesKey, pairs ...float64) *core.Batch {
	ref := b.Ref(k)
	for i := 0; i < len(pairs); i += 2 {
		b.Add(ref, core.Time(pairs[i]), pairs[i+1])
	}
	return b
}

// text adds a text-only sample; extra flags are AppendText or none.
func text(b *core.Batch, k core.SeriesKey, at core.TextAt, extra core.Flags) *core.Batch {
	i := b.AddText(b.Ref(k), core.Time(at.Index), at.Text)
	b.Samples.Flags[i] |= extra
	return b
}

func put(kind core.DocKind, key, body string) *core.Batch {
	return documents(core.DocChange{Kind: kind, Key: key, Op: core.DocPut, Body: []byte(body)})
}

func patch(kind core.DocKind, key, body string) *core.Batch {
	return documents(core.DocChange{Kind: kind, Key: key, Op: core.DocPatch, Body: []byte(body)})
}

func drop(kind core.DocKind, key string) *core.Batch {
	return documents(core.DocChange{Kind: kind, Key: key, Op: core.DocDelete})
}

func documents(changes ...core.DocChange) *core.Batch { return &core.Batch{Documents: changes} }
