package csv

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/plugins/csv/schema"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// grid is what the schema mode keeps of one file: the program says which cells become commands.
type grid struct {
	program  *schema.Program
	run      *schema.Run
	row      gridRow
	series   []gridSeries // by a cheap hash of what the program said
	timeText string       // of the latest time without an offset from a column
	time     core.Time
	messages []abi.Message  // of the row: they wait for its end, for a later one may take the place of an earlier one
	places   map[string]int // of messages, by entity, type, source and time
	failed   *fault
}

// gridRow shows a record to the program. A cell becomes a string once, however often it is asked for: to make one costs a guest as much as to evaluate some nodes.
type gridRow struct {
	*record
	cells []string
	known []bool
}

func (g *gridRow) of(r *record) *gridRow {
	g.record = r
	size := r.size()
	g.cells, g.known = slices.Grow(g.cells[:0], size)[:size], slices.Grow(g.known[:0], size)[:size]
	clear(g.known)
	return g
}

func (g *gridRow) Size() int    { return len(g.cells) }
func (g *gridRow) Text() string { return string(g.text) }

func (g *gridRow) Cell(column int) string {
	if i := column - 1; !g.known[i] {
		g.cells[i], g.known[i] = string(text(g.record, i)), true
	}
	return g.cells[column-1]
}

// compileSchema reads the program; with one the parser is in schema mode.
func (p *parser) compileSchema(file string, fault func(string, ...any)) {
	program, err := schema.Compile(p.Schema)
	if err != nil {
		fault("schema: %v", err)
		return
	}
	p.grid = &grid{program: program, run: program.Start(file), series: make([]gridSeries, gridSlots), places: map[string]int{}}
}

// makesMessages reports whether rows may become messages.
func (p *parser) makesMessages() bool {
	if p.grid != nil {
		return p.grid.program.Adds(schema.Message)
	}
	return p.command == messages
}

// gridRecord converts one record by the program. The names of the first one are those of the row filter and of the offset column.
func (p *parser) gridRecord(r *record, out *abi.Encoder) *fault {
	g := p.grid
	namesMissing := p.plan == nil && (p.filter != nil || p.TimezoneDiffColumn != "")
	if r.fault != "" {
		g.run.Pass()
		p.IgnoreLineErrors = p.IgnoreLineErrors && !namesMissing
		return &fault{r.line, r.place, r.fault, string(r.text)}
	}
	if namesMissing {
		var err error
		if p.plan, err = p.gridPlan(r); err != nil {
			p.IgnoreLineErrors = false // no line of the file can be read
			return &fault{r.line, 0, err.Error(), string(r.text)}
		}
	}
	g.failed = nil
	visited, f := g.run.Row(g.row.of(r), func(c *schema.Command) bool {
		g.failed = p.gridCommand(r, c, out)
		return g.failed == nil
	})
	g.release(out)
	if visited {
		out.AddRecords(1)
	}
	if f == nil {
		return g.failed
	}
	if f.Final {
		p.IgnoreLineErrors = false
	}
	return &fault{r.line, f.Column, f.Reason, string(r.text)}
}

// gridPlan finds the columns that settings name in the first row.
func (p *parser) gridPlan(r *record) (*plan, error) {
	var header []string
	for i := range r.size() {
		header = append(header, string(text(r, i)))
	}
	pl := p.named(header)
	pl.diff = -1
	if p.TimezoneDiffColumn == "" {
		return pl, nil
	}
	var ok bool
	if pl.diff, ok = pl.find(p.TimezoneDiffColumn); !ok {
		return nil, fmt.Errorf("the first row has no column %s, which timezoneDiffColumn names; it has %s", p.TimezoneDiffColumn, strings.Join(header, ", "))
	}
	return pl, nil
}

// gridCommand writes one command of the program.
func (p *parser) gridCommand(r *record, c *schema.Command, out *abi.Encoder) *fault {
	wrong := func(format string, args ...any) *fault {
		return &fault{r.line, c.Column, fmt.Sprintf(format, args...), string(r.text)}
	}
	t, f := p.gridTime(r, c)
	if f != nil {
		return f
	}
	if p.filter != nil {
		keep, err := p.filter.Match(&filter.RowEnv{Time: t, Find: func(column string) (string, bool) { return p.find(r, column) }})
		if err != nil {
			return wrong("filter: %v", err)
		}
		if !keep {
			return nil
		}
	}
	if c.Kind == schema.Series {
		return p.gridSample(r, c, t, out)
	}
	entity := p.gridEntity(c)
	if entity == "" {
		return wrong(noEntity)
	}
	if c.Kind == schema.Property {
		kind := cleanName(c.Type)
		if kind == "" {
			return wrong("no property type: type() is empty")
		}
		p.putProperty(&abi.Property{Entity: entity, Type: kind, Persist: true, Time: int64(t), Keys: p.gridPairs(c.Keys), Tags: p.gridPairs(c.Tags)}, out)
		return nil
	}
	m := abi.Message{Entity: entity, Persist: true, Time: int64(t), Text: c.Text}
	if wanted, bad := p.fillMessage(&m, p.gridPairs(c.Tags)); bad != "" {
		return &fault{r.line, c.Column, "not a severity", bad}
	} else if wanted {
		p.grid.hold(&m)
	}
	return nil
}

// hold keeps a message until the row ends. Of those with equal entity, type, source and time the last one remains (the contract, section 8, rule 11).
func (g *grid) hold(m *abi.Message) {
	key := fmt.Sprintf("%s\x00%s\x00%s\x00%d", m.Entity, m.Type, m.Source, m.Time)
	if at, ok := g.places[key]; ok {
		g.messages[at] = *m
		return
	}
	g.places[key] = len(g.messages)
	g.messages = append(g.messages, *m)
}

// release writes the messages of a row.
func (g *grid) release(out *abi.Encoder) {
	if len(g.messages) == 0 {
		return
	}
	for i := range g.messages {
		out.Message(&g.messages[i])
	}
	clear(g.messages)
	g.messages = g.messages[:0]
	clear(g.places)
}

// gridTime reads the time of a command: a number is Unix ms; without any it is the parameter time.
func (p *parser) gridTime(r *record, c *schema.Command) (core.Time, *fault) {
	switch {
	case c.Time.IsNumber:
		if ms := math.Floor(c.Time.Number); math.Abs(ms) < 1e15 && core.Time(ms).Storable() {
			return core.Time(ms), nil
		}
		return 0, &fault{r.line, c.Column, "not a time in Unix milliseconds between 1970 and 2106", fmt.Sprint(c.Time.Number)}
	case p.grid.timeText == c.Time.Text && c.Time.Text != "":
		return p.grid.time, nil // as for the cell before, in most rows
	case !c.Time.Empty():
		t, f := p.readTime([]byte(c.Time.Text), r, c.Column)
		if f == nil && p.TimezoneDiffColumn == "" && len(c.Time.Text) <= maxRemembering {
			p.grid.timeText, p.grid.time = c.Time.Text, t
		}
		return t, f
	case p.arrival:
		return 0, &fault{r.line, c.Column, "no time: set timestamp() or the parameter time", string(r.text)}
	}
	return p.time, nil
}

const noEntity = "no entity: set entity() or default-entity"

// gridEntity makes the stored name of the entity, or of the default one; empty for none.
func (p *parser) gridEntity(c *schema.Command) string {
	switch {
	case c.Entity != "":
		return p.entityName([]byte(c.Entity))
	case p.DefaultEntity != "":
		return p.entityName([]byte(p.DefaultEntity))
	}
	return ""
}

// maxRemembering is the length of texts that are remembered: longer ones are rare, and many of them take much memory.
const maxRemembering = 1000

// gridSlots is how many series are at hand: a wide file has some hundred, and a map costs a guest much more.
const gridSlots = 1 << 11

// gridSeries is a series of the batch by what the program said of it.
type gridSeries struct {
	key   string
	batch uint32
	ref   abi.SeriesRef
}

// gridRef returns the series of a command; the reason says what it lacks. Most commands have a series that was there before, which spares them its names.
func (p *parser) gridRef(c *schema.Command, out *abi.Encoder) (ref abi.SeriesRef, reason string) {
	p.key = append(append(append(append(p.key[:0], c.Entity...), 0), c.Metric...), 0)
	for _, t := range c.Tags {
		p.key = append(append(append(append(p.key, t.Name...), 0), t.Value...), 0)
	}
	s := &p.grid.series[guest.Hash(p.key)%gridSlots]
	if s.batch == p.batch && s.key == string(p.key) {
		return s.ref, ""
	}
	entity := p.gridEntity(c)
	metric := p.gridName(c.Metric)
	if metric == "" {
		metric = cleanName(p.DefaultMetric)
	}
	switch {
	case entity == "":
		return 0, noEntity
	case metric == "":
		return 0, "no metric name: set metric() or default-metric"
	}
	ref = out.Series(cleanName(p.MetricPrefix+metric), entity, p.withDefaults(p.gridPairs(c.Tags))...)
	if len(p.key) <= maxRemembering {
		*s = gridSeries{string(p.key), p.batch, ref}
	}
	return ref, ""
}

// gridSample writes a sample. Text that is no number ends the row, unless line errors are ignored: then only the cell.
func (p *parser) gridSample(r *record, c *schema.Command, t core.Time, out *abi.Encoder) *fault {
	v, exact, ok := c.Value.Number, "", true
	if !c.Value.IsNumber {
		p.value = append(p.value[:0], c.Value.Text...)
		v, exact, ok = p.number.parse(trim(p.value))
	}
	if !ok || math.IsInf(v, 0) {
		shown := c.Value.Text
		if c.Value.IsNumber {
			shown = fmt.Sprint(v)
		}
		f := &fault{r.line, c.Column, "not a number", shown}
		if !p.IgnoreLineErrors {
			return f
		}
		out.Reject(f.line, f.column, f.reason, f.text)
		return nil
	}
	if v != v && p.DiscardNaN {
		return nil
	}
	ref, reason := p.gridRef(c, out)
	if reason != "" {
		return &fault{r.line, c.Column, reason, string(r.text)}
	}
	p.putSample(ref, t, v, exact, out)
	return nil
}

// gridName makes the name of a metric, a tag or a key, renamed as renamedColumns says.
func (p *parser) gridName(written string) string {
	return cleanName(p.renamed(strings.TrimSpace(written)))
}

// gridPairs names the tags or keys of a command; of those with the same name the last one counts.
func (p *parser) gridPairs(written []schema.Pair) []abi.Pair {
	pairs := make([]abi.Pair, 0, len(written))
	for _, w := range written {
		name := p.gridName(w.Name)
		at := slices.IndexFunc(pairs, func(p abi.Pair) bool { return p.Name == name })
		switch {
		case name == "":
		case at < 0:
			pairs = append(pairs, abi.Pair{Name: name, Value: w.Value})
		default:
			pairs[at].Value = w.Value
		}
	}
	return pairs
}
