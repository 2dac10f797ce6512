package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql"
)

// world is a server over a log in memory, the real pipeline and the oracle store, with a clock that stands still until it is set.
type world struct {
	server *Server
	store  *memstore.Store
	log    *memoryLog
	alerts *openAlerts
	logged *strings.Builder

	mu  sync.Mutex
	now core.Time
}

func (w *world) clock() core.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) setClock(t core.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = t
}

// password is that of every user; its hash has the cheapest parameters, so that tests do not spend their time on it.
const (
	password     = "secret1"
	passwordHash = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$jwa6z+xHc59xG2TbrSr5cJkKfN7Ti+/r3jn5fQfAHq0"
)

// userRoles are the users of every test server, by name; all but tom and lone are in the group Users, which may read and write everything.
var userRoles = map[string][]string{
	"admin":   {"ADMIN"},
	"eva":     {"USER", "API_DATA_WRITE"},
	"reader":  {"API_DATA_READ"},
	"writer":  {"API_DATA_WRITE"},
	"viewer":  {"API_META_READ"},
	"curator": {"API_META_WRITE"},
	"grouper": {"API_META_WRITE", "ENTITY_GROUP_ADMIN"},
	"lone":    {},
	"tom":     {"API_DATA_READ", "API_DATA_WRITE"}, // reads pumps, writes valves
}

func newWorld(t testing.TB, limits Limits) *world {
	t.Helper()
	w := &world{store: memstore.New(), logged: &strings.Builder{}, now: 1903910400000} // 2030-05-02T00:00:00Z
	w.store.Now = w.clock
	w.log = &memoryLog{store: w.store, clock: w.clock}
	w.alerts = &openAlerts{catalog: w.store}
	pipe := ingest.New(w.log, w.store, ingest.Options{Now: w.clock})
	w.server = New(Deps{
		Ingest: pipe, Reader: w.store, Catalog: w.store, Metadata: w.store, Users: auth.New(w.store, pipe, auth.Options{Clock: w.clock}),
		SQL:    sql.New(sql.Options{Reader: w.store, Catalog: w.store, Metadata: w.store, Ingest: pipe, Alerts: w.alerts, Clock: w.clock}),
		Alerts: w.alerts, Parser: losingParser{w.clock}, Clock: w.clock, Limits: limits, Portals: testPortals, ParserConfigs: testConfigs{}, Spool: newMemorySpool(), Storage: &testStorage{}, BackupDir: "/backups",
		Log:     slog.New(slog.NewTextHandler(w.logged, nil)),
		Version: "1.2.3", Revision: "10203", Hostname: "edge-1", URL: "http://edge-1:8088",
	})
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	put := func(kind core.DocKind, key string, doc any) {
		body, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		b.Documents = append(b.Documents, core.DocChange{Kind: kind, Key: key, Body: body})
	}
	for name, roles := range userRoles {
		u := auth.User{Name: name, Enabled: true, Roles: roles, Groups: []string{"Users"}, Hash: passwordHash}
		switch name {
		case "tom":
			u.Groups = []string{"ops"}
		case "lone":
			u.Groups = nil
		}
		put(core.DocUser, name, u)
	}
	put(core.DocUserGroup, "Users", auth.Group{Name: "Users", ReadAll: true, WriteAll: true})
	put(core.DocUserGroup, "ops", auth.Group{Name: "ops", Read: []string{"pumps"}, Write: []string{"valves"}})
	if _, err := pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return w
}

// do sends a request of a user, "" for none, and returns the complete response.
func (w *world) do(user, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// memoryLog is a journal without a disk: what is appended is applied at once.
type memoryLog struct {
	store *memstore.Store
	clock func() core.Time

	mu      sync.Mutex
	end     core.Position
	appends int
	fail    error // of the next appends
}

func (l *memoryLog) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return core.Receipt{}, l.fail
	}
	b.Received = l.clock()
	l.end++
	l.appends++
	if err := l.store.Apply(ctx, core.Entry{Position: l.end, Batch: b}); err != nil {
		return core.Receipt{}, err
	}
	return core.Receipt{Position: l.end, Durability: core.Synced, Received: b.Received}, nil
}

func (l *memoryLog) Tail(context.Context, core.Position) iter.Seq2[core.Entry, error] {
	return func(func(core.Entry, error) bool) {}
}

func (l *memoryLog) Wait(ctx context.Context, _ core.Position) error { <-ctx.Done(); return ctx.Err() }

func (l *memoryLog) End() core.Position { return l.end }

// openAlerts is the engine's view of open alerts, set by tests.
type openAlerts struct {
	catalog core.Catalog
	open    []core.Alert
}

func (a *openAlerts) Query(_ context.Context, f core.AlertFilter) ([]core.Alert, error) {
	var found []core.Alert
	for _, one := range a.open {
		named := len(f.Entities.Names)+len(f.Entities.Patterns) == 0 || slices.Contains(f.Entities.Names, one.Entity) ||
			slices.ContainsFunc(f.Entities.Patterns, func(p string) bool { return likeName(p, one.Entity) })
		matches := named && f.Range.Contains(one.OpenTime) && one.Severity >= f.MinSeverity &&
			(f.Acknowledged == nil || *f.Acknowledged == one.Acknowledged) &&
			(len(f.Severities) == 0 || slices.Contains(f.Severities, one.Severity)) &&
			(len(f.Rules) == 0 || slices.Contains(f.Rules, one.Rule)) && (len(f.Metrics) == 0 || slices.Contains(f.Metrics, one.Metric)) &&
			(f.Scope.All || slices.ContainsFunc(f.Scope.Groups, func(g string) bool { return a.catalog.Member(one.Entity, g) }))
		if matches {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(x, y core.Alert) int {
		return cmp.Or(cmp.Compare(x.Entity, y.Entity), cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.ID, y.ID))
	})
	return found, nil
}

func (a *openAlerts) Acknowledge(_ context.Context, _ core.Origin, ids []uint64, flag core.Acknowledgement) error {
	for i := range a.open {
		if slices.Contains(ids, a.open[i].ID) {
			a.open[i].Acknowledged = flag == core.Acknowledge
		}
	}
	return nil
}

func (a *openAlerts) Delete(_ context.Context, _ core.Origin, ids []uint64) error {
	a.open = slices.DeleteFunc(a.open, func(one core.Alert) bool { return slices.Contains(ids, one.ID) })
	return nil
}

// lineParser stands in for a plugin. Each line after the header is `entity,metric,milliseconds,value`; a line it cannot read is rejected, or
// ends the upload when the parser is called `strict`. It knows the parsers `lines`, `strict` and `default`.
type lineParser struct{}

func (lineParser) Parse(_ context.Context, r core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return func(yield func(core.Parsed, error) bool) {
		if !slices.Contains([]string{"lines", "strict", "default"}, r.Parser) {
			yield(core.Parsed{}, core.Errorf(core.Invalid, "IllegalArgumentException: Configuration with name = '%s' not found", r.Parser))
			return
		}
		lines := bufio.NewScanner(body)
		for n := 1; lines.Scan(); n++ {
			chunk := core.Parsed{Lines: 1, Batch: &core.Batch{}}
			cells := strings.Split(lines.Text(), ",")
			if n > 1 {
				at, err := strconv.ParseInt(cells[min(2, len(cells)-1)], 10, 64)
				if err != nil && r.Parser == "strict" {
					yield(core.Parsed{}, core.Errorf(core.Invalid, "Line %d, column 3: bad time", n))
					return
				}
				if err != nil {
					chunk.Rejects = []core.Reject{{Line: n, Column: 3, Reason: "bad time", Text: lines.Text()}}
				} else {
					value, _ := strconv.ParseFloat(cells[3], 64)
					key := core.SeriesKey{Entity: r.Params["entity-prefix"] + cells[0], Metric: cells[1], Tags: r.Tags}
					chunk.Batch.Add(chunk.Batch.Ref(key), core.Time(at), value)
				}
			}
			if !yield(chunk, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(core.Parsed{}, err)
		}
	}
}

var _ http.Handler = (*Server)(nil)

// at returns an instant for tests.
func at(t testing.TB, text string) core.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return core.TimeOf(parsed)
}

// seedAlerts makes the open alert and the history of the contract's worked example, and an open message alert of another entity.
func (w *world) seedAlerts(t testing.TB) {
	t.Helper()
	open, repeat, closed := at(t, "2030-05-01T08:01:00Z"), at(t, "2030-05-01T08:02:00Z"), at(t, "2030-05-01T08:03:30Z")+500
	pump := core.Alert{ID: 1, Rule: "pump_hot", Metric: "temp", Entity: "pump-1", Tags: core.Tags{{Name: "loc", Value: "b2"}}, Severity: core.Major,
		RepeatCount: 1, Value: 85, OpenValue: 81.25678, TextValue: "85", OpenTime: open, LastEvent: repeat}
	audit := core.Alert{ID: 2, Rule: "Audit", Metric: "message", Entity: "valve-1", Severity: core.Warning, TextValue: "opened", Message: "opened",
		OpenTime: open, LastEvent: open}
	w.alerts.open = []core.Alert{audit, pump}
	row := core.AlertRow{AlertID: 1, Time: open, Received: open, OpenTime: open, Entity: "pump-1", Metric: "temp", Rule: "pump_hot", Tags: pump.Tags,
		Type: core.StatusOpen, Value: 81.25678, Text: "Open alert for pump-1, temp, {loc=b2}. Value: 81.257", Severity: core.Major,
		Condition: "value > 80", Window: "length(1)"}
	end := row
	end.Time, end.Received, end.Type, end.Value, end.RepeatCount = closed, closed, core.StatusCancel, 70, 1
	end.Text, end.Severity = "Cancel alert for pump-1, temp, {loc=b2}", core.Undefined
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{
		{Kind: core.DocEntity, Key: "pump-1", Op: core.DocPatch, Body: []byte("{}")},
		{Kind: core.DocEntity, Key: "valve-1", Op: core.DocPatch, Body: []byte("{}")},
		{Kind: core.DocMetric, Key: "temp", Op: core.DocPatch, Body: []byte("{}")},
		{Kind: core.DocGroup, Key: "pumps", Op: core.DocPatch, Body: []byte(`{"members":["pump-1"]}`)},
	}, Alerts: []core.AlertChange{
		{Event: "e1", Kind: core.AlertOpened, Alert: pump, Row: &row}, {Event: "e2", Kind: core.AlertClosed, Alert: pump, Row: &end},
	}}
	if _, err := w.log.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}
