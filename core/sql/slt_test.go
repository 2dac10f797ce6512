package sql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/format"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// The files testdata/*.slt hold statements with the CSV that they give. Each file runs from top to bottom against databases of its own, one in memory (the
// oracle) and one of the storage engine, whose data lies in files.
//
//	# comment, anywhere before the first case
//	setup: pumps                        the database: testdata/pumps.setup
//	=== name of the case
//	limit=2 encodeTags=true             optional: parameters of the request; user=NAME, now=TIME, json
//	SELECT ...                          over one or several lines, until
//	---
//	the expected lines
//
// @hh:mm stands for '2024-03-04Thh:mm:00Z' in statements and for "2024-03-04Thh:mm:00.000Z" in results. A line `error: text` expects an error; a text that ends
// with `...` is a prefix. `(sorted)` as the first expected line: the order of the rows does not count. `plan:` as the first word of a statement expects the
// lines of EXPLAIN. With `meta` among the parameters the expected lines are: label, name, type, table, propertyUrl of each column, separated by blanks and
// bars.
//
// A setup holds text commands, and lines `table NAME {"key":"value"}`, `collection NAME ["value"]`, `group NAME entity...`, `calendar KEY COUNTRY date=Holiday...`,
// `user NAME group...` (who may read the entities of these groups), `now TIME`, `history EVENT {core.AlertRow}`, `open ID {core.Alert}`.
//
// go test ./core/sql -run SLT -rewrite replaces the expectations by what comes, except in files that start with "# fixed": theirs come from the contract or a
// calculation by hand.
var rewrite = flag.Bool("rewrite", false, "rewrite the .slt files with what the statements give")

func TestSLT(t *testing.T) {
	files, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".slt"), func(t *testing.T) {
			t.Parallel()
			for name, open := range map[string]func(testing.TB, func() core.Time) backend{"oracle": openOracle, "storage": openStorage} {
				t.Run(name, func(t *testing.T) { runSLT(t, file, open) })
			}
		})
	}
}

type sltCase struct {
	name, statement, want string
	options               map[string]string
	head                  string // the lines before the expectation, for -rewrite
}

func runSLT(t *testing.T, file string, open func(testing.TB, func() core.Time) backend) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	intro, cases := parseSLT(t, string(text))
	w := newWorld(t, open)
	for line := range strings.Lines(intro) {
		if name, ok := strings.CutPrefix(line, "setup: "); ok {
			w.setup(t, filepath.Join("testdata", strings.TrimSpace(name)+".setup"))
		}
	}
	if f, ok := w.backend.(interface{ Compact(context.Context) error }); ok {
		if err := f.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	out.WriteString(intro)
	for _, c := range cases {
		got := w.run(t, c)
		if !*rewrite && !matches(c.want, got) {
			t.Errorf("%s: %s\n%s\n(-want +got):\n%s", file, c.name, c.statement, cmp.Diff(c.want, got))
		}
		fmt.Fprintf(&out, "%s---\n%s\n", c.head, got)
	}
	if *rewrite && !strings.HasPrefix(intro, "# fixed") {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func matches(want, got string) bool {
	if prefix, ok := strings.CutSuffix(want, "..."); ok && strings.HasPrefix(want, "error: ") {
		return strings.HasPrefix(got, prefix)
	}
	if rest, ok := strings.CutPrefix(want, "(sorted)\n"); ok {
		return sortedRows(rest) == sortedRows(got)
	}
	return want == got
}

// sortedRows sorts all lines but the header.
func sortedRows(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}

// parseSLT cuts a file into what stands before the first case, and the cases.
func parseSLT(t *testing.T, text string) (intro string, cases []sltCase) {
	parts := strings.Split("\n"+text, "\n=== ")
	for _, part := range parts[1:] {
		before, want, ok := strings.Cut(part, "\n---\n")
		if !ok {
			t.Fatalf("a case without ---: %s", part)
		}
		c := sltCase{options: map[string]string{}, head: "=== " + before + "\n"}
		c.name, c.statement, _ = strings.Cut(before, "\n")
		first, rest, _ := strings.Cut(c.statement, "\n")
		if isOptions.MatchString(first) {
			c.statement = rest
			for option := range strings.FieldsSeq(first) {
				name, value, _ := strings.Cut(option, "=")
				c.options[name] = value
			}
		}
		c.want = longResult.ReplaceAllString(strings.TrimRight(want, "\n"), "@$1")
		cases = append(cases, c)
	}
	return strings.TrimPrefix(parts[0], "\n") + "\n", cases
}

var isOptions = regexp.MustCompile(`^((limit|encodeTags|datetimeAsNumber|user|now|json|meta)(=\S+)? ?)+$`)

// short writes @10:05 for a time of the day of the examples.
var (
	shortQuery  = regexp.MustCompile(`@(\d\d:\d\d)`)
	longResult  = regexp.MustCompile(`"2024-03-04T(\d\d:\d\d):00\.000Z"`)
	exampleTime = core.Time(1709553600000) // 2024-03-04T12:00:00Z
)

// backend is a store with its log.
type backend interface {
	core.Log
	core.Reader
	core.Catalog
	core.Metadata
}

// oracle is the store of maps behind a log without a disk.
type oracle struct {
	*memstore.Store
	end   core.Position
	clock func() core.Time
}

func openOracle(_ testing.TB, clock func() core.Time) backend {
	s := memstore.New()
	s.Now = clock
	return &oracle{Store: s, clock: clock}
}

func (o *oracle) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	b.Received = o.clock()
	o.end++
	return core.Receipt{Position: o.end, Durability: core.Synced, Received: b.Received}, o.Apply(ctx, core.Entry{Position: o.end, Batch: b})
}

func (o *oracle) Tail(context.Context, core.Position) iter.Seq2[core.Entry, error] {
	return func(func(core.Entry, error) bool) {}
}
func (o *oracle) Wait(ctx context.Context, _ core.Position) error { <-ctx.Done(); return ctx.Err() }
func (o *oracle) End() core.Position                              { return o.end }

func openStorage(t testing.TB, clock func() core.Time) backend {
	db, _, err := storage.Open(vfs.NewMem(), "data", storage.Options{Now: clock, SegmentBytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db
}

// world is a database with its engine.
type world struct {
	backend
	engine    *sql.Engine
	pipe      *ingest.Pipeline
	now       core.Time
	calendars []*dates.Calendar
	users     map[string]core.Grants
	alerts    openAlerts
}

// openAlerts are alerts that somebody opened; they are in the order of entities.
type openAlerts []core.Alert

func (a *openAlerts) Query(_ context.Context, f core.AlertFilter) ([]core.Alert, error) {
	return slices.DeleteFunc(slices.Clone(*a), func(one core.Alert) bool {
		return len(f.Entities.Names) > 0 && !slices.Contains(f.Entities.Names, one.Entity)
	}), nil
}

func (a *openAlerts) Acknowledge(context.Context, core.Origin, []uint64, core.Acknowledgement) error {
	return nil
}

func (a *openAlerts) Delete(context.Context, core.Origin, []uint64) error { return nil }

func newWorld(t testing.TB, open func(testing.TB, func() core.Time) backend) *world {
	w := &world{now: exampleTime, users: map[string]core.Grants{"": core.SystemGrants}}
	clock := func() core.Time { return w.now }
	w.backend = open(t, clock)
	w.pipe = ingest.New(w.backend, w.backend, ingest.Options{Now: clock})
	w.engine = sql.New(sql.Options{Reader: w.backend, Catalog: w.backend, Metadata: w.backend, Ingest: w.pipe, Alerts: &w.alerts, Clock: clock,
		SpillDir:  t.TempDir(),
		Calendars: func() *dates.Calendars { return dates.NewCalendars(w.calendars...) }})
	return w
}

// setup loads a file.
func (w *world) setup(t testing.TB, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		if err := w.setupLine(b, line); err != nil {
			t.Fatalf("%s: %s: %v", file, line, err)
		}
		if b.Len() > 0 {
			if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
		}
	}
}

func (w *world) setupLine(b *core.Batch, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	name, rest, _ := strings.Cut(rest, " ")
	put := func(kind core.DocKind, key string, doc any) error {
		body, err := json.Marshal(doc)
		b.Documents = append(b.Documents, core.DocChange{Kind: kind, Key: key, Body: body})
		return err
	}
	switch word {
	case "table":
		t := core.Table{Name: name, ValueFormat: "LIST"}
		if err := json.Unmarshal([]byte(rest), &t.Keys); err != nil {
			return err
		}
		return put(core.DocTable, core.TableKey(name), t)
	case "collection":
		c := core.Collection{Name: name}
		if err := json.Unmarshal([]byte(rest), &c.Values); err != nil {
			return err
		}
		return put(core.DocCollection, name, c)
	case "group":
		return put(core.DocGroup, name, core.Group{Name: name, Enabled: true, Members: strings.Fields(rest)})
	case "history":
		row := core.AlertRow{}
		if err := json.Unmarshal([]byte(rest), &row); err != nil {
			return err
		}
		b.Alerts = append(b.Alerts, core.AlertChange{Event: name, Kind: core.AlertOpened, Row: &row})
		return nil
	case "open":
		w.alerts = append(w.alerts, core.Alert{})
		return json.Unmarshal([]byte(rest), &w.alerts[len(w.alerts)-1])
	case "user":
		w.users[name] = core.Grants{Roles: core.User.Expand() | core.DataWrite, ReadGroups: strings.Fields(rest), WriteGroups: strings.Fields(rest)}
		return nil
	case "now":
		at, err := dates.ParseISO(name)
		w.now = at
		return err
	case "calendar":
		country, days, _ := strings.Cut(rest, " ")
		f := dates.CalendarFile{Country: country}
		for day := range strings.FieldsSeq(days) {
			date, kind, _ := strings.Cut(day, "=")
			f.Data = append(f.Data, dates.CalendarDay{Date: date, Type: kind})
		}
		c, err := f.Calendar(name)
		w.calendars = append(w.calendars, c)
		return err
	}
	p := command.Parser{Received: w.now}
	return p.Line(b, []byte(line))
}

// run runs a case and returns its result as the file would have it.
func (w *world) run(t testing.TB, c sltCase) string {
	r := sql.Request{Text: shortQuery.ReplaceAllString(c.statement, "'2024-03-04T$1:00Z'"), EncodeTags: c.options["encodeTags"] == "true"}
	grants, ok := w.users[c.options["user"]]
	if !ok {
		t.Fatalf("%s: unknown user", c.name)
	}
	r.Origin = core.Origin{User: c.options["user"], Door: core.DoorHTTP, Grants: grants}
	r.Limit, _ = strconv.ParseInt(c.options["limit"], 10, 64)
	if text, ok := c.options["now"]; ok {
		at, err := dates.ParseISO(text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		defer func(before core.Time) { w.now = before }(w.now)
		w.now = at
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, ok := c.options["meta"]; ok {
		columns, err := w.engine.Columns(ctx, r)
		return shown(describe(columns), err)
	}
	_, isJSON := c.options["json"]
	var out []byte
	err := w.engine.Run(ctx, r, func(a *sql.Answer) error {
		rows := format.NewRows(format.Options{Millis: c.options["datetimeAsNumber"] == "true", JSON: isJSON, Width: len(a.Columns), Fraction: sql.Fractions(a.Columns)})
		if isJSON {
			out = append(out, '[')
		} else if len(a.Columns) > 0 {
			var labels []string
			for _, col := range a.Columns {
				labels = append(labels, col.Label)
			}
			out = format.Header(out, labels)
		}
		for b, err := range a.Rows {
			if err != nil {
				return err
			}
			if err := sound(b, len(a.Columns)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			out = rows.Append(out, b, 0, b.Len)
		}
		return nil
	})
	if isJSON {
		out = append(out, ']')
	}
	return shown(string(bytes.TrimRight(out, "\n")), err)
}

// sound checks what every batch promises.
func sound(b *column.Batch, width int) error {
	if len(b.Columns) < width {
		return fmt.Errorf("a batch of %d columns, %d are promised", len(b.Columns), width)
	}
	for i, v := range b.Columns[:width] {
		if v.Len != b.Len && !v.Const {
			return fmt.Errorf("column %d has %d rows, the batch %d", i, v.Len, b.Len)
		}
	}
	return nil
}

func shown(text string, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return longResult.ReplaceAllString(text, "@$1")
}

func describe(columns []sql.Column) string {
	var b strings.Builder
	for _, c := range columns {
		kind := c.Type.String()
		if c.Unknown {
			kind = "null"
		}
		fmt.Fprintf(&b, "%s | %s | %s | %s | %s\n", c.Label, c.Name, kind, c.Table, c.Property)
	}
	return strings.TrimRight(b.String(), "\n")
}
