package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// unit says how a value prints.
type unit int

const (
	seconds unit = iota
	samplesPerSecond
	bytesPerSample
	memory
	microseconds // of processor time a sample
)

// measure is a row of the table. Ratios are Tidemark's value by the better of the peers named in against.
type measure struct {
	name    string
	part    string
	label   string
	unit    unit
	against string  // peers, separated by blanks; "": judged by itself
	target  float64 // ratio: at least for rates, at most for all else; or, without against, the value itself; 0: shown only
}

const vm, either = "victoriametrics", "victoriametrics duckdb"

var measures = []measure{
	{"ingest", "ingest", "ingest of text, sync=1s, {clients} clients", samplesPerSecond, vm, 1.3},
	{"ingest, synced", "ingest", "ingest of text, sync=always, {synced} clients (peers: as they are)", samplesPerSecond, vm, 1.0},
	{"processor time of ingest", "ingest", "processor time of the server while data goes in, a sample", microseconds, vm, 0},
	{"processor time, compacted", "ingest", "the same until all is merged", microseconds, vm, 0},
	{"disk", "disk", "bytes a sample after compaction, index included (du)", bytesPerSample, vm, 0.85},
	{"disk, without journal", "disk", "the same without journals, whose size is bounded", bytesPerSample, vm, 0},
	{"disk, lengths of files", "disk", "the same as the first, lengths of files", bytesPerSample, vm, 0},
	{"avg", "avg", "hourly averages of one metric of all hosts, 1 day", seconds, vm, 0.5},
	{"avg, cached", "avg", "the same, asked again with its cache of answers", seconds, "", 0},
	{"max", "max", "hourly maxima of ten metrics of all hosts, 1 day", seconds, vm, 0.5},
	{"export", "export", "export of one metric of all hosts, 1 day, as CSV", seconds, vm, 0.5},
	{"rss", "rss", "resident memory after ingest", memory, vm, 0.6},
	{"rss, anonymous", "rss", "the same, without pages of files", memory, vm, 0},
	{"start", "start", "start after kill -9 with {start} samples, until an answer", seconds, "", 2},
	{"fleet, first samples", "fleet", "{fleet} new series, one sample each", seconds, vm, 1.0},
	{"fleet, all samples", "fleet", "the same, until each has ten", seconds, vm, 1.0},
	{"fleet, rss after first samples", "fleet", "resident memory after one sample each", memory, "", 512 << 20},
	{"fleet, rss after all samples", "fleet", "resident memory after ten each", memory, "", 512 << 20},
	{"fleet, highest rss", "fleet", "the highest it was", memory, "", 512 << 20},
	{"fleet, disk", "fleet", "bytes a sample of these after compaction (du)", bytesPerSample, vm, 0},
	{"sql, averages", "sql", "SQL: hourly averages of one metric", seconds, either, 0.5},
	{"sql, maxima", "sql", "SQL: hourly maxima of ten metrics", seconds, either, 0.6},
	{"sql, filter", "sql", "SQL: count of the values over a threshold, among all", seconds, "duckdb", 1.0},
	{"sql, percentile", "sql", "SQL: hourly 95th percentiles of one metric", seconds, "duckdb", 0.6},
	{"sql, top 10", "sql", "SQL: top 10 hosts by maximum", seconds, "duckdb", 0.5},
	{"sql, export", "sql", "SQL: export of one metric as CSV", seconds, "duckdb", 0.7},
	{"sql, export of all", "sql", "SQL: export of all {all} samples as CSV (target: 4 M rows/s)", seconds, "", 0},
	{"memory of the export of all", "sql", "memory that takes above what it had", memory, "", 0},
}

// sameQuestion names the measure of a peer without SQL that stands beside a SQL question.
var sameQuestion = map[string]string{"sql, averages": "avg", "sql, maxima": "max"}

// exportRate is what the export of everything must reach, in rows a second.
const exportRate = 4e6

func unitOf(name string) unit {
	if i := slices.IndexFunc(measures, func(m measure) bool { return m.name == name }); i >= 0 {
		return measures[i].unit
	}
	return seconds
}

func format(u unit, v float64) string {
	switch {
	case u == samplesPerSecond:
		return fmt.Sprintf("%.2f M/s", v/1e6)
	case u == bytesPerSample:
		return fmt.Sprintf("%.3f B", v)
	case u == memory:
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	case u == microseconds:
		return fmt.Sprintf("%.2f us", v)
	case v < 1:
		return fmt.Sprintf("%.1f ms", v*1000)
	default:
		return fmt.Sprintf("%.2f s", v)
	}
}

// median of values; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// value is the median of a measure of a system; a peer without SQL answers in its own language.
func (r results) value(name, system string) float64 {
	values := r[name][system]
	if other := sameQuestion[name]; other != "" && len(values) == 0 && system != "tidemark" {
		values = r[other][system]
	}
	return median(values)
}

// judge compares Tidemark with the best of its peers.
func (m measure) judge(r results) (ratio float64, verdict string) {
	own, best := r.value(m.name, "tidemark"), math.NaN()
	for _, peer := range strings.Fields(m.against) {
		v := r.value(m.name, peer)
		if math.IsNaN(best) || m.unit == samplesPerSecond && v > best || m.unit != samplesPerSecond && v < best {
			best = v
		}
	}
	ratio = own / best
	judged := ratio
	if m.against == "" {
		judged = own
	}
	switch {
	case m.target == 0:
		return ratio, ""
	case math.IsNaN(own):
		return ratio, "not measured"
	case math.IsNaN(judged):
		return ratio, "no peer"
	case m.unit == samplesPerSecond && judged >= m.target, m.unit != samplesPerSecond && judged <= m.target:
		return ratio, "met"
	default:
		return ratio, "MISSED"
	}
}

// targetText is the target as the table says it.
func (m measure) targetText() string {
	switch {
	case m.target == 0:
		return ""
	case m.against == "":
		return "<= " + format(m.unit, m.target)
	case m.unit == samplesPerSecond:
		return fmt.Sprintf(">= %.2fx", m.target)
	default:
		return fmt.Sprintf("<= %.2fx", m.target)
	}
}

// report is the table with all that is needed to judge it.
func (b *bench) report() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Command: `%s`\n\n", strings.Join(append([]string{"go run ./examples/bench-peers"}, os.Args[1:]...), " "))
	fmt.Fprintf(&w, "- %s\n- %s\n", b.machine, b.floor)
	for _, v := range b.versions {
		fmt.Fprintf(&w, "- %s\n", v)
	}
	for _, why := range b.skipped {
		fmt.Fprintf(&w, "- SKIPPED %s\n", why)
	}
	fmt.Fprintf(&w, "- medians of %d rounds; questions %d times a round after two to warm up; bodies of %d lines with ten samples each\n\n", b.rounds, b.asks, linesABody)
	fmt.Fprint(&w, "| Measure | Tidemark | VictoriaMetrics | InfluxDB | DuckDB | Ratio | Target | |\n|---|---|---|---|---|---|---|---|\n")
	numbers := strings.NewReplacer("{clients}", fmt.Sprint(b.clients), "{synced}", fmt.Sprint(b.syncedClients), "{start}", fmt.Sprint(b.startSamples),
		"{fleet}", fmt.Sprint(b.fleetHosts*len(metrics)), "{all}", fmt.Sprint(b.reference.all.rows))
	for _, m := range measures {
		if !b.wants(m.part) || b.results[m.name] == nil {
			continue
		}
		if m.name == "sql, export of all" {
			m.target = float64(b.reference.all.rows) / exportRate
		}
		ratio, verdict := m.judge(b.results)
		if b.quick && verdict != "" {
			verdict = "quick: not judged"
		}
		fmt.Fprintf(&w, "| %s |", numbers.Replace(m.label))
		for _, system := range systemNames {
			if v := b.results.value(m.name, system); math.IsNaN(v) {
				fmt.Fprint(&w, " |")
			} else {
				fmt.Fprintf(&w, " %s |", format(m.unit, v))
			}
		}
		text := ""
		if !math.IsNaN(ratio) {
			text = fmt.Sprintf("%.2fx", ratio)
		}
		fmt.Fprintf(&w, " %s | %s | %s |\n", text, m.targetText(), verdict)
	}
	return w.String()
}

// machine is where it was measured.
type machine struct {
	processor             string
	memoryKB              string
	started               time.Time
	loadBefore, loadAfter string
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, %s/%s, %s; load average before %s, after %s; %s",
		m.processor, runtime.NumCPU(), m.memoryKB, runtime.GOOS, runtime.GOARCH, runtime.Version(), m.loadBefore, m.loadAfter, m.started.UTC().Format(time.DateOnly))
}

func describeMachine() machine {
	return machine{processor: procField("/proc/cpuinfo", "model name"), memoryKB: procField("/proc/meminfo", "MemTotal"), started: time.Now(), loadBefore: loadAverage()}
}

// procField is the first value of a name in a file of /proc, or "unknown".
func procField(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// loadAverage of the last minute: what the machine did besides says how far to trust the figures.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// The marks between which the table goes.
const (
	beginMark = "<!-- bench-peers: the table below is written by make bench-peers -->\n"
	endMark   = "<!-- bench-peers: end -->\n"
)

// replaceBetweenMarks puts text into a file, whose other text stays.
func replaceBetweenMarks(name, text string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	begin, end := bytes.Index(old, []byte(beginMark)), bytes.Index(old, []byte(endMark))
	if begin < 0 || end < begin {
		return errors.New(name + " has no marks of bench-peers")
	}
	begin += len(beginMark)
	return os.WriteFile(name, slices.Concat(old[:begin], []byte("\n"+text+"\n"), old[end:]), 0o644)
}

// readAndRemove reads a file of which nobody else needs the name.
func readAndRemove(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	return text, errors.Join(err, os.Remove(name))
}
