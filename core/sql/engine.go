// Package sql answers SQL: it keeps the running queries and leads a statement through its phases.
//
//	text -> parse -> ast -> plan -> operators -> exec -> batches of columns
//
//	engine.go   Engine: Run, Columns, Cancel; slots, time, memory, errors
//	facts.go    what functions ask of the database
//	modify.go   INSERT, UPDATE, DELETE become batches for the pipeline
//	store.go    Store: the rows of a SELECT become series
//
// The packages below it are the phases: parse (text to ast), plan (names to columns, conditions to what the reader can do), exec (operators over batches),
// with expr (expressions) and column (values) under both. format writes what comes out.
package sql

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/exec"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/parse"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// Options of an engine. Where nothing is said, a zero is the default.
type Options struct {
	Reader   core.Reader
	Catalog  core.Catalog
	Metadata core.Metadata
	Ingest   core.Ingester   // of INSERT, UPDATE and DELETE
	Alerts   core.OpenAlerts // optional: the table of open alerts

	Clock     func() core.Time
	Zone      *time.Location          // of the server; nil = UTC
	Calendars func() *dates.Calendars // as they are now; nil = the built-in ones

	Queries  int           // "sql.queries": that run at one time; others wait. Default 8
	Memory   int64         // "sql.memory": bytes of one query, for its plan, sorting, grouping and joining. Default 64 MiB
	Spill    int64         // "sql.spill": bytes of temporary files of one query. Default 1 GiB; negative = none
	SpillDir string        // where they lie; "" = no files
	Time     time.Duration // "sql.time": of one query, reading its answer included. Default 5 min
	Likes    int           // "sql.metric.like.limit": metrics that a pattern in atsd_series may match. Default 50
	Length   int           // "sql.length": bytes of a statement. Default 1 MiB
	Width    int           // "sql.columns": columns of a SELECT, and keys of a clause. Default 4096

	Log *slog.Logger // nil = none
}

func (o *Options) setDefaults() {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Calendars == nil {
		o.Calendars = func() *dates.Calendars { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	defaultTo(&o.Queries, 8)
	defaultTo(&o.Memory, 64<<20)
	defaultTo(&o.Spill, 1<<30)
	defaultTo(&o.Time, 5*time.Minute)
	defaultTo(&o.Likes, 50)
	defaultTo(&o.Length, 1<<20)
}

func defaultTo[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Engine answers statements. It is safe for concurrent use, and starts nothing that outlives a call.
type Engine struct {
	Options
	slots   chan struct{} // a token for each query that runs
	planned chan struct{} // likewise, for each that is planned alone

	running struct {
		sync.Mutex
		queries []*Running // oldest first
	}
}

// New returns an engine.
func New(o Options) *Engine {
	o.setDefaults()
	return &Engine{Options: o, slots: make(chan struct{}, o.Queries), planned: make(chan struct{}, o.Queries)}
}

// Request is a statement and who sent it.
type Request struct {
	Text       string
	ID         string // by which its sender may cancel it; "" = none
	Origin     core.Origin
	Limit      int64 // rows of the result; 0 = all
	EncodeTags bool  // columns of whole tag sets are JSON objects
	ReadOnly   bool  // statements that change data are refused
}

// Column describes a column of a result.
type Column = plan.Column

// Fractions are the columns of a result whose whole numbers have a fraction in JSON; nil for none.
func Fractions(columns []Column) (list []bool) {
	for i, c := range columns {
		if c.Fraction && list == nil {
			list = make([]bool, len(columns))
		}
		if c.Fraction {
			list[i] = true
		}
	}
	return list
}

// Answer is a result while it is made.
type Answer struct {
	Columns []Column
	Rows    iter.Seq2[*column.Batch, error] // read once; batches are valid until the next. At most one error, the last
	Receipt *core.Receipt                   // of a statement that changed data, which has neither columns nor rows; nil where nothing was to be stored
}

// Running is a query that runs.
type Running struct {
	ID       string // its sender's
	ServerID string
	User     string
	Text     string
	Started  core.Time

	cancel context.CancelCauseFunc
}

var (
	errCancelled = core.Errorf(core.Invalid, "Query cancelled")
	errTime      = errors.New("sql.time is over")
	errNoRows    = core.Errorf(core.Invalid, "only the rows of a SELECT can become series")
)

// Run leads a statement through its phases and passes its result to answer, which reads the rows; what answer returns is returned. Errors of a statement are of
// code Invalid, with the texts of the contract. It waits while sql.queries others run.
func (e *Engine) Run(ctx context.Context, r Request, answer func(*Answer) error) error {
	return e.lead(ctx, r, func(ctx context.Context, x *session) error {
		return x.run(ctx, func(a *Answer) error {
			a.Rows = e.explained(ctx, a.Rows)
			return answer(a)
		})
	})
}

// lead runs a statement as one of those that are counted, timed and can be cancelled.
func (e *Engine) lead(ctx context.Context, r Request, run func(context.Context, *session) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, e.Time, errTime)
	defer stop()
	q := e.enter(r, cancel)
	defer e.leave(q)
	if err := take(ctx, e.slots); err != nil {
		return e.failure(ctx, err)
	}
	defer func() { <-e.slots }()
	x := e.session(ctx, r)
	err := run(ctx, x)
	e.Log.Debug("query ended", "id", q.ServerID, "user", q.User, "ms", int64(e.Clock()-q.Started), "samples", x.fetched.Load(), "err", err)
	return e.failure(ctx, err)
}

// take waits for a place among those that run.
func take(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *session) run(ctx context.Context, answer func(*Answer) error) error {
	s, err := x.parse(ctx)
	if err != nil {
		return err
	}
	switch s := s.(type) {
	case *ast.Select:
		return x.query(ctx, s, answer)
	case *ast.Explain:
		return x.explain(ctx, s.Select, answer)
	}
	if x.request.ReadOnly {
		return errNoRows
	}
	receipt, err := x.modify(ctx, s)
	if err != nil {
		return err
	}
	return answer(&Answer{Receipt: receipt, Rows: func(func(*column.Batch, error) bool) {}})
}

// parse reads the statement. Its tree and its plan count as memory of the query.
func (x *session) parse(ctx context.Context) (ast.Statement, error) {
	text := x.request.Text
	if len(text) > x.Length {
		return nil, core.Errorf(core.Invalid, "the statement has %d bytes, sql.length allows %d", len(text), x.Length)
	}
	return parse.Within(text, func(bytes int64) error { return cmp.Or(ctx.Err(), x.memory.Grow(bytes)) })
}

// Columns returns what the result of a query would have, without running it. It waits while sql.queries others are planned, but not for those that run.
func (e *Engine) Columns(ctx context.Context, r Request) ([]Column, error) {
	ctx, stop := context.WithTimeoutCause(ctx, e.Time, errTime)
	defer stop()
	if err := take(ctx, e.planned); err != nil {
		return nil, e.failure(ctx, err)
	}
	defer func() { <-e.planned }()
	x := e.session(ctx, r)
	s, err := x.parse(ctx)
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	var query *ast.Select
	switch s := s.(type) {
	case *ast.Select:
		query = s
	case *ast.Explain:
		return explainColumns, nil
	default:
		return nil, nil
	}
	o := x.options()
	o.Meta = true
	q, err := plan.Bind(ctx, query, o)
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	return q.Columns, nil
}

// Cancel stops the running queries of that id, of the user or, for an administrator, of anybody, and returns them.
func (e *Engine) Cancel(id string, origin core.Origin) []Running {
	e.running.Lock()
	defer e.running.Unlock()
	var stopped []Running
	for _, q := range e.running.queries {
		if q.ID == id && id != "" && (q.User == origin.User || origin.Grants.Roles.Has(core.Admin)) {
			q.cancel(errCancelled)
			stopped = append(stopped, *q)
		}
	}
	return stopped
}

func (e *Engine) enter(r Request, cancel context.CancelCauseFunc) *Running {
	var id [8]byte
	rand.Read(id[:])
	q := &Running{ID: r.ID, ServerID: hex.EncodeToString(id[:]), User: r.Origin.User, Text: r.Text, Started: e.Clock(), cancel: cancel}
	e.running.Lock()
	defer e.running.Unlock()
	e.running.queries = append(e.running.queries, q)
	return q
}

func (e *Engine) leave(q *Running) {
	e.running.Lock()
	defer e.running.Unlock()
	e.running.queries = slices.DeleteFunc(e.running.queries, func(o *Running) bool { return o == q })
}

// explained gives the errors of a result their final form.
func (e *Engine) explained(ctx context.Context, rows iter.Seq2[*column.Batch, error]) iter.Seq2[*column.Batch, error] {
	return func(yield func(*column.Batch, error) bool) {
		for b, err := range rows {
			if err != nil {
				yield(nil, e.failure(ctx, err))
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// failure gives an error the form that is for the user: of code Invalid where the statement is at fault.
func (e *Engine) failure(ctx context.Context, err error) error {
	var statement *ast.Error
	var known *core.Error
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.As(err, &statement):
		return &Fault{statement.Text, statement.Hint}
	case core.CodeOf(err) == core.Canceled && cause == errTime:
		return core.Errorf(core.Invalid, "the query takes longer than sql.time (%s): narrow it, or raise the setting", e.Time)
	case core.CodeOf(err) == core.Canceled && errors.As(cause, &known):
		return known
	}
	return err
}

// Fault is the error of a statement. It is an Error of code Invalid with the text that clients compare; Hint is for people, "" for none.
type Fault struct{ Text, Hint string }

func (f *Fault) Error() string { return f.Text }

func (f *Fault) Unwrap() error { return &core.Error{Code: core.Invalid, Text: f.Text} }

// session is one statement on its way.
type session struct {
	*Engine
	request Request
	scope   core.Scope
	env     *expr.Env
	memory  *exec.Memory
	fetched atomic.Int64
}

func (e *Engine) session(ctx context.Context, r Request) *session {
	x := &session{Engine: e, request: r, scope: r.Origin.Grants.ReadScope(), memory: exec.NewMemory(e.Memory)}
	x.env = &expr.Env{Now: e.Clock(), Zone: e.Zone, ServerZone: e.Zone, Calendars: e.Calendars(), Facts: newFacts(ctx, x),
		Room: x.memory.Grow, Halt: ctx.Err}
	return x
}

func (x *session) options() plan.Options {
	return plan.Options{Catalog: x.Catalog, Reader: x.Reader, Metadata: x.Metadata, Alerts: x.Alerts, Scope: x.scope, Env: x.env,
		EncodeTags: x.request.EncodeTags, LikeLimit: x.Likes, Columns: x.Width, Instants: x.instants, Names: x.names}
}

func (x *session) execution() exec.Config {
	c := exec.Config{Reader: x.Reader, Catalog: x.Catalog, Metadata: x.Metadata, Alerts: x.Alerts, Memory: x.memory, Workers: runtime.GOMAXPROCS(0), Fetched: &x.fetched}
	if x.Spill > 0 {
		c.SpillDir, c.Spill = x.SpillDir, x.Spill
	}
	return c
}

// query plans and runs a SELECT. The limit of the request bounds its rows after those of the statement.
func (x *session) query(ctx context.Context, s *ast.Select, answer func(*Answer) error) error {
	q, err := plan.Bind(ctx, s, x.options())
	if err != nil {
		return err
	}
	if x.request.Limit > 0 {
		q.Root = plan.Cut(q.Root, x.request.Limit)
	}
	return answer(&Answer{Columns: q.Columns, Rows: exec.Run(ctx, q, x.execution())})
}

// explainColumns are those of the result of EXPLAIN.
var explainColumns = []Column{{Label: "plan", Name: "plan", Type: column.String}}

func (x *session) explain(ctx context.Context, s *ast.Select, answer func(*Answer) error) error {
	q, err := plan.Bind(ctx, s, x.options())
	if err != nil {
		return err
	}
	lines := plan.Explain(q)
	rows := func(yield func(*column.Batch, error) bool) {
		yield(&column.Batch{Len: len(lines), Columns: []*column.Vector{{Type: column.String, Len: len(lines), Strings: lines}}}, nil)
	}
	return answer(&Answer{Columns: explainColumns, Rows: rows})
}

// instants runs the query of BETWEEN (SELECT ...) and returns its only column, in the order of its rows.
func (x *session) instants(ctx context.Context, s *ast.Select) ([]core.Time, error) {
	q, err := plan.Bind(ctx, s, x.options())
	if err != nil {
		return nil, err
	}
	if len(q.Columns) != 1 || q.Columns[0].Type != column.Timestamp && q.Columns[0].Type != column.Bigint {
		return nil, s.At().Errorf("the query in BETWEEN must select one column, time or datetime")
	}
	var times []core.Time
	for b, err := range exec.Run(ctx, q, x.execution()) {
		if err != nil {
			return nil, err
		}
		if err := x.memory.Grow(int64(b.Len) * 8); err != nil {
			return nil, err
		}
		v := b.Columns[0]
		for i := range b.Len {
			if !v.IsNull(i) && v.Ints != nil {
				times = append(times, core.Time(v.Ints[v.Index(i)]))
			}
		}
	}
	return times, nil
}

// names runs a query whose first column is a name.
func (x *session) names(ctx context.Context, q *plan.Query, each func(name string)) error {
	for b, err := range exec.Run(ctx, q, x.execution()) {
		if err != nil {
			return err
		}
		v := b.Columns[0]
		for i := range b.Len {
			if !v.IsNull(i) {
				each(v.Strings[v.Index(i)])
			}
		}
	}
	return nil
}
