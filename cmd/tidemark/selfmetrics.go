package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/api"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/storage"
)

// instruments is everything that the server knows of itself in numbers.
type instruments struct {
	db       *storage.DB
	pipe     *ingest.Pipeline
	reads    *countedReader
	engine   *rules.Engine
	sessions func() int
	now      func() core.Time
	doors    func() []selfmetrics.Value // of the network listeners
	commands func() uint64              // malformed ones over HTTP; see serving
	data     string                     // data directory
	rebuilt  time.Duration              // what the last start took: the indexes are made then

	inFlight atomic.Int64 // HTTP requests

	census struct {
		sync.Mutex
		list []selfmetrics.Value
		next time.Time // not taken again before
	}
}

// serving is the API with its requests counted while they are at work. It is called once, before the first request and the first round.
func (m *instruments) serving(next *api.Server) http.Handler {
	m.commands = next.MalformedCommands
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.inFlight.Add(1)
		defer m.inFlight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// selfOptions says where the rounds go: they are taken always, so that they can be asked for, and stored only when that is wanted.
func selfOptions(c Config, m *instruments, pipe core.Ingester, clock func() core.Time, log *slog.Logger) selfmetrics.Options {
	o := selfmetrics.Options{Collect: m.collect, Now: clock, Interval: c.SelfInterval, Entity: c.SelfEntity, Host: hostname(), File: textFile(c.SelfFile), Logger: log}
	if c.SelfMetrics {
		o.Ingest = pipe
	}
	return o
}

// collect takes all values; the names are those of the contract.
func (m *instruments) collect() []selfmetrics.Value {
	var v values
	m.ingested(&v)
	m.read(&v)
	m.engineValues(&v)
	v.list = append(v.list, m.doors()...)
	v.rate("api_command_malformed_per_second", m.commands())
	v.count("http.sessions", float64(m.sessions()))
	v.count("http.thread_pool_used", float64(m.inFlight.Load())) // requests at work: there is no pool, and so no size of one
	m.stored(&v)
	m.known(&v)
	processValues(&v)
	machineValues(&v)
	v.disk("disk", m.data)
	if temp := os.TempDir(); !sameFileSystem(m.data, temp) {
		v.disk("disk_tmp", temp)
	}
	return v.list
}

// values collects.
type values struct{ list []selfmetrics.Value }

func (v *values) rate(name string, total uint64) {
	v.list = append(v.list, selfmetrics.Value{Name: name, Kind: selfmetrics.PerSecond, N: float64(total)})
}

func (v *values) perMinute(name string, total uint64) {
	v.list = append(v.list, selfmetrics.Value{Name: name, Kind: selfmetrics.PerMinute, N: float64(total)})
}

// count adds a number of things, or of bytes.
func (v *values) count(name string, n float64, tags ...core.Tag) {
	v.list = append(v.list, selfmetrics.Value{Name: name, Tags: tags, N: n, Whole: true})
}

func (v *values) gauge(name string, n float64, tags ...core.Tag) {
	v.list = append(v.list, selfmetrics.Value{Name: name, Tags: tags, N: n})
}

func (m *instruments) ingested(v *values) {
	c := m.pipe.Counts()
	v.rate("metric_received_per_second", c.Samples)
	v.rate("metric_writes_per_second", c.SamplesStored)
	v.rate("metric_append_per_second", c.SamplesAppended)
	v.rate("non_persistent_metric_received_per_second", c.SamplesUnstored)
	v.rate("filtered_metric_received_per_second", c.SamplesDiscarded)
	v.rate("disabled_metric_received_per_second", c.DisabledMetric)
	v.rate("disabled_entity_received_per_second", c.DisabledEntity)
	v.rate("property_received_per_second", c.Properties)
	v.rate("property_writes_per_second", c.PropertiesStored)
	v.rate("property_deleted_per_second", c.PropertiesDeleted)
	v.rate("invalid_property_received_per_second", c.PropertiesInvalid)
	v.rate("disabled_properties_received_per_second", 0) // the input of properties cannot be switched off
	v.rate("message_received_per_second", c.Messages)
	v.rate("message_writes_per_second", c.MessagesStored)
	v.rate("invalid_message_received_per_second", c.MessagesInvalid)
	// An insert is answered when it is stored: nothing waits in a queue, and nothing is lost in one.
	for _, name := range [...]string{"series_queue_size", "properties_queue_size", "series_rejected_count", "properties_rejected_count"} {
		v.count(name, 0)
	}
}

func (m *instruments) read(v *values) {
	r := m.reads
	v.rate("metric_reads_per_second", r.samples.Load())
	v.rate("metric_gets_per_second", r.series.Load())
	v.rate("property_reads_per_second", r.records.Load())
	v.rate("property_gets_per_second", r.properties.Load())
	v.rate("message_reads_per_second", r.texts.Load())
	v.rate("message_gets_per_second", r.messages.Load())
}

func (m *instruments) engineValues(v *values) {
	out := m.engine.Outbox().Status()
	v.perMinute("web_service_notifications_per_minute", out.Delivered)
	v.perMinute("email_notifications_per_minute", 0)
	s := m.engine.Status()
	v.count("rules.windows", float64(s.Windows))
	v.count("rules.open_alerts", float64(s.OpenAlerts))
	v.perMinute("actions_per_minute", s.Actions)
	v.rate("expired_metric_received_per_second", s.Expired)
	v.rate("forward_metric_received_per_second", s.Forward)
	v.rate("rules.evaluations_per_second", s.Evaluations)
	v.rate("rules.errors_per_second", s.Errors)
	v.count("rules.notifications_pending", float64(out.Pending))
}

func (m *instruments) stored(v *values) {
	s := m.db.Status()
	v.count("last.series.count", float64(s.Series))
	v.count("messages.count", float64(s.Messages))
	v.count("properties.count", float64(s.Records))
	v.perMinute("alert_log_writes_per_minute", uint64(s.History))
	keys := core.Tag{Name: "cache", Value: "series"} // the one cache that may drop what it holds
	v.count("cache.size", float64(s.Cache.Entries), keys)
	v.gauge("cache.used_percent", float64(s.Cache.Bytes)/float64(max(s.Cache.Limit, 1))*100, keys)
	// The indexes follow each write. They are built once, when the journal is replayed, and are in memory: nothing of them is on the disk.
	v.count("index.series_count", float64(s.Series))
	v.count("index.build_time", float64(m.rebuilt.Milliseconds()), core.Tag{Name: "type", Value: "full"})
	v.gauge("index.directory_size", 0)
	entries, err := os.ReadDir(m.data)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			v.gauge("table_size", folderSize(filepath.Join(m.data, e.Name()))/(1<<20), core.Tag{Name: "table", Value: e.Name()})
		}
	}
}

// windows in which entities and metrics are counted that got samples.
var windows = [...]struct {
	suffix string
	length time.Duration
}{{".1h", time.Hour}, {".1d", 24 * time.Hour}, {".1w", 7 * 24 * time.Hour}}

// censusShare bounds the time that goes into counting what is known to a hundredth: a million entities are then counted every few seconds.
const censusShare = 100

// known adds the counts of entities and metrics.
func (m *instruments) known(v *values) {
	c := &m.census
	c.Lock()
	defer c.Unlock()
	if began := time.Now(); !began.Before(c.next) {
		c.list = m.count()
		c.next = began.Add(censusShare * time.Since(began))
	}
	v.list = append(v.list, c.list...)
}

// count counts entities and metrics, all of them and those with samples of the last hour, day and week. The store keeps the time of their newest
// sample at hand, so that no series is looked at.
func (m *instruments) count() []selfmetrics.Value {
	var v values
	ctx, now := context.Background(), m.now() // reads memory only
	entities, metrics := newest{now: now}, newest{now: now}
	for e, err := range m.db.Entities(ctx, core.MetaQuery{}) {
		if err == nil {
			entities.add(e.Last, e.Inserted)
		}
	}
	for e, err := range m.db.Metrics(ctx, core.MetaQuery{}) {
		if err == nil {
			metrics.add(e.Last, e.Inserted)
		}
	}
	entities.put(&v, "last.entity.count")
	metrics.put(&v, "last.metric.count")
	return v.list
}

// newest counts things by the time of their newest sample.
type newest struct {
	now    core.Time
	all    int
	within [len(windows)]int
}

func (n *newest) add(last core.Time, some bool) {
	n.all++
	for i, w := range windows {
		if some && last >= n.now-core.Time(w.length.Milliseconds()) {
			n.within[i]++
		}
	}
}

func (n *newest) put(v *values, name string) {
	v.count(name, float64(n.all))
	for i, w := range windows {
		v.count(name+w.suffix, float64(n.within[i]))
	}
}

// folderSize is what the files of a folder take, in bytes. Files that vanish meanwhile count nothing.
func folderSize(dir string) float64 {
	total := 0.0
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			total += float64(info.Size())
		}
		return nil
	})
	return total
}

// processValues reads what the runtime knows: its heap stands for that of the contract.
func processValues(v *values) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(samples)
	used, total, limit := float64(samples[0].Value.Uint64()), float64(samples[1].Value.Uint64()), float64(samples[2].Value.Uint64())
	v.count("jvm_memory_used", used)
	v.count("jvm_memory_max", limit)
	v.count("jvm_memory_free", max(0, limit-used))
	v.gauge("jvm_memory_used_percent", used/limit*100)
	v.count("jvm_committed_virtual_memory_size", total)
	collector := core.Tag{Name: "collector", Value: "go"}
	v.list = append(v.list, selfmetrics.Value{Name: "gc_invocations_per_minute", Tags: core.Tags{collector}, Kind: selfmetrics.PerMinute, N: float64(samples[3].Value.Uint64())},
		selfmetrics.Value{Name: "gc_time_percent", Tags: core.Tags{collector}, Kind: selfmetrics.Percent, N: samples[4].Value.Float64() * 100 / float64(runtime.NumCPU())})
	v.count("goroutines", float64(samples[5].Value.Uint64()))
	if busy := selfmetrics.ProcessorTime(); busy > 0 {
		v.list = append(v.list, selfmetrics.Value{Name: "jvm_process_cpu_load", Kind: selfmetrics.Percent, N: busy.Seconds() * 100 / float64(runtime.NumCPU())})
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		v.count("jvm_max_file_descriptor_count", float64(files.Cur))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		v.count("jvm_open_file_descriptor_count", float64(len(open)-1)) // less the one that reads the folder
	}
}

// machineValues reads what only Linux tells.
func machineValues(v *values) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		var load float64
		if _, err := fmt.Sscan(string(text), &load); err == nil {
			v.gauge("jvm_system_load_average", load)
		}
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return
	}
	names := map[string]string{"MemTotal": "jvm_total_physical_memory_size", "MemAvailable": "jvm_free_physical_memory_size",
		"SwapTotal": "jvm_total_swap_space_size", "SwapFree": "jvm_free_swap_space_size"}
	for line := range strings.Lines(string(text)) {
		field, rest, _ := strings.Cut(line, ":")
		var kib float64
		if name := names[field]; name != "" {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				v.count(name, kib*1024)
			}
		}
	}
}

// disk adds the size of the file system that holds a path.
func (v *values) disk(prefix, path string) {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return
	}
	block := float64(s.Bsize)
	v.count(prefix+"_totalspace", float64(s.Blocks)*block)
	v.count(prefix+"_unallocatedspace", float64(s.Bfree)*block)
	v.count(prefix+"_usablespace", float64(s.Bavail)*block)
}

// sameFileSystem reports whether two paths lie on one; it is true when that cannot be told.
func sameFileSystem(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) != nil || syscall.Stat(b, &y) != nil || x.Dev == y.Dev
}

// prometheus prints what collect takes in the text form of Prometheus. Totals get the suffix _total instead of that of a rate.
func (m *instruments) prometheus(w io.Writer) {
	for _, v := range m.collect() {
		name := "tidemark_" + strings.NewReplacer(".", "_", "-", "_").Replace(v.Name)
		if v.Kind != selfmetrics.Gauge {
			total, ok := strings.CutSuffix(strings.Replace(name, "_per_minute", "_per_second", 1), "_per_second")
			if !ok {
				continue // a share of time: the metrics of the process have it in seconds
			}
			name = total + "_total"
		}
		fmt.Fprintf(w, "%s%s %v\n", name, labels(v.Tags), v.N)
	}
}

func labels(tags core.Tags) string {
	if len(tags) == 0 {
		return ""
	}
	parts := make([]string, len(tags))
	for i, t := range tags {
		parts[i] = fmt.Sprintf("%s=%q", t.Name, t.Value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// countedReader counts what requests read.
type countedReader struct {
	*storage.DB
	series, samples, properties, records, messages, texts atomic.Uint64
}

func (r *countedReader) Series(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	r.series.Add(1)
	return counted(r.DB.Series(ctx, q), &r.samples, func(b core.Block) int { return len(b.Times) })
}

func (r *countedReader) Properties(ctx context.Context, q core.PropertyQuery) iter.Seq2[core.PropertyRecord, error] {
	r.properties.Add(1)
	return counted(r.DB.Properties(ctx, q), &r.records, one)
}

func (r *countedReader) Messages(ctx context.Context, q core.MessageQuery) iter.Seq2[core.Message, error] {
	r.messages.Add(1)
	return counted(r.DB.Messages(ctx, q), &r.texts, one)
}

// Select counts what is read in pieces, be it by their statistics alone.
func (r *countedReader) Select(ctx context.Context, q core.SeriesQuery) (core.Selection, error) {
	r.series.Add(1)
	s, err := r.DB.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	return countedSelection{s, r}, nil
}

type countedSelection struct {
	core.Selection
	reader *countedReader
}

func (s countedSelection) Scan(ctx context.Context, visit core.Visit) error {
	return s.Selection.Scan(ctx, func(n int, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
		return visit(n, key, counted(pieces, &s.reader.samples, pieceSamples))
	})
}

// pieceSamples counts the numbers of a piece.
func pieceSamples(p core.Piece) int {
	if p.Stats != nil {
		return int(p.Stats.Count)
	}
	b, err := p.Rows()
	if err != nil {
		return 0 // the reader meets the error as well
	}
	return len(b.Times)
}

func one[T any](T) int { return 1 }

// counted adds what was read when the reading ends.
func counted[T any](in iter.Seq2[T, error], total *atomic.Uint64, size func(T) int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		defer func() { total.Add(uint64(n)) }()
		for v, err := range in {
			if err == nil {
				n += size(v)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// textFile returns a function that replaces a file as a whole.
func textFile(path string) func([]byte) error {
	if path == "" {
		return nil
	}
	return func(text []byte) error {
		next := path + ".next"
		return errors.Join(os.WriteFile(next, text, 0o644), os.Rename(next, path))
	}
}
