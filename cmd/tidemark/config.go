package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tidemark-db/tidemark/core/nearest"
	"github.com/tidemark-db/tidemark/core/search"
)

// Config is everything that can be set. A setting comes from, later beats earlier: the default, tidemark.yaml in the configuration
// folder, the environment (TIDEMARK_ and the name in upper case, dots as underscores), a flag.
type Config struct {
	Data      string // data directory
	Dir       string // configuration folder: tidemark.yaml, rules/*.yaml, parsers/*.yaml, plugins/*.wasm
	HTTP      string // listen address
	BackupDir string // absolute, "" = none
	Sync      string // always, never, or an interval
	Zone      *time.Location
	Memory    int64 // bytes; heap, caches and plugins together
	Flush     int64 // bytes; 0 = a share of Memory
	FlushAge  time.Duration
	MergeRate int64 // bytes a second; 0 = no bound
	Disk      int64 // bytes; 0 = no bound
	DiskLow   int64
	Retention int64 // bytes; 0 = no bound
	LogLevel  string
	ServerURL string

	AdminUser     string
	AdminPassword string

	MinPassword   int64
	ResetUser     string
	ResetPassword string
	GuestAccess   bool
	SessionIdle   time.Duration
	SessionAge    time.Duration
	LoginAttempts int64
	LoginDelay    time.Duration
	LoginDelayMax time.Duration
	AuditEntity   string

	HTTPConnections int64
	HTTPPerAddress  int64
	HTTPTime        time.Duration
	HTTPHeader      int64

	HTTPS    string // listen address, "" = none
	TLSCert  string // file, "" = self-signed
	TLSKey   string
	TLSNames string

	CompileCache          string
	PluginMemory          int64
	InterpretedPlugins    bool
	PluginStreams         int64
	PluginStreamsReserved int64 // for each door
	PluginStreamsSender   int64
	StateKeyBytes         int64
	StateValueBytes       int64
	StateKeys             int64
	DeadLetterBytes       int64 // of one
	DeadLettersBytes      int64

	BodyBytes      int64
	BodiesBytes    int64
	UserBodies     int64
	UploadBytes    int64
	UploadIdle     time.Duration
	UploadRate     int64 // bytes a second
	UploadFiles    int64
	UploadQueue    int64
	UploadSpool    int64
	UploadResults  int64
	PortalsAtOnce  int64
	ResponseBytes  int64
	Records        int64
	HeldSamples    int64 // of one series query
	QueriedSamples int64 // of all series queries together
	Forecast       int64
	Rejects        int64
	LineBytes      int64
	JSONDepth      int64
	RequestTime    time.Duration
	AnswerIdle     time.Duration

	SQLMemory  int64 // of one query; 0 = a sixteenth of the budget
	SQLSpill   int64
	SQLQueries int64
	SQLTime    time.Duration
	SQLLength  int64
	SQLColumns int64
	SQLLikes   int64

	Versions   int64 // of an entity
	InsertTime bool
	MessageTTL int64 // seconds

	Synonyms search.Synonyms
	Calendar string // key of the default workday calendar

	SelfMetrics  bool
	SelfEntity   string
	SelfInterval time.Duration
	SelfFile     string

	Network NetworkConfig

	RulesWait time.Duration
	Windows   int64
	Samples   int64
	Backoff   []time.Duration
}

// setting is one row of the table that drives the file, the environment and the flags alike.
type setting struct {
	name  string // as in tidemark.yaml, nested by dots
	value string // default
	help  string
	set   func(c *Config, text string) error
}

var settings = []setting{
	{"data", "./tidemark-data", "data directory", text(func(c *Config) *string { return &c.Data })},
	{"http", "127.0.0.1:8088", "address to listen on; port 0 picks a free one", address(func(c *Config) *string { return &c.HTTP })},
	{"backup.dir", "", "directory below which backups of a running server go; default: none, and so no backups through the interface", directory(func(c *Config) *string { return &c.BackupDir })},
	{"sync", "always", "when writes reach the disk: always, an interval such as 1s (a power cut loses at most that), or never", syncMode},
	{"zone", "Local", "time zone of the server, an IANA name", zone},
	{"memory", "auto", "memory budget: heap, caches and plugins together; auto is a quarter of the machine's, at least 64MiB", memory},
	{"storage.flush", "auto", "recent data in memory, in bytes, from which on it is written to files; auto is a sixteenth of memory, between 4MiB and 32MiB", sizeOr("auto", func(c *Config) *int64 { return &c.Flush })},
	{"storage.flush.age", "1h", "how long data stays in memory and in the journal alone", duration(func(c *Config) *time.Duration { return &c.FlushAge })},
	{"storage.merge.rate", "64MiB", "bytes a second that merges of files may write, so that the journal and queries have the disk as well; off is no bound", sizeOr("off", func(c *Config) *int64 { return &c.MergeRate })},
	{"disk", "off", "bytes that the database may take on the disk, with the uploads that wait: above it writes are refused; off is no bound", sizeOr("off", func(c *Config) *int64 { return &c.Disk })},
	{"disk.low", "64MiB", "free space of the disk below which writes are refused", size(func(c *Config) *int64 { return &c.DiskLow })},
	{"retention.bytes", "off", "bytes of stored data above which the oldest samples and messages go; off keeps them", sizeOr("off", func(c *Config) *int64 { return &c.Retention })},
	{"log.level", "info", "debug, info, warn or error", oneOf(func(c *Config) *string { return &c.LogLevel }, "debug", "info", "warn", "error")},
	{"server.url", "", "address of this server in links; default: the one it listens on", text(func(c *Config) *string { return &c.ServerURL })},
	{"admin.user", "admin", "name of the administrator that the first start creates", text(func(c *Config) *string { return &c.AdminUser })},
	{"admin.password", "", "its password; default: a generated one, written to admin-credentials in the data directory", text(func(c *Config) *string { return &c.AdminPassword })},
	{"user.password.min.length", "6", "least number of characters of a new password", size(func(c *Config) *int64 { return &c.MinPassword })},
	{"user.password.reset.username", "", "user who gets the password below at the start, so that the owner of the machine can always get in", text(func(c *Config) *string { return &c.ResetUser })},
	{"user.password.reset.password", "", "that password", text(func(c *Config) *string { return &c.ResetPassword })},
	{"api.guest.access.enabled", "false", "let callers without credentials use the reading methods, for all entities", boolean(func(c *Config) *bool { return &c.GuestAccess })},
	{"login.session.idle", "30m", "how long a session lives without a request", duration(func(c *Config) *time.Duration { return &c.SessionIdle })},
	{"login.session.max", "720h", "how long a session lives at most, however often it is used", positive(func(c *Config) *time.Duration { return &c.SessionAge })},
	{"login.attempts", "10", "different wrong passwords of one user from one address before more are refused for a while", size(func(c *Config) *int64 { return &c.LoginAttempts })},
	{"login.delay", "1s", "how long they are refused first; it doubles with each further wrong password", duration(func(c *Config) *time.Duration { return &c.LoginDelay })},
	{"login.delay.max", "5m", "how long they are refused at most", duration(func(c *Config) *time.Duration { return &c.LoginDelayMax })},
	{"audit.entity", "", "entity that gets a message of type audit for each login and administrative change; default: they are only logged", text(func(c *Config) *string { return &c.AuditEntity })},
	{"http.connections", "4096", "open connections of HTTP and HTTPS together", size(func(c *Config) *int64 { return &c.HTTPConnections })},
	{"http.connections.address", "2048", "open connections of one client address, an IPv6 address by its /64", size(func(c *Config) *int64 { return &c.HTTPPerAddress })},
	{"http.header", "64KiB", "bytes of the head of a request: its line with the query string, and its headers", size(func(c *Config) *int64 { return &c.HTTPHeader })},
	{"http.time", "5m", "how long a request may take to arrive, and its answer to leave; uploads and command streams are exempt", duration(func(c *Config) *time.Duration { return &c.HTTPTime })},
	{"https", "", "address to listen on with TLS, for example 0.0.0.0:8443; default: none", optionalAddress(func(c *Config) *string { return &c.HTTPS })},
	{"tls.cert", "", "file with the certificate and its chain (PEM); default: a self-signed one, kept in the data directory. It is read again when it changes", text(func(c *Config) *string { return &c.TLSCert })},
	{"tls.key", "", "file with its private key (PEM)", text(func(c *Config) *string { return &c.TLSKey })},
	{"tls.names", "", "more host names and addresses of the self-signed certificate, separated by blanks or commas", text(func(c *Config) *string { return &c.TLSNames })},
	{"compile.cache", "", "folder for compiled plugins; default: wasm-cache in the data directory", text(func(c *Config) *string { return &c.CompileCache })},
	{"plugins.memory", "64MiB", "memory of one plugin instance", size(func(c *Config) *int64 { return &c.PluginMemory })},
	{"plugins.interpreted", "false", "run plugins/*.wasm also where they can only be interpreted, some 50 times slower", boolean(func(c *Config) *bool { return &c.InterpretedPlugins })},
	{"plugins.streams", "16", "instances of one plugin that are taken by csv or nmon streams at one time", size(func(c *Config) *int64 { return &c.PluginStreams })},
	{"plugins.streams.reserved", "4", "of them kept for each of two doors, uploads over HTTP and streams over TCP, so that neither can take them all", size(func(c *Config) *int64 { return &c.PluginStreamsReserved })},
	{"plugins.streams.sender", "8", "of them that one user over HTTP, or one address over TCP, may take", size(func(c *Config) *int64 { return &c.PluginStreamsSender })},
	{"plugins.state.key", "256", "bytes of a key of what a plugin remembers", size(func(c *Config) *int64 { return &c.StateKeyBytes })},
	{"plugins.state.value", "16KiB", "bytes of a value of what a plugin remembers", size(func(c *Config) *int64 { return &c.StateValueBytes })},
	{"plugins.state.keys", "256", "keys of what one plugin remembers", size(func(c *Config) *int64 { return &c.StateKeys })},
	{"rules.windows", "100000", "windows of all rules together", size(func(c *Config) *int64 { return &c.Windows })},
	{"rules.samples", "5000000", "samples in the windows of all rules together", size(func(c *Config) *int64 { return &c.Samples })},
	{"webhooks.backoff", "5s,5m,30m,2h,5h,10h,14h,20h,24h", "waits between the attempts of a notification; after the last it becomes a dead letter", durations},
	{"limits.body", "64MiB", "largest decompressed request body", size(func(c *Config) *int64 { return &c.BodyBytes })},
	{"limits.upload", "1GiB", "largest decompressed csv or nmon upload", size(func(c *Config) *int64 { return &c.UploadBytes })},
	{"upload.idle", "30s", "how long the sender of an upload may keep the server waiting for bytes", positive(func(c *Config) *time.Duration { return &c.UploadIdle })},
	{"upload.rate", "1KiB", "bytes a second that an upload has to bring on average while the server waits for it", size(func(c *Config) *int64 { return &c.UploadRate })},
	{"upload.files", "10000", "files in an archive that is uploaded", size(func(c *Config) *int64 { return &c.UploadFiles })},
	{"upload.queue", "64", "uploads with wait=false that have not ended; more are asked to come back", size(func(c *Config) *int64 { return &c.UploadQueue })},
	{"upload.spool", "1GiB", "bytes of all their bodies together, as they were sent: they lie in uploads of the data directory until they are processed", size(func(c *Config) *int64 { return &c.UploadSpool })},
	{"upload.results", "100", "of those that have ended, how many /api/v1/uploads shows", size(func(c *Config) *int64 { return &c.UploadResults })},
	{"limits.portals", "0", "portals that are drawn at one time; others wait 2 s and are then asked to come back; 0 = one a processor", count(func(c *Config) *int64 { return &c.PortalsAtOnce })},
	{"limits.records", "1000000", "records in one request", size(func(c *Config) *int64 { return &c.Records })},
	{"limits.queries", "12000000", "samples that all series queries together may hold, 16 bytes each; at least twice limits.samples", size(func(c *Config) *int64 { return &c.QueriedSamples })},
	{"limits.samples", "6000000", "samples that a series query may hold in memory at one time, 16 bytes each", size(func(c *Config) *int64 { return &c.HeldSamples })},
	{"limits.forecast", "50000", "samples that the forecast of one series reads, and that it gives", size(func(c *Config) *int64 { return &c.Forecast })},
	{"limits.line", "512KiB", "bytes of one text command; the contract allows 131072 characters", size(func(c *Config) *int64 { return &c.LineBytes })},
	{"limits.bodies", "256MiB", "all request bodies in memory at one time", size(func(c *Config) *int64 { return &c.BodiesBytes })},
	{"limits.bodies.user", "0", "of them those of one user; 0 = half", count(func(c *Config) *int64 { return &c.UserBodies })},
	{"limits.response", "256MiB", "largest answer", size(func(c *Config) *int64 { return &c.ResponseBytes })},
	{"limits.rejects", "100", "rejected lines that an upload lists; more are counted", size(func(c *Config) *int64 { return &c.Rejects })},
	{"limits.dead_letter", "1MiB", "bytes that are kept of an input which a plugin could not take", size(func(c *Config) *int64 { return &c.DeadLetterBytes })},
	{"limits.dead_letters", "64MiB", "all such dead letters as they are stored, compressed; the oldest are dropped", size(func(c *Config) *int64 { return &c.DeadLettersBytes })},
	{"limits.depth", "64", "nesting of JSON bodies", size(func(c *Config) *int64 { return &c.JSONDepth })},
	{"limits.time", "30s", "how long a request may read and evaluate; uploads and command streams are exempt", duration(func(c *Config) *time.Duration { return &c.RequestTime })},
	{"limits.idle", "2m", "how long a client may take for 64 KiB of a result that is streamed to it", positive(func(c *Config) *time.Duration { return &c.AnswerIdle })},
	{"sql.memory", "auto", "memory of one query for sorting, grouping and joining; rows and groups that do not fit go to files, one group or key of a join that does not is an error; auto is a sixteenth of memory, between 8MiB and 256MiB", sizeOr("auto", func(c *Config) *int64 { return &c.SQLMemory })},
	{"sql.spill", "1GiB", "bytes of temporary files of one query, in spill of the data directory, for what is sorted, grouped or made DISTINCT and does not fit sql.memory; off = none", sizeOr("off", func(c *Config) *int64 { return &c.SQLSpill })},
	{"sql.queries", "8", "queries that run at one time, and likewise those of which only the columns are asked for; others wait", size(func(c *Config) *int64 { return &c.SQLQueries })},
	{"sql.time", "10m", "how long a query may take, with the reading of its result", positive(func(c *Config) *time.Duration { return &c.SQLTime })},
	{"sql.length", "1MiB", "bytes of a statement", size(func(c *Config) *int64 { return &c.SQLLength })},
	{"sql.columns", "4096", "columns of a SELECT, and keys of GROUP BY, ORDER BY or ROW_NUMBER", size(func(c *Config) *int64 { return &c.SQLColumns })},
	{"sql.metric.like.limit", "50", "metrics that a pattern in a condition of atsd_series may match", size(func(c *Config) *int64 { return &c.SQLLikes })},
	{"entity.versions", "1000", "versions of an entity that are kept: the creation and the latest; at least 2", size(func(c *Config) *int64 { return &c.Versions })},
	{"messages.ttl", "31536000", "seconds from their receipt for which messages are kept, 365 days; 0 = forever (messages.timeToLive of the contract)", count(func(c *Config) *int64 { return &c.MessageTTL })},
	{"default.addInsertTime", "true", "lists of metrics and entities show lastInsertDate unless they are asked not to", boolean(func(c *Config) *bool { return &c.InsertTime })},
	{"default.holiday.calendar", "", "key of the workday calendar that counts where none is named: a built-in one such as usa, or a file calendars/KEY.yaml of the configuration folder; default: Monday to Friday", text(func(c *Config) *string { return &c.Calendar })},
	{"search.synonyms", "", "file with lines `word => synonym, synonym`: a search for one of them finds all; default: none", synonymFile},
	{"self.metrics", "false", "store what the server measures of itself as series; an idle server then writes them, and nothing else", boolean(func(c *Config) *bool { return &c.SelfMetrics })},
	{"self.entity", "tidemark", "entity of these series", text(func(c *Config) *string { return &c.SelfEntity })},
	{"self.interval", "15s", "how often the server measures itself", duration(func(c *Config) *time.Duration { return &c.SelfInterval })},
	{"self.file", "", "text file that holds the last measurement, NAME=VALUE a line; default: none", text(func(c *Config) *string { return &c.SelfFile })},
	{"tcp", "auto", "address for text commands and the line protocols of Graphite, StatsD and tcollector over TCP, or off; auto is 127.0.0.1:8081 when http has its port 8088, and off otherwise", door(func(c *Config) *string { return &c.Network.TCP }, "auto", "off")},
	{"tcp.user", "", "user that senders over TCP act as; needed beyond loopback, where without one everybody may write data and settings", text(func(c *Config) *string { return &c.Network.TCPUser })},
	{"tcp.disconnect", "true", "close a connection after a malformed command (input.disconnect.on.error of the contract)", boolean(func(c *Config) *bool { return &c.Network.Disconnect })},
	{"tcp.connections", "4096", "open connections, those of pickle included", size(func(c *Config) *int64 { return &c.Network.Connections })},
	{"tcp.connections.address", "2048", "open connections of one client address, an IPv6 address by its /64", size(func(c *Config) *int64 { return &c.Network.PerAddress })},
	{"tcp.idle", "5m", "silence after which a connection is closed; ping keeps it open", duration(func(c *Config) *time.Duration { return &c.Network.Idle })},
	{"tcp.command", "30s", "time from the first byte of a command to its last", duration(func(c *Config) *time.Duration { return &c.Network.Command })},
	{"tcp.memory", "32MiB", "buffers of all connections with text commands together", size(func(c *Config) *int64 { return &c.Network.Memory })},
	{"tcp.rate", "0", "commands a second of one connection, which is slowed down, and of all UDP, where more is dropped; 0 = no limit", count(func(c *Config) *int64 { return &c.Network.Rate })},
	{"stream.rest", "100ms", "silence after which what a csv or nmon stream has sent is converted", positive(func(c *Config) *time.Duration { return &c.Network.StreamRest })},
	{"stream.latency", "1s", "how long lines of such a stream wait to be converted with those after them while it is never silent", positive(func(c *Config) *time.Duration { return &c.Network.StreamLatency })},
	{"nmon.head", "256KiB", "bytes that are kept of the headers of one nmon file: after a reconnect its sender may send rows alone", size(func(c *Config) *int64 { return &c.Network.Head })},
	{"nmon.heads", "8MiB", "bytes of the headers of all nmon files; the oldest are dropped", size(func(c *Config) *int64 { return &c.Network.Heads })},
	{"nmon.heads.files", "4096", "nmon files of which headers are kept; the oldest are dropped", size(func(c *Config) *int64 { return &c.Network.HeadFiles })},
	{"nmon.heads.age", "48h", "how long they are kept after the last connection", positive(func(c *Config) *time.Duration { return &c.Network.HeadAge })},
	{"udp", "auto", "the same over UDP; auto is 127.0.0.1:8082", door(func(c *Config) *string { return &c.Network.UDP }, "auto", "off")},
	{"udp.user", "", "user that senders over UDP act as; needed beyond loopback", text(func(c *Config) *string { return &c.Network.UDPUser })},
	{"udp.datagram", "65507", "bytes of one datagram", size(func(c *Config) *int64 { return &c.Network.Datagram })},
	{"udp.queue", "8MiB", "datagrams that wait for the store; more are dropped", size(func(c *Config) *int64 { return &c.Network.Queue })},
	{"udp.buffer", "8MiB", "what the system keeps of the socket", size(func(c *Config) *int64 { return &c.Network.UDPBuffer })},
	{"pickle", "off", "address for the pickle protocol of Graphite, for example 127.0.0.1:8084, or off", door(func(c *Config) *string { return &c.Network.Pickle }, "off")},
	{"pickle.user", "", "user that senders of pickles act as; needed beyond loopback", text(func(c *Config) *string { return &c.Network.PickleUser })},
	{"pickle.frame", "64KiB", "bytes of one pickled message", size(func(c *Config) *int64 { return &c.Network.Frame })},
	{"influx.entity", "host", "tag of Influx lines that becomes the entity", text(func(c *Config) *string { return &c.Network.InfluxEntity })},
	{"opentsdb.ignore", "Environment Role", "tags that are left out of OpenTSDB points, ignoring case (scollector.ignore.tags of the contract)", text(func(c *Config) *string { return &c.Network.IgnoreTags })},
	{"rules.wait", "250ms", "how long an insert waits for rules to see it", duration(func(c *Config) *time.Duration { return &c.RulesWait })},
}

// loadConfig collects all settings. Every fault is listed, with where it stands.
func loadConfig(dir string, flags map[string]string, env []string) (Config, error) {
	c := Config{Dir: dir}
	var faults []error
	apply := func(source, name, value string) {
		s := findSetting(name)
		if s == nil {
			faults = append(faults, fmt.Errorf("%s: no setting is called %q%s", source, name, suggestion(name)))
			return
		}
		if err := s.set(&c, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", source, name, err))
		}
	}
	for _, s := range settings {
		apply("default", s.name, s.value)
	}
	file, err := readSettings(filepath.Join(dir, "tidemark.yaml"))
	if err != nil {
		faults = append(faults, err)
	}
	for _, name := range sortedNames(file) {
		apply("tidemark.yaml", name, file[name])
	}
	for _, s := range settings {
		key := envName(s.name)
		for _, pair := range env {
			if value, ok := strings.CutPrefix(pair, key+"="); ok {
				apply("environment variable "+key, s.name, value)
			}
		}
	}
	for _, name := range sortedNames(flags) {
		apply("--"+name, name, flags[name])
	}
	if c.CompileCache == "" {
		c.CompileCache = filepath.Join(c.Data, "wasm-cache")
	}
	if err := checkTLS(c); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return c, errors.Join(faults...)
	}
	return c, nil
}

func findSetting(name string) *setting {
	for i := range settings {
		if settings[i].name == name {
			return &settings[i]
		}
	}
	return nil
}

func envName(name string) string {
	return "TIDEMARK_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// suggestion names the closest setting, if one is close.
func suggestion(name string) string {
	known := make([]string, len(settings))
	for i, s := range settings {
		known[i] = s.name
	}
	if meant := nearest.Name(name, known, 3); meant != "" {
		return fmt.Sprintf(", did you mean %q?", meant)
	}
	return ""
}

// readSettings reads a settings file into dotted names. A file that does not exist has no settings.
func readSettings(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	flat := map[string]string{}
	flatten(flat, "", doc)
	return flat, nil
}

func flatten(into map[string]string, prefix string, doc map[string]any) {
	for name, value := range doc {
		if nested, ok := value.(map[string]any); ok {
			flatten(into, prefix+name+".", nested)
			continue
		}
		into[prefix+name] = fmt.Sprint(value)
	}
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = v
		return nil
	}
}

// directory is an absolute path, or "".
func directory(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) (err error) {
		if v != "" {
			v, err = filepath.Abs(v)
		}
		*field(c) = v
		return err
	}
}

func address(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		_, port, err := net.SplitHostPort(v)
		if err != nil {
			return fmt.Errorf("%q is not an address: write host:port, for example 127.0.0.1:8088", v)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("%q is not a port between 0 and 65535 (got %d)", port, n)
		}
		*field(c) = v
		return nil
	}
}

// synonymFile reads the file that a path names.
func synonymFile(c *Config, path string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c.Synonyms, err = search.ParseSynonyms(string(text))
	return err
}

// optionalAddress is an address or nothing.
func optionalAddress(field func(*Config) *string) func(*Config, string) error {
	set := address(field)
	return func(c *Config, v string) error {
		if v == "" {
			*field(c) = ""
			return nil
		}
		return set(c, v)
	}
}

func oneOf(field func(*Config) *string, allowed ...string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if !slices.Contains(allowed, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(allowed, ", "))
		}
		*field(c) = v
		return nil
	}
}

func syncMode(c *Config, v string) error {
	if v != "always" && v != "never" {
		if d, err := time.ParseDuration(v); err != nil || d <= 0 {
			return fmt.Errorf("%q is neither always, never nor an interval such as 1s", v)
		}
	}
	c.Sync = v
	return nil
}

func zone(c *Config, v string) error {
	if v == "Local" {
		v = localZone()
	}
	loc, err := time.LoadLocation(v)
	if err != nil {
		return fmt.Errorf("%q is not an IANA time zone such as Europe/Berlin", v)
	}
	c.Zone = loc
	return nil
}

// localZone is the IANA name of the system's zone, which clients ask for; UTC when the system does not tell.
func localZone() string {
	if name := os.Getenv("TZ"); name != "" {
		return strings.TrimPrefix(name, ":")
	}
	if target, err := os.Readlink("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
			return name
		}
	}
	return "UTC"
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*field(c) = b
		return nil
	}
}

func duration(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration such as 250ms, 10s or 2h", v)
		}
		*field(c) = d
		return nil
	}
}

// positive is a duration whose zero would mean the default, and surprise who wants none.
func positive(field func(*Config) *time.Duration) func(*Config, string) error {
	set := duration(field)
	return func(c *Config, v string) error {
		if err := set(c, v); err != nil {
			return err
		}
		if *field(c) == 0 {
			return fmt.Errorf("%q is no time at all: write 30s or 720h, for example", v)
		}
		return nil
	}
}

func durations(c *Config, v string) error {
	c.Backoff = nil
	for part := range strings.SplitSeq(v, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a list of durations such as 5s,5m,2h", v)
		}
		c.Backoff = append(c.Backoff, d)
	}
	return nil
}

func size(field func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := parseSize(v)
		if err != nil {
			return err
		}
		*field(c) = n
		return nil
	}
}

// sizeOr takes a size, or a word that stands for 0.
func sizeOr(word string, field func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v == word {
			*field(c) = 0
			return nil
		}
		if err := size(field)(c, v); err != nil {
			return fmt.Errorf("%w, nor %s", err, word)
		}
		return nil
	}
}

// leastMemory is what an idle server with one plugin needs.
const leastMemory = 64 << 20

func memory(c *Config, v string) error {
	if v != "auto" {
		n, err := parseSize(v)
		if err == nil && n < leastMemory {
			err = fmt.Errorf("%q is less than 64MiB, which an idle server needs", v)
		}
		c.Memory = n
		return err
	}
	c.Memory = 1 << 30 // where the system does not say how much it has
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(data)); len(fields) > 1 && fields[0] == "MemTotal:" {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				c.Memory = max(leastMemory, kib<<10/4)
			}
		}
	}
	return nil
}

// parseSize reads a whole number with an optional unit of 1024 or 1000: 64MiB, 2GB, 500000.
func parseSize(v string) (int64, error) {
	digits := strings.TrimRight(v, "BKMGTiB ")
	units := map[string]int64{"": 1, "B": 1, "K": 1 << 10, "KiB": 1 << 10, "KB": 1e3, "M": 1 << 20, "MiB": 1 << 20, "MB": 1e6,
		"G": 1 << 30, "GiB": 1 << 30, "GB": 1e9, "T": 1 << 40, "TiB": 1 << 40, "TB": 1e12}
	unit, ok := units[strings.TrimSpace(v[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is not a size such as 64MiB", v)
	}
	return n * unit, nil
}
