package api

import (
	"cmp"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/cells"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/query"
)

// exportSettings are the members of the parameter `settings` of an export by URL.
type exportSettings struct {
	metric, entity, group, expression, form string // m, e, g, ex, eft
	tags                                    map[string][]string
	start, end, interval                    string // st, et, si
	limit                                   int    // l: rows of the whole table; 0 = all
	format, kind, forecast                  string // f, t, fn
	period, fill                            string // ai, i
	functions                               []string
	precision                               int64  // np: fraction digits; -1 = as stored
	dateFormat, zone                        string // df, tz
	text, versions, onlyRevised, meta       bool   // tc, v, ro, am
	versionFilter, valueFilter              string // rf, vf
	unfiltered                              *bool  // tglftr, false of which turns the filters off
	entityTags, seriesTags                  []string
}

// maxPrecision is how many fraction digits may be asked for; a double never has more that mean something.
const maxPrecision = 20

// export answers with the samples of a metric as a table.
func (c *call) export() error {
	s, err := c.exportSettings()
	if err != nil {
		return err
	}
	moment := c.moment()
	moment.Zone = s.location(c.server.Zone)
	request, err := s.request(moment)
	if err != nil {
		return err
	}
	plan, err := request.Validate(moment)
	if err != nil {
		return err
	}
	t := exportTable{exportSettings: s, call: c}
	if t.format, err = newExportDates(s.dateFormat, moment); err != nil {
		return err
	}
	if s.versionFilter != "" && s.versions {
		compiler := filter.Compiler{Zone: moment.Zone, Now: func() core.Time { return moment.Now }}
		if t.versionFilter, err = compiler.Compile(filter.Versions, s.versionFilter); err != nil {
			return err
		}
	}
	if err := t.read(plan); err != nil {
		return err
	}
	if strings.EqualFold(s.format, "HTML") {
		t.rows = htmlTable{}
		return t.send("text/html;charset=UTF-8")
	}
	t.rows = csvTable{}
	c.Header().Set("Content-Disposition", attachment(s.metric+".csv"))
	return t.send(csvType)
}

// exportSettings reads the parameter. Some clients encode it twice: then a plus sign stands for a blank.
func (c *call) exportSettings() (exportSettings, error) {
	s := exportSettings{precision: -1}
	text := strings.TrimSpace(c.values.Get("settings"))
	if text == "" {
		return s, core.Errorf(core.Invalid, "IllegalArgumentException: settings is required")
	}
	if scanJSON(text, c.server.Limits.Depth) != nil {
		text = strings.ReplaceAll(text, "+", " ") // between the members
	}
	if err := scanJSON(text, c.server.Limits.Depth); err != nil {
		return s, err
	}
	var o object
	o.read(gjson.Parse(text), s.fields())
	s.functions = distinctFunctions(s.functions)
	if o.err != nil {
		return s, o.err
	}
	return s, s.check()
}

func (s *exportSettings) fields() fields {
	f := fields{
		"ai": into(&s.period, (*object).text), "a": into(&s.functions, (*object).texts), "np": into(&s.precision, (*object).integer),
		"tc": into(&s.text, (*object).flag), "v": into(&s.versions, (*object).flag), "ro": into(&s.onlyRevised, (*object).flag),
		"am": into(&s.meta, (*object).flag), "te": into(&s.entityTags, (*object).texts), "ost": into(&s.seriesTags, (*object).texts),
		"l": into(&s.limit, (*object).count), "tglftr": optional(&s.unfiltered, (*object).flag),
		"tags": func(o *object, name string, v gjson.Result) { s.tags = o.exportTags(name, v) },
	}
	for name, field := range map[string]*string{"m": &s.metric, "e": &s.entity, "g": &s.group, "ex": &s.expression, "eft": &s.form, "st": &s.start,
		"et": &s.end, "si": &s.interval, "f": &s.format, "t": &s.kind, "fn": &s.forecast, "i": &s.fill, "df": &s.dateFormat, "tz": &s.zone,
		"rf": &s.versionFilter, "vf": &s.valueFilter} {
		f[name] = func(o *object, name string, v gjson.Result) { *field = strings.TrimSpace(o.text(name, v)) }
	}
	return f
}

// exportTags reads {"k":name,"v":value} elements. A plus sign in a value may stand for a blank, so that both are looked for.
func (o *object) exportTags(member string, v gjson.Result) map[string][]string {
	tags := map[string][]string{}
	if !v.IsArray() {
		o.fail("%s: an array is expected, not %s", member, excerpt(v.Raw))
		return nil
	}
	v.ForEach(func(_, item gjson.Result) bool {
		var name, value string
		o.read(item, fields{"k": into(&name, (*object).text), "v": into(&value, (*object).text)})
		if o.err == nil && strings.TrimSpace(name) == "" {
			o.fail("%s: k is required", member)
		}
		if value != "" {
			name = lowered(trimmed(name))
			tags[name] = append(tags[name], value)
			if blank := strings.ReplaceAll(value, "+", " "); blank != value {
				tags[name] = append(tags[name], blank)
			}
		}
		return o.err == nil
	})
	return tags
}

// check judges what has a closed set of values.
func (s *exportSettings) check() error {
	bad := func(name, value, want string) error {
		return core.Errorf(core.Invalid, "IllegalArgumentException: %s: %s is expected, not %s", name, want, excerpt(value))
	}
	one := func(value string, of ...string) bool {
		return value == "" || slices.ContainsFunc(of, func(o string) bool { return strings.EqualFold(o, value) })
	}
	switch {
	case s.metric == "":
		return core.Errorf(core.Invalid, "IllegalArgumentException: m is required: the metric")
	case !one(s.format, "CSV", "HTML"):
		return bad("f", s.format, "CSV or HTML")
	case !one(s.kind, "HISTORY", "DATA", "FORECAST"):
		return bad("t", s.kind, "HISTORY, DATA or FORECAST")
	case !one(s.fill, "LINEAR", "STEP", "NONE"):
		return bad("i", s.fill, "LINEAR, STEP or NONE")
	case !one(s.zone, "UTC", "LOCAL"):
		return bad("tz", s.zone, "UTC or LOCAL")
	case !one(s.form, "ALL", "NAME", "GROUP", "EXPRESSION"):
		return bad("eft", s.form, "ALL, NAME, GROUP or EXPRESSION")
	case s.precision < -1 || s.precision > maxPrecision:
		return bad("np", strconv.FormatInt(s.precision, 10), "-1 to "+strconv.Itoa(maxPrecision))
	case s.limit < 0:
		return bad("l", strconv.Itoa(s.limit), "a positive number of rows")
	case s.interval != "" && !isInterval(s.interval):
		return bad("si", s.interval, "COUNT-UNIT, such as 1-DAY,")
	case s.period != "" && !isInterval(s.period):
		return bad("ai", s.period, "COUNT-UNIT, such as 1-HOUR,")
	}
	return nil
}

func isInterval(text string) bool {
	_, err := dates.ParseInterval(text)
	return err == nil
}

// location is the zone in which dates are read and printed, and periods begin.
func (s *exportSettings) location(server *time.Location) *time.Location {
	if strings.EqualFold(s.zone, "LOCAL") {
		return server
	}
	return time.UTC
}

// request makes a series query of the settings.
func (s *exportSettings) request(m dates.Moment) (query.Series, error) {
	q := query.Series{Metric: s.metric, Tags: s.tags, Versioned: s.versions, ForecastName: s.forecast, Type: "HISTORY"}
	if strings.EqualFold(s.kind, "FORECAST") {
		q.Type = "FORECAST"
	}
	q.Entities = s.entities()
	filtered := s.unfiltered == nil || *s.unfiltered
	if !filtered {
		s.versionFilter = ""
	}
	s.versionFilter = blanks(s.versionFilter, func(text string) error { return filter.Check(filter.Versions, text) })
	if filtered {
		q.SampleFilter = blanks(s.valueFilter, func(text string) error { return filter.Check(filter.RawSamples, text) })
	}
	if len(s.functions) > 0 {
		s.versions, q.Versioned = false, false // a period has none
		q.Aggregate = &query.Aggregate{}
		for _, name := range s.functions {
			q.Aggregate.Types = append(q.Aggregate.Types, functionKey(name))
		}
		if s.period != "" {
			q.Aggregate.Period = &query.Period{}
			if err := parsePeriod(q.Aggregate.Period, s.period); err != nil {
				return q, err
			}
		}
		switch strings.ToUpper(s.fill) {
		case "LINEAR":
			q.Aggregate.Interpolate = &query.Interpolation{Type: "LINEAR"}
		case "STEP":
			q.Aggregate.Interpolate = &query.Interpolation{Type: "PREVIOUS"}
		}
	} else if !s.versions && s.limit > 0 {
		q.Limit, q.Direction = s.limit, "ASC" // no series gives more rows than the table has
	}
	return q, s.dates(&q, m)
}

// entities is the one selection that the form uses, or the first that is given.
func (s *exportSettings) entities() query.EntityFilter {
	var f query.EntityFilter
	expression := blanks(s.expression, func(text string) error { return filter.Check(filter.Entities, text) })
	switch form := strings.ToUpper(s.form); {
	case form == "ALL":
		f.Entity = "*"
	case form == "NAME", form == "" && s.entity != "":
		f.Entity = s.entity
	case form == "GROUP", form == "" && s.group != "":
		f.Group = s.group
	default:
		f.Expression = expression
	}
	return f
}

// dates sets the range: from the start, or an interval before the end, or the beginning of time; to the end, or now.
func (s *exportSettings) dates(q *query.Series, m dates.Moment) error {
	read := func(name, text string, otherwise core.Time) (*core.Time, error) {
		if text == "" {
			return &otherwise, nil
		}
		if inner, ok := strings.CutPrefix(text, "date("); ok {
			text = strings.Trim(strings.TrimSuffix(inner, ")"), `'"`)
		}
		t, err := m.ParseLocal(text)
		if err != nil {
			t, err = m.ParseLocal(strings.ReplaceAll(text, "+", " "))
		}
		if err != nil {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Wrong %s syntax: %s", name, excerpt(text))
		}
		return &t, nil
	}
	var err error
	if q.Dates.EndTime, err = read("et", s.end, m.Now); err != nil {
		return err
	}
	if s.start == "" && s.interval != "" {
		q.Dates.Interval = s.interval
		return nil
	}
	q.Dates.StartTime, err = read("st", s.start, core.MinTime)
	return err
}

// blanks returns text, or text with blanks for its plus signs where only that is valid.
func blanks(text string, check func(string) error) string {
	if with := strings.ReplaceAll(text, "+", " "); with != text && check(text) != nil && check(with) == nil {
		return with
	}
	return text
}

// exportTable is the table of an export. All its samples are read before the first row is printed: the columns are those of all series.
type exportTable struct {
	exportSettings
	call          *call
	format        exportDates
	versionFilter *filter.Expr // nil: all
	rows          tableWriter
	series        []exportSeries
}

// exportSeries is one series with a result for each function, or one.
type exportSeries struct{ results []*query.Result }

// read collects the series.
func (t *exportTable) read(plan *query.Plan) error {
	held := 0
	for r, err := range plan.Run(t.call.reading(), t.call.source()) {
		if err != nil {
			return err
		}
		if r.Samples.Len() == 0 {
			continue
		}
		if held += r.Samples.Len(); held > t.call.server.Limits.Samples {
			return core.Errorf(core.TooLarge, "the export holds more than limits.samples (%d) samples: shorten the range or set a limit", t.call.server.Limits.Samples)
		}
		last := len(t.series) - 1
		if last >= 0 && len(t.functions) > 1 && sameSeries(t.series[last].results[0], r) {
			t.series[last].results = append(t.series[last].results, r)
			continue
		}
		t.series = append(t.series, exportSeries{results: []*query.Result{r}})
	}
	return nil
}

func sameSeries(a, b *query.Result) bool {
	return a.Entity == b.Entity && a.Metric == b.Metric && a.Tags.Equal(b.Tags)
}

// columns are the header of the table.
func (t *exportTable) columns() []string {
	names := []string{"Timestamp"}
	if len(t.functions) == 0 {
		names = append(names, "Value")
	}
	for _, function := range t.functions {
		names = append(names, titled(function))
	}
	if t.text {
		names = append(names, "Text")
	}
	names = append(names, "Metric", "Entity")
	names = append(names, t.seriesTags...)
	for _, tag := range t.entityTags {
		names = append(names, "entity.tags."+tag)
	}
	if t.meta {
		names = append(names, "Metric Label", "Metric Units", "Entity Label")
	}
	if t.versions {
		names = append(names, "Version Source", "Version Status", "Version Time")
	}
	return names
}

// titled is the name of a function as a column: STANDARD_DEVIATION is Standard Deviation.
func titled(function string) string {
	words := strings.Split(strings.ToLower(strings.TrimSpace(function)), "_")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}

// shared are the cells that all rows of a series have.
func (t *exportTable) shared(r *query.Result) []string {
	cells := []string{r.Metric, r.Entity}
	for _, name := range t.seriesTags {
		cells = append(cells, r.Tags.Value(lowered(name)))
	}
	catalog := t.call.server.Catalog
	entity, _ := catalog.Entity(r.Entity)
	for _, name := range t.entityTags {
		cells = append(cells, entity.Tags[lowered(name)])
	}
	if t.meta {
		metric, _ := catalog.Metric(r.Metric)
		cells = append(cells, metric.Label, metric.Units, entity.Label)
	}
	return cells
}

// exportRow is what differs from row to row.
type exportRow struct {
	time    core.Time
	values  []string
	text    string
	version core.VersionAt
}

// samples are the rows of a series as it is stored.
func (t *exportTable) samples(r *query.Result) ([]exportRow, error) {
	s := &r.Samples
	rows := make([]exportRow, s.Len())
	for i := range rows {
		rows[i] = exportRow{time: s.Times[i], values: []string{t.number(s.Values[i], nil)}}
	}
	for _, d := range s.Decimals {
		rows[d.Index].values[0] = t.number(0, &d.Decimal)
	}
	for _, x := range s.Texts {
		rows[x.Index].text = x.Text
	}
	for _, v := range s.Versions {
		rows[v.Index].version = v
	}
	if !t.versions {
		return rows, nil
	}
	return t.revisions(rows, s.Values)
}

// revisions applies what is asked of versions: first only times that have several, then the filter.
func (t *exportTable) revisions(rows []exportRow, values []float64) ([]exportRow, error) {
	var kept []exportRow
	var env filter.VersionEnv
	for i, row := range rows {
		alone := (i == 0 || rows[i-1].time != row.time) && (i+1 == len(rows) || rows[i+1].time != row.time)
		if t.onlyRevised && alone {
			continue
		}
		if t.versionFilter != nil {
			env.Value, env.Version = values[i], row.version
			pass, err := t.versionFilter.Match(&env)
			if err != nil {
				return nil, err
			}
			if !pass {
				continue
			}
		}
		kept = append(kept, row)
	}
	return kept, nil
}

// periods merges the results of several functions: one row for each period that any of them has a value for.
func (t *exportTable) periods(s *exportSeries) []exportRow {
	at := map[core.Time][]string{}
	for _, r := range s.results {
		column := max(0, slices.IndexFunc(t.functions, func(f string) bool { return functionOf(r) == functionKey(f) }))
		for i, when := range r.Samples.Times {
			cells := at[when]
			if cells == nil {
				cells = make([]string, len(t.functions))
				at[when] = cells
			}
			cells[column] = t.number(r.Samples.Values[i], nil)
		}
	}
	rows := make([]exportRow, 0, len(at))
	for when, cells := range at {
		rows = append(rows, exportRow{time: when, values: cells})
	}
	slices.SortFunc(rows, func(a, b exportRow) int { return cmp.Compare(a.time, b.time) })
	return rows
}

// functionOf is the function that made a result: the end of its lineage.
func functionOf(r *query.Result) string { return r.Lineage[strings.LastIndexByte(r.Lineage, '/')+1:] }

// functionKey is a function of the settings in the spelling of functionOf.
func functionKey(name string) string {
	name = strings.ToUpper(strings.TrimSpace(name))
	if p, ok := strings.CutPrefix(name, "P_"); ok {
		return "PERCENTILE_" + p
	}
	return name
}

// distinctFunctions keeps the first of equal functions.
func distinctFunctions(names []string) []string {
	var kept []string
	for _, name := range names {
		same := func(other string) bool { return functionKey(other) == functionKey(name) }
		if strings.TrimSpace(name) != "" && !slices.ContainsFunc(kept, same) {
			kept = append(kept, name)
		}
	}
	return kept
}

// tableWriter prints a table as text.
type tableWriter interface {
	open(b []byte, columns []string) []byte
	row(b []byte, cells []string) []byte
	close(b []byte) []byte
}

type csvTable struct{}

func (csvTable) open(b []byte, columns []string) []byte { return csvTable{}.row(b, columns) }

func (csvTable) row(b []byte, row []string) []byte {
	for i, cell := range row {
		if i > 0 {
			b = append(b, ',')
		}
		b = cells.AppendText(b, cell)
	}
	return append(b, '\n')
}

func (csvTable) close(b []byte) []byte { return b }

type htmlTable struct{}

func (htmlTable) open(b []byte, columns []string) []byte {
	b = append(b, "<!DOCTYPE html>\n<html><head><meta charset=\"UTF-8\"><title>Export</title></head><body><table border=\"1\">\n"...)
	return htmlRow(b, "th", columns)
}

func (htmlTable) row(b []byte, cells []string) []byte { return htmlRow(b, "td", cells) }

func (htmlTable) close(b []byte) []byte { return append(b, "</table></body></html>\n"...) }

func htmlRow(b []byte, tag string, cells []string) []byte {
	b = append(b, "<tr>"...)
	for _, cell := range cells {
		b = append(append(append(append(b, '<'), tag...), '>'), html.EscapeString(cell)...)
		b = append(append(append(b, "</"...), tag...), '>')
	}
	return append(b, "</tr>\n"...)
}
