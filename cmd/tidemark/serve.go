package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/term"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/api"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/core/network"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/outbox"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/wasm"
)

type serveCmd struct {
	Data     *string           `help:"Data directory (default ./tidemark-data)." type:"path"`
	Config   string            `help:"Configuration folder with tidemark.yaml, rules, parsers, plugins, secrets." default:"./tidemark.d"`
	HTTP     *string           `name:"http" help:"Address to listen on (default 127.0.0.1:8088); port 0 picks a free one."`
	Sync     *string           `help:"When writes reach the disk: always (default), an interval such as 1s, or never."`
	LogLevel *string           `help:"debug, info (default), warn or error."`
	Set      map[string]string `help:"Any setting, for example --set limits.body=8MiB." placeholder:"NAME=VALUE"`
}

// Help lists every setting for serve --help.
func (*serveCmd) Help() string {
	var b strings.Builder
	b.WriteString("Settings, for tidemark.yaml, --set and the environment:\n")
	for _, s := range settings {
		value := s.value
		if value == "" {
			value = "none"
		}
		fmt.Fprintf(&b, "\n%s (%s; %s)\n    %s\n", s.name, value, envName(s.name), s.help)
	}
	return b.String()
}

func (c *serveCmd) Run() error {
	flags := map[string]string{}
	for name, value := range c.Set {
		flags[name] = value
	}
	for name, value := range map[string]*string{"data": c.Data, "http": c.HTTP, "sync": c.Sync, "log.level": c.LogLevel} {
		if value != nil {
			flags[name] = *value
		}
	}
	config, err := loadConfig(c.Config, flags, os.Environ())
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return serve(ctx, config)
}

// stopWithin bounds an orderly stop: requests in flight, the checkpoint of the rules, the last sync.
const stopWithin = 10 * time.Second

// serve wires the server: what is opened first is closed last. It returns when ctx ends or a part fails.
func serve(ctx context.Context, c Config) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: logLevel(c.LogLevel)}))
	clock := func() core.Time { return core.TimeOf(time.Now()) }
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ends when closing takes too long
	defer cancel()
	closeLast := func(closer func(context.Context) error) { err = errors.Join(err, closer(closing)) }

	days, listener, ports, err := begin(c, log) // 1. a port in use is said before anything is written
	if err != nil {
		return err
	}
	defer listener.Close()
	defer ports.Close()

	store, err := openDatabase(ctx, c, log) // 2. the log and the state
	if err != nil {
		return err
	}
	defer closeLast(store.Close)

	db := store.DB
	access := auth.NewWatch(db)
	pipe := ingest.New(access, db, ingest.Options{RulesWait: c.RulesWait, MaxRecords: int(c.Records), Logger: log}) // 3. the only writer
	users := auth.New(db, pipe, userOptions(c, access, clock, log))
	credentials, err := firstAdmin(ctx, users, c, log)
	if err != nil {
		return err
	}

	configs, pages := &parserConfigs{reader: db, catalog: db, ingest: pipe, nmon: nmonGroups{reader: db, ingest: pipe, log: log}, zone: c.Zone, log: log}, openPortals(c.Dir, log)
	host, parsers, err := openPlugins(ctx, c, configs) // 4. loaded when they are first used
	if err != nil {
		return err
	}
	defer closeLast(host.Close)

	engine, err := openEngine(ctx, c, rules.Config{ // 5. follows the log
		Log: db, Ingest: pipe, Reader: db, Catalog: db, Metadata: db, Renderer: wasm.Renderers{Host: host}, Clock: clock, Server: serverURL(c, listener), Logger: log})
	if err != nil {
		return err
	}
	pipe.Watch(engine)
	store.follower.Store(engine)

	meters := &instruments{db: db, pipe: pipe, reads: &countedReader{DB: db}, engine: engine, sessions: users.Sessions, doors: ports.values, now: clock, data: c.Data, rebuilt: store.report.Duration}
	ports.Connect(network.Deps{Ingest: pipe, Catalog: db, Grants: users.Grants, Parser: parsers, Reader: db})
	self := selfmetrics.New(selfOptions(c, meters, pipe, clock, log))

	handler := api.New(api.Deps{ // 6. the doors
		Ingest: pipe, Reader: meters.reads, Catalog: db, Metadata: db, HideInsertTime: !c.InsertTime, Users: users, Alerts: engine, Parser: parsers, Clock: clock, Zone: c.Zone, Log: log,
		DeadLetterBytes: c.DeadLettersBytes, Synonyms: c.Synonyms, Calendars: days.list, Markers: ports.markers, Foreign: c.foreign(), Portals: pages.list, ParserConfigs: configs, Spool: store.uploads,
		Storage: storageDoor{db, c.BackupDir}, BackupDir: c.BackupDir,
		SQL:    openSQL(c, sql.Options{Reader: meters.reads, Catalog: db, Metadata: db, Ingest: pipe, Alerts: engine, Clock: clock, Calendars: days.list, Log: log}),
		Limits: c.limits(), Health: healthOf(store.report, engine, host), Metrics: func(w io.Writer) { metrics.WriteProcessMetrics(w); meters.prometheus(w); ports.prometheus(w) }, SelfMetrics: self.Readings,
		Version: version, Revision: revision(), Hostname: hostname(), URL: serverURL(c, listener),
	})
	server, doors, err := webServer(c, meters.serving(handler), listener, log)
	if err != nil {
		return err
	}

	g := newGroup(ctx)
	g.Go("rules", engine.Run)
	g.Go("self-metrics", self.Run)
	g.Go("messages", db.ExpireMessages)
	g.Go("retention", retention(db, pipe, log))
	g.Go("network", ports.Run)
	g.Go("uploads", handler.WorkUploads)
	g.Go("plugins", host.Run)
	g.Go("plugins", warm(host, log))
	g.Go("configuration", watch(c.Dir, append(reloads(c, engine, configs, ports), days.folder(), &folder{name: "portals", reload: func(context.Context) error { return pages.read() }}), log))
	for _, door := range doors {
		g.Go("http", serveHTTP(closing, server, door))
	}
	ready(listener, c, credentials)
	<-g.Done()
	log.Info("stopping")
	time.AfterFunc(stopWithin, cancel)
	return g.Wait()
}

// begin does what may turn out to be impossible as configured.
func begin(c Config, log *slog.Logger) (*calendars, net.Listener, *networkDoors, error) {
	tuneMemory(c)
	days, err := openCalendars(c, log)
	if err != nil {
		return nil, nil, nil, err
	}
	listener, err := net.Listen("tcp", c.HTTP)
	if err != nil {
		return nil, nil, nil, usageError{fmt.Errorf("cannot listen on %s: %w: choose another address with --http", c.HTTP, err)}
	}
	ports, err := openDoors(c, log)
	if err != nil {
		return nil, nil, nil, errors.Join(err, listener.Close())
	}
	return days, listener, ports, nil
}

// openEngine opens the rule engine with its settings. Faults in files are told; the rules without faults run.
func openEngine(ctx context.Context, c Config, r rules.Config) (*rules.Engine, error) {
	r.Dir, r.Zone, r.Wait = filepath.Join(c.Dir, "rules"), c.Zone, c.RulesWait
	r.MaxWindows, r.MaxSamples, r.Service = int(c.Windows), int(c.Samples), c.SelfEntity
	r.Outbox = outbox.Options{Secrets: secretSource(c.Dir), Backoff: c.Backoff}
	engine, err := rules.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, fault := range engine.Faults() {
		r.Logger.Error("rules: " + fault.Error())
	}
	return engine, nil
}

// reloads are the folders and files that are read again when they change.
func reloads(c Config, engine *rules.Engine, configs *parserConfigs, ports *networkDoors) []*folder {
	return []*folder{
		{name: "rules", reload: engine.Reload},
		{name: "parsers", reload: func(context.Context) error { return configs.read(c.Dir) }},
		{name: "plugins", reload: func(context.Context) error { return configs.plugins.read() }},
		{name: mappingFile, reload: ports.readMapping},
	}
}

// limits are those of the HTTP interface.
func (c *Config) limits() api.Limits {
	return api.Limits{Body: c.BodyBytes, Bodies: c.BodiesBytes, UserBodies: c.UserBodies, Upload: c.UploadBytes, UploadIdle: c.UploadIdle, UploadRate: c.UploadRate, UploadFiles: int(c.UploadFiles),
		UploadQueue: int(c.UploadQueue), UploadSpool: c.UploadSpool, UploadResults: int(c.UploadResults), Portals: int(c.PortalsAtOnce), Response: int(c.ResponseBytes), Records: int(c.Records),
		Forecast: int(c.Forecast), Samples: int(c.HeldSamples), Queries: int(c.QueriedSamples), Rejects: int(c.Rejects), Line: int(c.LineBytes), Depth: int(c.JSONDepth), Time: c.RequestTime, Idle: c.AnswerIdle}
}

// webServer returns the server of the interface and the listeners that it serves.
func webServer(c Config, handler http.Handler, listener net.Listener, log *slog.Logger) (*http.Server, []net.Listener, error) {
	server := &http.Server{Handler: secured(c, handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	hurried(server, c)
	doors, err := withTLS(c, server, listener, log)
	return server, doors, err
}

// serveHTTP serves until its context ends; requests in flight then have half of the time of an orderly stop.
func serveHTTP(closing context.Context, server *http.Server, listener net.Listener) func(context.Context) error {
	return func(ctx context.Context) error {
		drained := make(chan struct{})
		stopped := context.AfterFunc(ctx, func() {
			defer close(drained)
			late, cancel := context.WithTimeout(closing, stopWithin/2)
			defer cancel()
			if server.Shutdown(late) != nil {
				server.Close() // requests that do not end are cut
			}
		})
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			stopped()
			return err
		}
		<-drained // Serve returns before the last answer is sent
		return nil
	}
}

func logLevel(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name)) // checked with the settings
	return level
}

// Shares of the memory budget that do not lie on the Go heap.
const (
	cacheBytes  = 32 << 20
	pluginShare = 4 // a quarter of the budget
)

func tuneMemory(c Config) {
	heap := c.Memory - cacheBytes - c.Memory/pluginShare
	debug.SetMemoryLimit(max(heap, leastMemory/2))
}

// credentialsFile holds name:password of the administrator whose password was generated, readable by the server's user alone.
const credentialsFile = "admin-credentials"

func userOptions(c Config, changes *auth.Watch, clock func() core.Time, log *slog.Logger) auth.Options {
	return auth.Options{Clock: clock, Changes: changes, SessionIdle: c.SessionIdle, SessionAge: c.SessionAge, MinPassword: int(c.MinPassword), Guest: c.GuestAccess, AuditEntity: c.AuditEntity, Log: log,
		Lockout: auth.Lockout{Attempts: int(c.LoginAttempts), Delay: c.LoginDelay, MaxDelay: c.LoginDelayMax}}
}

// resetPassword does what the settings say. A fault is told, and no reason not to start.
func resetPassword(ctx context.Context, users *auth.Service, c Config, log *slog.Logger) {
	if c.ResetUser == "" {
		return
	}
	switch done, err := users.ResetPassword(ctx, c.ResetUser, c.ResetPassword); {
	case err != nil:
		log.Error("user.password.reset: "+err.Error(), "user", c.ResetUser)
	case done:
		log.Warn("user.password.reset: the password was set; remove the setting", "user", c.ResetUser)
	}
}

// firstAdmin makes the first administrator and returns what curl needs to act as it: the arguments of -u as the shell reads them.
func firstAdmin(ctx context.Context, users *auth.Service, c Config, log *slog.Logger) (curl string, err error) {
	first, err := users.EnsureAdmin(ctx, c.AdminUser, c.AdminPassword)
	if err != nil {
		return "", fmt.Errorf("first administrator: %w", err)
	}
	resetPassword(ctx, users, c, log)
	path := filepath.Join(c.Data, credentialsFile)
	if first.Generated {
		// A new file in every case: one that is there may be readable by others, and would stay so.
		if err := replaceFile(path, []byte(first.Name+":"+first.Password+"\n")); err != nil {
			return "", fmt.Errorf("credentials of the first administrator: %w", err)
		}
		if term.IsTerminal(int(os.Stdout.Fd())) {
			fmt.Printf("The administrator is %s with the password %s, kept in %s.\n", first.Name, first.Password, path)
		}
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Sprintf(`"$(cat %s)"`, path), nil
	}
	return c.AdminUser + `:"$TIDEMARK_ADMIN_PASSWORD"`, nil
}

// ready prints the line that scripts wait for, and three commands that work as they stand.
func ready(l net.Listener, c Config, credentials string) {
	url := "http://" + l.Addr().String()
	fmt.Printf("tidemark %s is ready on %s\n", version, url)
	if c.LogLevel != "info" && c.LogLevel != "debug" {
		return
	}
	now := core.TimeOf(time.Now()).Std().Format("2006-01-02T15:04:05Z")
	fmt.Printf(`
Try it:
  curl -u %[1]s -d '[{"entity":"pump-3","metric":"temperature","data":[{"d":"%[3]s","v":91.5}]}]' %[2]s/api/v1/series/insert
  curl -u %[1]s -d '[{"entity":"pump-3","metric":"temperature","startDate":"%[3]s","endDate":"now + 1*minute"}]' %[2]s/api/v1/series/query
  curl -u %[1]s -H 'Content-Type: application/json' -d '{"job":"api","build":{"status":"FAILURE"}}' '%[2]s/api/v1/messages/webhook/ci?debug=true'

`, credentials, url, now)
}

func serverURL(c Config, l net.Listener) string {
	if c.ServerURL != "" {
		return strings.TrimSuffix(c.ServerURL, "/")
	}
	return "http://" + l.Addr().String()
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// revision is a number that grows with releases: clients of the contract compare it.
func revision() string {
	var major, minor, patch int
	fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	return fmt.Sprint(25000 + major*10000 + minor*100 + patch)
}

// recoveryOf is what a start found, in numbers.
func recoveryOf(report storage.Report) *api.Recovery {
	return &api.Recovery{Segments: report.Segments, Frames: report.Frames, TornBytes: report.TornBytes,
		Damaged: len(report.Damage), Unreadable: report.Skipped, Millis: report.Duration.Milliseconds()}
}

// healthOf says what is wrong without needing credentials: no names, no values.
func healthOf(report storage.Report, engine *rules.Engine, host *wasm.Host) func() api.Health {
	found := recoveryOf(report)
	return func() api.Health {
		h := api.Health{Status: "ok", Recovery: found}
		if report.Damaged() {
			h.Problems = append(h.Problems, "recovery found damaged data: see the log and tidemark check")
		}
		if s := engine.Status(); s.Faults+s.Waiting > 0 || s.Skipped > 0 {
			h.Problems = append(h.Problems, fmt.Sprintf("rules: %d faults in files (%d rules run as they were before), %d times behind and skipped forward, %d results that the log does not take",
				s.Faults, s.Kept, s.Skipped, s.Waiting))
		}
		if s := engine.Outbox().Status(); s.Dead > 0 || len(s.Disabled) > 0 {
			h.Problems = append(h.Problems, fmt.Sprintf("webhooks: %d given up since the start, %d disabled addresses", s.Dead, len(s.Disabled)))
		}
		for _, p := range host.Plugins() {
			if s := p.Stats(); s.BlockedUntil.After(time.Now()) {
				h.Problems = append(h.Problems, "plugin "+s.Name+" is paused after repeated faults")
			}
		}
		if len(h.Problems) > 0 {
			h.Status = "degraded"
		}
		return h
	}
}

// group runs the parts of a server: the first that ends ends all.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
	parts  int
	ended  chan error
}

func newGroup(ctx context.Context) *group {
	g := &group{ended: make(chan error)}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Go starts a part. Its run returns nil when its context ends.
func (g *group) Go(name string, run func(context.Context) error) {
	g.parts++
	go func() {
		err := run(g.ctx)
		g.cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("%s: %w", name, err)
		} else {
			err = nil
		}
		g.ended <- err
	}()
}

// Done is closed when the parts have been told to stop.
func (g *group) Done() <-chan struct{} { return g.ctx.Done() }

// Wait returns when every part has ended.
func (g *group) Wait() error {
	var errs []error
	for range g.parts {
		errs = append(errs, <-g.ended)
	}
	return errors.Join(errs...)
}
