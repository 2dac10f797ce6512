package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/exec"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// allMetrics is the table whose columns are metrics.
const allMetrics = "atsd_series"

// deletions is how many deletes one batch of DELETE holds.
const deletions = 10_000

// modify runs a statement that changes data. It returns the receipt of the last batch, nil when there was nothing to change.
func (x *session) modify(ctx context.Context, s ast.Statement) (*core.Receipt, error) {
	if err := x.mayWrite(); err != nil {
		return nil, err
	}
	switch s := s.(type) {
	case *ast.Insert:
		return x.insert(ctx, s.Table, s.Set)
	case *ast.Update:
		set, err := assignments(s.Where, s.Set)
		if err != nil {
			return nil, err
		}
		return x.insert(ctx, s.Table, set)
	case *ast.Delete:
		return x.delete(ctx, s)
	}
	return nil, core.Errorf(core.Unimplemented, "statements of type %T are not known", s)
}

func (x *session) mayWrite() error {
	if x.Ingest == nil || !x.request.Origin.Grants.Roles.Has(core.DataWrite) {
		return core.Errorf(core.Forbidden, "statements that change data need the role %s", strings.Join(core.DataWrite.Names(), ""))
	}
	return nil
}

// assignments adds what a WHERE of `column = literal` terms says to those of SET.
func assignments(where ast.Expr, set []ast.Assignment) ([]ast.Assignment, error) {
	switch e := where.(type) {
	case nil:
		return set, nil
	case *ast.Binary:
		switch name, named := e.L.(*ast.Name); {
		case e.Op == "and":
			set, err := assignments(e.L, set)
			if err != nil {
				return nil, err
			}
			return assignments(e.R, set)
		case e.Op == "=" && named:
			return append(set, ast.Assignment{Column: name, Value: e.R}), nil
		}
	}
	return nil, where.At().Errorf("the WHERE of an UPDATE takes terms of the form column = value, joined by AND")
}

// row is what INSERT and UPDATE write: samples of one time and series tags, and settings.
type row struct {
	entity     string
	time       core.Time
	timed      bool
	tags       core.Tags
	numbers    []metricValue
	text       string
	hasText    bool
	metric     map[string]any // merge patches
	entityTags map[string]any
	about      map[string]any // of the entity
	metricTags map[string]any
}

func newRow() row {
	return row{metric: map[string]any{}, metricTags: map[string]any{}, about: map[string]any{}, entityTags: map[string]any{}}
}

type metricValue struct {
	metric string
	number command.Number
}

func (x *session) insert(ctx context.Context, table string, set []ast.Assignment) (*core.Receipt, error) {
	for _, a := range set {
		if a.Value == nil {
			return nil, ast.Errorf("IllegalArgumentException: No value specified for column '%s'", nameOf(a.Column))
		}
	}
	values, err := x.values(ctx, set)
	if err != nil {
		return nil, err
	}
	r := newRow()
	for i, a := range set {
		if err := x.assign(&r, table, a, values[i]); err != nil {
			return nil, err
		}
	}
	b, err := r.batch(table, x.request.Origin)
	if err != nil {
		return nil, err
	}
	receipt, err := x.Ingest.Ingest(ctx, b)
	return &receipt, err
}

// values evaluates the right sides, which may be any expressions without columns.
func (x *session) values(ctx context.Context, set []ast.Assignment) ([]column.Value, error) {
	s := &ast.Select{}
	for _, a := range set {
		s.Items = append(s.Items, ast.Item{Expr: a.Value})
	}
	q, err := plan.Bind(ctx, s, x.options())
	if err != nil {
		return nil, err
	}
	values := make([]column.Value, len(set))
	for b, err := range exec.Run(ctx, q, x.execution()) {
		if err != nil {
			return nil, err
		}
		for i := range values {
			values[i] = b.Columns[i].Value(0)
		}
	}
	return values, nil
}

func nameOf(n *ast.Name) string {
	parts := make([]string, len(n.Parts))
	for i, p := range n.Parts {
		parts[i] = p.Text
	}
	return strings.Join(parts, ".")
}

// assign takes one column of the statement into the row. A table prefix is left out of names.
func (x *session) assign(r *row, table string, a ast.Assignment, v column.Value) error {
	parts := a.Column.Parts
	if len(parts) > 1 && strings.EqualFold(parts[0].Text, table) && !strings.EqualFold(table, allMetrics) {
		parts = parts[1:]
	}
	first := strings.ToLower(parts[0].Text)
	whole := len(parts) == 1
	switch {
	case whole && first == "entity":
		r.entity = stored(textOf(v))
		return nil
	case whole && (first == "time" || first == "datetime"):
		return x.assignTime(r, a, v)
	case whole && first == "text":
		r.text, r.hasText = textOf(v), v.Type != column.Null && textOf(v) != ""
		return nil
	case whole && first == "tags":
		return at(a.Value, eachTag(textOf(v), func(name, value string) { r.tags = append(r.tags, core.Tag{Name: name, Value: value}) }))
	case first == "tags" && len(parts) == 2:
		if value := textOf(v); value != "" {
			r.tags = append(r.tags, core.Tag{Name: stored(parts[1].Text), Value: value})
		}
		return nil
	case (first == "metric" || first == "entity") && len(parts) > 1:
		if strings.EqualFold(table, allMetrics) || !knownSetting(first, parts[1:]) {
			return a.Column.At().Errorf("Unexpected expression: '%s'", nameOf(a.Column))
		}
		return at(a.Value, r.assignSetting(first, parts[1:], v))
	case strings.EqualFold(table, allMetrics) && whole && (first == "value" || first == "metric"):
		return a.Column.At().Errorf("Unexpected expression: '%s'", nameOf(a.Column)) // predefined, but each metric has a column of its own here
	case strings.EqualFold(table, allMetrics):
		return r.assignNumber(stored(nameOf(&ast.Name{Parts: parts})), a, v)
	case whole && first == "value":
		return r.assignNumber(stored(table), a, v)
	}
	return a.Column.At().Errorf("Unexpected expression: '%s'", nameOf(a.Column))
}

// at gives an error the place of an expression.
func at(e ast.Expr, err error) error {
	if err == nil {
		return nil
	}
	return e.At().Errorf("%s", err)
}

// stored is the form in which names are kept.
func stored(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "_")
}

func textOf(v column.Value) string {
	switch {
	case v.Type == column.Null:
		return ""
	case v.Type == column.String:
		return v.Text
	case v.Type == column.Boolean:
		return strconv.FormatBool(v.Int != 0)
	case v.Type == column.Timestamp:
		return dates.FormatISO(core.Time(v.Int))
	case v.Whole:
		return strconv.FormatInt(v.Int, 10)
	}
	return strconv.FormatFloat(v.Float, 'f', -1, 64)
}

func (x *session) assignTime(r *row, a ast.Assignment, v column.Value) error {
	if r.time, r.timed = x.timeOf(v); r.timed {
		return nil
	}
	text := ast.Text(a.Value)
	if v.Type == column.String {
		text = v.Text
	}
	return a.Value.At().Errorf("Invalid date value: '%s'", text)
}

// timeOf takes a timestamp, whole milliseconds, or a text that is a literal of time.
func (x *session) timeOf(v column.Value) (core.Time, bool) {
	switch {
	case v.Type == column.String:
		t, err := dates.Moment{Now: x.env.Now, Zone: x.env.Zone, Calendars: x.env.Calendars, Calendar: x.env.Calendars.Default()}.ParseLiteral(v.Text)
		return t, err == nil
	case v.Type == column.Timestamp || v.Type.Numeric() && v.Whole:
		return core.Time(v.Int), true
	case v.Type.Numeric() && v.Float == math.Trunc(v.Float) && math.Abs(v.Float) < 1<<53:
		return core.Time(v.Float), true
	}
	return 0, false
}

// assignNumber takes the number of a metric. A literal keeps all its digits. NULL is left out.
func (r *row) assignNumber(metric string, a ast.Assignment, v column.Value) error {
	n := command.Number{Value: v.Float}
	switch {
	case v.Type == column.Null:
		return nil
	case v.Type == column.String:
		var ok bool
		if n, ok = command.ParseNumber(strings.TrimSpace(v.Text)); !ok {
			return a.Value.At().Errorf("'%s' is no number", v.Text)
		}
	case v.Type.Numeric():
		if v.Whole {
			n, _ = command.ParseNumber(strconv.FormatInt(v.Int, 10))
		}
		if exact, ok := command.ParseNumber(literal(a.Value)); ok {
			n = exact
		}
	default:
		return a.Value.At().Errorf("'%s' is no number", textOf(v))
	}
	if math.IsInf(n.Value, 0) {
		return a.Value.At().Errorf("'%s' is out of the range of numbers", ast.Text(a.Value))
	}
	r.numbers = append(r.numbers, metricValue{metric, n})
	return nil
}

// literal is the spelling of a number, with its sign; "" for other expressions.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Literal:
		if e.Kind == ast.Integer || e.Kind == ast.Number {
			return e.Written
		}
	case *ast.Unary:
		if text := literal(e.X); text != "" && e.Op == "-" {
			return "-" + text
		}
	}
	return ""
}

// eachTag reads `name=value;name=value`.
func eachTag(text string, add func(name, value string)) error {
	for pair := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf("'%s' is not of the form name=value;name=value", text)
		}
		if value != "" {
			add(stored(name), value)
		}
	}
	return nil
}

// settingFields are the columns of settings that can be written, in lower case, with the member of the document.
var settingFields = map[string]map[string]string{
	"metric": {"label": "label", "description": "description", "datatype": "dataType", "enabled": "enabled", "persistent": "persistent", "filter": "filter", "interpolate": "interpolate",
		"units": "units", "timezone": "timeZone", "versioning": "versioned", "minvalue": "minValue", "maxvalue": "maxValue", "invalidvalueaction": "invalidAction", "retentionintervaldays": "retentionDays"},
	"entity": {"label": "label", "interpolate": "interpolate", "timezone": "timeZone", "enabled": "enabled"},
}

// knownSetting reports whether a setting of metrics or entities can be written.
func knownSetting(of string, parts []ast.Ident) bool {
	field := strings.ToLower(parts[0].Text)
	return field == "tags" && len(parts) <= 2 || settingFields[of][field] != "" && len(parts) == 1
}

// assignSetting takes a known setting: metric.label, entity.tags.site and the like.
func (r *row) assignSetting(of string, parts []ast.Ident, v column.Value) error {
	patch, tags := r.metric, r.metricTags
	if of == "entity" {
		patch, tags = r.about, r.entityTags
	}
	field := strings.ToLower(parts[0].Text)
	member := settingFields[of][field]
	switch {
	case field == "tags" && len(parts) == 1:
		return eachTag(textOf(v), func(name, value string) { tags[name] = value })
	case field == "tags":
		if value := textOf(v); value != "" {
			tags[stored(parts[1].Text)] = value
		}
		return nil
	case v.Type == column.Null || v.Type == column.String && v.Text == "":
		return nil
	}
	value, err := settingValue(member, textOf(v))
	if err != nil {
		return fmt.Errorf("%s.%s must be %s, not '%s'", of, parts[0].Text, err, textOf(v))
	}
	patch[member] = value
	return nil
}

// settingWords are the settings that take one word of a list, in the case in which they are stored.
var settingWords = map[string][]string{
	"dataType":      {"SHORT", "INTEGER", "LONG", "FLOAT", "DOUBLE", "DECIMAL"},
	"interpolate":   {"LINEAR", "PREVIOUS"},
	"invalidAction": {"NONE", "TRANSFORM", "DISCARD", "RAISE_ERROR", "SET_VERSION_STATUS"},
}

// settingValue returns what a document holds for a text. The error says what the setting must be.
func settingValue(member, text string) (any, error) {
	if words := settingWords[member]; words != nil {
		if word := strings.ToUpper(text); slices.Contains(words, word) {
			return word, nil
		}
		return nil, fmt.Errorf("one of %s", strings.Join(words, ", "))
	}
	switch member {
	case "enabled", "persistent", "versioned":
		switch strings.ToLower(text) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, errors.New("true or false")
	case "minValue", "maxValue":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errors.New("a number")
		}
		return n, nil
	case "retentionDays":
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, errors.New("a whole number of days")
		}
		return n, nil
	case "timeZone":
		if _, err := dates.LoadZone(text); err != nil {
			return nil, errors.New("a time zone")
		}
	}
	return text, nil
}

// batch makes of the row what the pipeline takes.
func (r *row) batch(table string, origin core.Origin) (*core.Batch, error) {
	origin.Door = core.DoorSQL
	b := &core.Batch{Origin: origin}
	switch {
	case r.entity == "":
		return nil, ast.Errorf("IllegalArgumentException: entity is required")
	case !r.timed:
		return nil, ast.Errorf("IllegalArgumentException: Either time or datetime is required")
	case len(r.numbers) == 0 && !r.hasText:
		return nil, ast.Errorf("IllegalArgumentException: Either value or text is required")
	}
	r.tags = r.tags.Normal()
	for _, n := range r.numbers {
		i := b.Add(b.Ref(core.SeriesKey{Metric: n.metric, Entity: r.entity, Tags: r.tags}), r.time, n.number.Value)
		if n.number.Inexact {
			b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: uint32(i), Decimal: n.number.Decimal})
		}
		if r.hasText {
			b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: uint32(i), Text: r.text})
		}
	}
	if len(r.numbers) == 0 {
		if strings.EqualFold(table, allMetrics) {
			return nil, ast.Errorf("IllegalArgumentException: a metric is required: a column of its name with a number")
		}
		b.AddText(b.Ref(core.SeriesKey{Metric: stored(table), Entity: r.entity, Tags: r.tags}), r.time, r.text)
	}
	if err := patch(b, core.DocChange{Kind: core.DocMetric, Key: stored(table)}, r.metric, r.metricTags); err != nil {
		return nil, err
	}
	return b, patch(b, core.DocChange{Kind: core.DocEntity, Key: r.entity}, r.about, r.entityTags)
}

// patch adds the change of a document, if there is any.
func patch(b *core.Batch, of core.DocChange, members, tags map[string]any) error {
	if len(tags) > 0 {
		members["tags"] = tags
	}
	if len(members) == 0 {
		return nil
	}
	var err error
	of.Op = core.DocPatch
	of.Body, err = json.Marshal(members)
	b.Documents = append(b.Documents, of)
	return err
}

// delete removes the samples that a SELECT with the same condition would show, of entities that the caller may write.
func (x *session) delete(ctx context.Context, s *ast.Delete) (*core.Receipt, error) {
	grants := x.request.Origin.Grants
	o := x.options()
	o.Scope = core.Scope{All: grants.WriteAll, Groups: grants.WriteGroups}
	q, err := plan.BindDelete(ctx, s, o)
	if err != nil {
		return nil, err
	}
	origin := x.request.Origin
	origin.Door = core.DoorSQL
	d := deletion{batch: &core.Batch{Origin: origin}, ingest: x.Ingest, memory: x.memory}
	if scan, ok := plan.WholeSeries(q); ok {
		d.intervals = scan.Intervals
	}
	for b, err := range exec.Run(ctx, q, x.execution()) {
		if err != nil {
			return nil, err
		}
		if err := d.rows(ctx, b); err != nil {
			return nil, err
		}
	}
	if err := d.flush(ctx); err != nil {
		return nil, err
	}
	return d.receipt, nil
}

// deletion collects deletes into batches. With intervals a series is deleted in these, otherwise at the times of its rows.
type deletion struct {
	batch     *core.Batch
	ingest    core.Ingester
	memory    *exec.Memory // charged for series
	intervals []plan.Interval
	series    map[string]bool // canonical keys of series that are done, with intervals
	receipt   *core.Receipt
}

// rows takes rows of metric, entity, tags as JSON, time.
func (d *deletion) rows(ctx context.Context, b *column.Batch) error {
	for i := range b.Len {
		text := func(j int) string {
			v := b.Columns[j]
			if v.IsNull(i) {
				return ""
			}
			return v.Strings[v.Index(i)]
		}
		key := core.SeriesKey{Metric: text(0), Entity: text(1)}
		if tags := text(2); tags != "" {
			var m map[string]string
			if err := json.Unmarshal([]byte(tags), &m); err != nil {
				return core.Wrap(core.Internal, err, "tags of a series")
			}
			key.Tags = core.TagsOf(m)
		}
		if d.intervals == nil {
			at := core.Time(b.Columns[3].Ints[b.Columns[3].Index(i)])
			d.batch.Series = append(d.batch.Series, core.SeriesDelete{Key: key.Clone(), Range: core.Range{Start: at, End: at + 1}})
		} else if canonical := string(key.Append(nil)); !d.series[canonical] {
			if d.series == nil {
				d.series = map[string]bool{}
			}
			if err := d.memory.Grow(int64(len(canonical)) + answerBytes); err != nil {
				return err
			}
			d.series[canonical] = true
			for _, in := range d.intervals {
				d.batch.Series = append(d.batch.Series, core.SeriesDelete{Key: key.Clone(), Range: in.Range})
			}
		}
		if len(d.batch.Series) >= deletions {
			if err := d.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *deletion) flush(ctx context.Context) error {
	if len(d.batch.Series) == 0 {
		return nil
	}
	receipt, err := d.ingest.Ingest(ctx, d.batch)
	if err != nil {
		return err
	}
	d.receipt, d.batch = &receipt, &core.Batch{Origin: d.batch.Origin}
	return nil
}
