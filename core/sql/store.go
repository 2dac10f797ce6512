package sql

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/glob"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// StoreOptions say how the rows of a query are stored.
type StoreOptions struct {
	Newer bool // only samples later than the last one that their series has when the query begins
	Try   bool // nothing is stored: the first rows are returned as commands
}

// Stored is what Store did.
type Stored struct {
	Rows     int64 // of the result
	Samples  int64
	Settings int64 // changes of metrics and entities
	Skipped  int64 // numbers that are NULL, of rows without entity or time, or not newer than the last sample of their series
	Commands []byte
	Receipt  *core.Receipt // of the last batch; nil for none
}

const (
	storedAtOnce = 10_000 // records of a batch
	triedRows    = 10     // that a trial looks at
)

// Store runs a SELECT and turns its rows into series: datetime or time is the time of a row, entity its entity, tags.NAME and tags its series tags, metric.FIELD and
// entity.FIELD settings, and each numeric column a metric of its label. Rows are stored in batches: with an error Stored tells what was stored before it.
func (e *Engine) Store(ctx context.Context, r Request, o StoreOptions) (Stored, error) {
	var s storing
	err := e.lead(ctx, r, func(ctx context.Context, x *session) error {
		if err := x.mayWrite(); err != nil {
			return err
		}
		statement, err := x.parse(ctx)
		if err != nil {
			return err
		}
		query, ok := statement.(*ast.Select)
		if !ok {
			return errNoRows
		}
		if o.Try && (x.request.Limit == 0 || x.request.Limit > triedRows) {
			x.request.Limit = triedRows
		}
		return x.query(ctx, query, func(a *Answer) error {
			s.session, s.options = x, o
			return s.run(ctx, a)
		})
	})
	return s.done, err
}

// storing turns the rows of one query into batches.
type storing struct {
	*session
	options  StoreOptions
	time     int // column
	entity   int // column
	tags     []tagColumn
	numbers  []numberColumn
	settings []settingColumn

	batch *core.Batch
	row   storedRow // the last one
	last  map[string]core.Time
	sent  map[string]string // settings of a metric or entity as they were sent last
	done  Stored
}

type tagColumn struct {
	at   int
	name string // "" = the column holds name=value;name=value
}

type numberColumn struct {
	at     int
	metric string
}

type settingColumn struct {
	at    int
	of    string // metric or entity
	field []ast.Ident
}

// storedRow is what rows of one series have in common.
type storedRow struct {
	entity string
	tags   []string    // cells
	refs   []uint32    // of its series in the batch, one a number
	last   []core.Time // likewise
	known  bool
}

// knownColumns are the labels that mean something without a prefix.
var knownColumns = []string{"time", "datetime", "entity", "tags", "metric"}

// columns finds what each column stands for.
func (s *storing) columns(columns []Column) error {
	s.time, s.entity = -1, -1
	metrics := map[string]bool{}
	for i, c := range columns {
		label := unprefixed(c)
		first, field, dotted := strings.Cut(label, ".")
		first = strings.ToLower(first)
		switch {
		case !dotted && (first == "time" || first == "datetime"):
			if s.time >= 0 {
				return core.Errorf(core.Invalid, "the result has the columns '%s' and '%s': exactly one is the time of a row", columns[s.time].Label, c.Label)
			}
			s.time = i
		case !dotted && first == "entity":
			if s.entity >= 0 {
				return core.Errorf(core.Invalid, "the result has two columns 'entity'")
			}
			s.entity = i
		case first == "tags":
			name := stored(field)
			if slices.ContainsFunc(s.tags, func(t tagColumn) bool { return t.name == name }) {
				return core.Errorf(core.Invalid, "the result has two columns '%s': give one an alias", label)
			}
			s.tags = append(s.tags, tagColumn{i, name})
		case first == "metric" && !dotted:
			return core.Errorf(core.Invalid, "column '%s' cannot be stored: each number is a metric of the label of its column", c.Label)
		case dotted && (first == "metric" || first == "entity"):
			if err := s.setting(i, c.Label, first, field); err != nil {
				return err
			}
		case c.Type.Numeric() || c.Type == column.Null || c.Type == column.Object:
			metric := stored(label)
			if metric == "" {
				return core.Errorf(core.Invalid, "column %d has no name: give it the name of a metric", i+1)
			}
			if metrics[metric] {
				return core.Errorf(core.Invalid, "the result has two columns '%s': give one an alias", label)
			}
			metrics[metric] = true
			s.numbers = append(s.numbers, numberColumn{i, metric})
		default:
			return core.Errorf(core.Invalid, "column '%s' is no number, and only numbers become metrics: leave it out, or name it \"tags.%s\" to make it a series tag", c.Label, label)
		}
	}
	switch {
	case s.time < 0:
		return core.Errorf(core.Invalid, "the result needs a column datetime or time to be stored")
	case s.entity < 0:
		return core.Errorf(core.Invalid, "the result needs a column entity to be stored")
	case len(s.numbers) == 0:
		return core.Errorf(core.Invalid, "the result needs a numeric column to be stored")
	}
	return nil
}

// unprefixed is the label of a column without the name of its table. An alias has none.
func unprefixed(c Column) string {
	prefix, rest, dotted := strings.Cut(c.Label, ".")
	table := c.Table + "."
	switch {
	case !dotted, c.Label != c.Name, strings.ContainsAny(c.Label, "( '"), slices.Contains(knownColumns, strings.ToLower(prefix)):
		return c.Label
	case len(c.Label) > len(table) && strings.EqualFold(c.Label[:len(table)], table): // a name with dots of its own
		return c.Label[len(table):]
	}
	return rest
}

// setting adds the column of a setting.
func (s *storing) setting(at int, label, of, field string) error {
	name, tag, tagged := strings.Cut(field, ".")
	c := settingColumn{at: at, of: of, field: []ast.Ident{{Text: name}}}
	if tagged {
		c.field = append(c.field, ast.Ident{Text: tag})
	}
	switch {
	case knownSetting(of, c.field):
		s.settings = append(s.settings, c)
		return nil
	case slices.Contains(readOnly[of], strings.ToLower(field)):
		return core.Errorf(core.Invalid, "column '%s' is read-only and cannot be stored: leave it out", label)
	}
	return core.Errorf(core.Invalid, "column '%s' cannot be stored: there is no such setting", label)
}

// readOnly are the columns of metrics and entities that the server itself keeps.
var readOnly = map[string][]string{"metric": {"name", "lastinserttime"}, "entity": {"groups"}}

func (s *storing) run(ctx context.Context, a *Answer) error {
	if err := s.columns(a.Columns); err != nil {
		return err
	}
	s.last, s.sent = map[string]core.Time{}, map[string]string{}
	s.begin()
	for b, err := range a.Rows {
		if err != nil {
			return err
		}
		for i := range b.Len {
			s.done.Rows++
			if err := s.add(ctx, b, i); err != nil {
				return err
			}
			if s.batch.Len() >= storedAtOnce {
				if err := s.flush(ctx); err != nil {
					return err
				}
			}
		}
	}
	return s.flush(ctx)
}

func (s *storing) begin() {
	s.batch = &core.Batch{Origin: s.request.Origin}
	s.batch.Origin.Door = core.DoorSQL
	s.row.known = false // its refs were of the batch before
}

func (s *storing) flush(ctx context.Context) (err error) {
	if s.batch.Len() == 0 {
		return nil
	}
	samples, settings := int64(s.batch.Samples.Len()), int64(len(s.batch.Documents))
	if s.options.Try {
		s.done.Commands, err = command.AppendBatch(s.done.Commands, s.batch)
	} else {
		var receipt core.Receipt
		receipt, err = s.Ingest.Ingest(ctx, s.batch)
		s.done.Receipt = &receipt
	}
	if err != nil {
		return err
	}
	s.done.Samples += samples
	s.done.Settings += settings
	s.begin()
	return nil
}

// add takes row i of a batch.
func (s *storing) add(ctx context.Context, b *column.Batch, i int) error {
	at, timed, err := s.instant(b.Columns[s.time].Value(i))
	if err != nil {
		return err
	}
	entity, named := b.Columns[s.entity].Value(i).AsText()
	if entity = stored(entity); !timed || !named || entity == "" {
		s.done.Skipped += int64(len(s.numbers))
		return nil
	}
	if err := s.series(ctx, b, i, entity); err != nil {
		return err
	}
	settings, err := s.settingsOf(b, i)
	if err != nil {
		return err
	}
	some := false
	for n, c := range s.numbers {
		number, ok, err := numberOf(b.Columns[c.at].Value(i))
		if err != nil {
			return core.Errorf(core.Invalid, "row %d: column '%s': %s", s.done.Rows, c.metric, err)
		}
		if !ok || s.options.Newer && at <= s.row.last[n] {
			s.done.Skipped++
			continue
		}
		some = true
		sample := s.batch.Add(s.row.refs[n], at, number.Value)
		if number.Inexact {
			s.batch.Samples.Decimals = append(s.batch.Samples.Decimals, core.DecimalAt{Index: uint32(sample), Decimal: number.Decimal})
		}
		if err := s.addPatch(core.DocChange{Kind: core.DocMetric, Key: c.metric}, settings.metric, settings.metricTags); err != nil {
			return err
		}
	}
	if !some {
		return nil
	}
	return s.addPatch(core.DocChange{Kind: core.DocEntity, Key: s.row.entity}, settings.about, settings.entityTags)
}

// instant is the time of a row; false for none.
func (s *storing) instant(v column.Value) (at core.Time, ok bool, err error) {
	switch {
	case v.Type == column.Null, v.IsNaN():
		return 0, false, nil
	case v.Type == column.String && strings.TrimSpace(v.Text) == "":
		return 0, false, nil
	}
	if at, ok = s.timeOf(v); ok && !at.Storable() {
		return 0, false, core.Errorf(core.Invalid, "row %d: the time %s is outside of what can be stored", s.done.Rows, v.Format())
	}
	if !ok {
		return 0, false, core.Errorf(core.Invalid, "row %d: '%s' is no time: ISO 8601 or milliseconds are expected", s.done.Rows, v.Format())
	}
	return at, true, nil
}

// numberOf is the number of a cell; false for NULL.
func numberOf(v column.Value) (n command.Number, ok bool, err error) {
	switch {
	case v.Type == column.Null:
		return n, false, nil
	case v.Type == column.String:
		if n, ok = command.ParseNumber(strings.TrimSpace(v.Text)); !ok {
			return n, false, errors.New("'" + v.Text + "' is no number")
		}
		return n, true, nil
	case !v.Type.Numeric():
		return n, false, errors.New("'" + v.Format() + "' is no number")
	}
	n.Value = v.Float
	if v.Whole {
		n.Value = float64(v.Int)
	}
	if math.IsInf(n.Value, 0) { // as the store has it
		n.Value = math.NaN()
	}
	n.Decimal, n.Inexact = v.Decimal()
	return n, true, nil
}

// series finds the series of a row. Rows of one series come mostly one after another.
func (s *storing) series(ctx context.Context, b *column.Batch, i int, entity string) error {
	row := &s.row
	same := row.known && row.entity == entity
	if row.tags == nil {
		row.tags = make([]string, len(s.tags))
	}
	for n, t := range s.tags {
		if text, _ := b.Columns[t.at].Value(i).AsText(); text != row.tags[n] {
			row.tags[n], same = strings.Clone(text), false
		}
	}
	if same {
		return nil
	}
	row.entity, row.known = strings.Clone(entity), true
	var tags core.Tags
	for n, t := range s.tags {
		text := row.tags[n]
		switch {
		case t.name != "" && text != "":
			tags = append(tags, core.Tag{Name: t.name, Value: text})
		case t.name == "":
			if err := eachTag(text, func(name, value string) { tags = append(tags, core.Tag{Name: name, Value: value}) }); err != nil {
				return core.Errorf(core.Invalid, "row %d: %s", s.done.Rows, err)
			}
		}
	}
	tags = tags.Normal()
	row.refs, row.last = row.refs[:0], row.last[:0]
	for _, c := range s.numbers {
		key := core.SeriesKey{Metric: c.metric, Entity: row.entity, Tags: tags}
		row.refs = append(row.refs, s.batch.Ref(key))
		if s.options.Newer {
			last, err := s.lastOf(ctx, key)
			if err != nil {
				return err
			}
			row.last = append(row.last, last)
		}
	}
	return nil
}

// lastOf is the time of the newest sample that a series had before anything was stored in it here.
func (s *storing) lastOf(ctx context.Context, key core.SeriesKey) (core.Time, error) {
	canonical := string(key.Append(nil))
	if last, ok := s.last[canonical]; ok {
		return last, nil
	}
	if err := s.memory.Grow(int64(len(canonical)) + answerBytes); err != nil {
		return 0, err
	}
	q := core.SeriesQuery{Scope: core.Scope{All: true}, Metric: key.Metric, Entities: core.EntityFilter{Names: []string{key.Entity}}, ExactTags: true, Range: core.AllTime}
	for _, t := range key.Tags {
		q.Tags = append(q.Tags, core.TagFilter{Name: t.Name, Patterns: []string{glob.Escape(t.Value)}})
	}
	last := core.MinTime - 1
	for info, err := range s.Reader.Keys(ctx, q) {
		if err != nil {
			return 0, err
		}
		last = max(last, info.Last)
	}
	s.last[canonical] = last
	return last, nil
}

// settingsOf is what row i says of its metrics and its entity.
func (s *storing) settingsOf(b *column.Batch, i int) (r row, err error) {
	if len(s.settings) == 0 {
		return r, nil
	}
	r = newRow()
	for _, c := range s.settings {
		if err := r.assignSetting(c.of, c.field, b.Columns[c.at].Value(i)); err != nil {
			return r, core.Errorf(core.Invalid, "row %d: %s", s.done.Rows, err)
		}
	}
	return r, nil
}

// addPatch adds a change of settings, unless the last one of the same document was equal.
func (s *storing) addPatch(of core.DocChange, members, tags map[string]any) error {
	before := len(s.batch.Documents)
	if err := patch(s.batch, of, members, tags); err != nil || len(s.batch.Documents) == before {
		return err
	}
	key, body := string(of.Kind)+" "+of.Key, string(s.batch.Documents[before].Body)
	known, ok := s.sent[key]
	if ok && known == body {
		s.batch.Documents = s.batch.Documents[:before]
		return nil
	}
	if err := s.memory.Grow(int64(len(key)+len(body)) + answerBytes); err != nil {
		return err
	}
	s.sent[key] = body
	return nil
}
