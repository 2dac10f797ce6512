// Package api is the HTTP interface: one table of routes (routes.go), one way through every request (serve.go), one place where errors
// become statuses (respond.go), one file a resource.
//
// A request passes, in this order: CORS, authentication, the route on the still-encoded path, the role of the route, the origin of a
// cookie, the handler. A handler reads its body within the limits (body.go, scan.go, decode.go), builds a core.Batch or a query, and
// returns an error or the whole answer: nothing is sent before it is known to be complete. The handlers know neither storage nor rules;
// what they need is in Deps.
//
// The scenario files in testdata/*.http are the behaviour in text form; scenario_test.go documents their format.
package api

import (
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/VictoriaMetrics/metrics"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
	"github.com/tidemark-db/tidemark/core/search"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
)

// Deps is everything the interface needs from the server. Fields marked optional may be nil; the routes that need them answer 501.
type Deps struct {
	Ingest  core.Ingester
	Reader  core.Reader
	Catalog core.Catalog
	Users   *auth.Service
	Alerts  core.OpenAlerts  // optional
	SQL     SQL              // optional
	Parser  core.Parser      // optional
	Markers *command.Markers // shared with the other doors of text commands; nil = of this one alone

	Metadata core.Metadata   // what lists of metrics and entities read
	Synonyms search.Synonyms // of words in searches

	Foreign Foreign // how data of other products is named

	Spool Spool // optional: where csv uploads wait that are processed in the background, see WorkUploads

	Portals       func() []Portal // optional: the pages that can be drawn; they are not changed
	ParserConfigs ParserConfigs   // optional: without it configurations are stored as they come

	Clock  func() core.Time
	Zone   *time.Location // the server zone; nil = UTC
	Limits Limits
	Log    *slog.Logger // nil = discard

	// DeadLetterBytes bounds the dead letters of uploads together ("limits.dead_letters"), as they are stored; 0 = 64 MiB.
	DeadLetterBytes int64

	// Calendars are the workday calendars as they are now, with the default one; nil = the built-in ones, and the week from Monday to Friday.
	Calendars func() *dates.Calendars

	// HideInsertTime turns the default of the parameter addInsertTime from true to false.
	HideInsertTime bool

	Storage   Storage // optional: what administrators ask of the storage engine
	BackupDir string  // absolute: backups go below it ("backup.dir"); "" = they are off

	Health  func() Health     // nil = always ok
	Metrics func(w io.Writer) // optional: appends more of the Prometheus text of /metrics

	SelfMetrics func() []selfmetrics.Reading // optional: the last round of what the server measures of itself

	Version  string // of this build
	Revision string // digits only; clients of the contract parse it as a number
	Hostname string
	URL      string // of this server, as clients see it
}

// Health is the answer of /health.
type Health struct {
	Status   string   `json:"status"` // ok, degraded, starting or stopping
	Problems []string `json:"problems,omitempty"`
	// Recovery is what the last start found on the disk, in numbers: anybody may ask for the health of a server.
	Recovery *Recovery `json:"recovery,omitempty"`
	// Unready makes the answer a 503, so that a load balancer looks elsewhere. A degraded server is still ready.
	Unready bool `json:"-"`
}

// Recovery is what a start found.
type Recovery struct {
	Segments   int   `json:"segments"`
	Frames     int   `json:"frames"`
	TornBytes  int64 `json:"tornBytes"`  // cut from the end: writes that nobody had been told were stored
	Damaged    int   `json:"damaged"`    // ranges that were stored and cannot be read any more
	Unreadable int   `json:"unreadable"` // sound frames that this program does not understand
	Millis     int64 `json:"millis"`     // that it took
}

// Server is the handler. It starts no goroutines and has nothing to close; WorkUploads is for the caller to run.
type Server struct {
	Deps
	router     *httprouter.Router
	methods    []string        // of the route table
	public     map[string]bool // paths that need no credentials
	started    core.Time
	stats      *stats
	held       atomic.Int64  // bytes of request bodies in memory
	queries    query.Budget  // samples of series queries in memory
	shares     shares        // of its users in held
	unfinished atomic.Int64  // bytes of the buffers of command streams
	drawing    chan struct{} // a token for each portal that is being drawn

	malformed atomic.Uint64 // text commands that were wrong by themselves

	letters letterBox
	uploads backlog // in the background

	description func() ([]byte, error) // of the interface, built once
}

// New returns the handler of the whole interface.
func New(d Deps) *Server {
	d.Limits.setDefaults()
	d.Foreign.setDefaults()
	if d.Zone == nil {
		d.Zone = time.UTC
	}
	if d.Calendars == nil {
		d.Calendars = func() *dates.Calendars { return nil }
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Markers == nil {
		d.Markers = new(command.Markers)
	}
	if d.Health == nil {
		d.Health = func() Health { return Health{Status: "ok"} }
	}
	s := &Server{Deps: d, public: map[string]bool{}, started: d.Clock()}
	s.uploads.wake = make(chan struct{}, 1)
	s.queries.Limit = int64(d.Limits.Queries)
	s.drawing = make(chan struct{}, d.Limits.Portals)
	s.stats = newStats(metrics.NewSet())
	s.description = sync.OnceValues(func() ([]byte, error) { return describeRoutes(s.routes(), s.Version) })
	s.router = httprouter.New()
	for _, rt := range s.routes() {
		s.router.Handle(rt.method, rt.path, s.bind(rt))
		if rt.role == core.Public {
			s.public[rt.path] = true
		}
	}
	s.methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return s
}
