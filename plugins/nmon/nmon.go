// Package nmon turns performance files of nmon (AIX and Linux) into series and properties. It is pure Go, and runs natively as well as
// compiled to WebAssembly.
//
// A file is read as a stream: a row is converted when the time of its snapshot is known. Rows before their ZZZZ line, as in a file
// that went through sort, wait for it; what still waits at the end is reported.
package nmon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// Plugin is the nmon parser.
func Plugin() guest.Plugin {
	return guest.Plugin{
		Manifest: abi.Manifest{
			Name:        "nmon",
			Version:     "1.0.0",
			Description: "nmon performance files of AIX and Linux",
			Formats:     []abi.Format{{Name: "nmon", ContentTypes: []string{"text/csv", "text/plain"}, Magic: "AAA,", Framing: abi.FramingNone}},
			Stateful:    true,
			ConfigSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
				`"prefix":{"type":"string"},"ignored":{"type":"array","items":{"type":"string"}},"top":{"type":"boolean"},` +
				`"uarg":{"type":"boolean"},"properties":{"type":"boolean"},"ignore_errors":{"type":"boolean"}}}`),
		},
		NewParser: func() guest.Parser { return new(parser) },
	}
}

// settings are the named configuration; its zero fields mean the defaults.
type settings struct {
	Prefix       *string  `json:"prefix"`
	Ignored      []string `json:"ignored"` // metric names without the prefix, * allowed at the end
	Top          *bool    `json:"top"`
	Uarg         *bool    `json:"uarg"`
	Properties   *bool    `json:"properties"`
	IgnoreErrors bool     `json:"ignore_errors"`
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// maxWaiting bounds the bytes of rows that wait for their ZZZZ line: 8 MB is a day of a sorted file of a large machine.
const maxWaiting = 8 << 20

// maxSnapshots bounds the snapshots whose times and totals are known: a file that is streamed goes on for weeks. It is two days of one snapshot every
// two seconds, and takes 20 MB of the guest at the most.
const maxSnapshots = 86_400

// maxTotals bounds the snapshots of which a late row can still correct a total: only those of a wide disk table that was sorted come so late.
const maxTotals = 10_000

// maxTime is the latest storable time, Unix ms.
const maxTime = 4294969199999

// parser reads one upload, which may hold several files one after the other.
type parser struct {
	prefix     string
	ignored    []string
	top        bool
	uarg       bool
	properties bool
	lenient    bool
	entityName string // from the request; beats the file
	origin     string // of the file, for warnings: `, parser P, file F`
	clock      clock

	lines   guest.Lines
	lineEnd bool     // the text so far ends with a newline
	ends    []uint32 // room for the cells of a row
	batch   uint32
	out     *abi.Encoder
	stored  bool // at least one snapshot was seen
	tables  map[string]bool
	file
}

// file is the state of one file: a second AAA,progname line begins another.
type file struct {
	entity       string
	host, run    string
	date         string
	startTime    string
	warned       map[string]bool
	sections     map[string]*section
	cpuUtil      *section // any CPUUTIL header serves all its rows
	process      *section
	last         *section         // of the row before
	headers      uint32           // changes of sections, so that a guess of the next section is known to be stale
	times        map[string]int64 // snapshot id -> Unix ms
	timed        fifo             // keys of times
	totals       map[string]*snapshotTotals
	totalled     fifo     // keys of totals
	changed      []string // snapshots whose totals are not written yet
	current      string
	time         int64 // of the current snapshot
	waiting      map[string][]waitingRow
	waitingBytes int
	config       []abi.Pair
	mounts       []string
	commands     []string // header of the UARG rows
}

// waitingRow is a data row whose ZZZZ line has not come.
type waitingRow struct {
	line int
	text string
}

// Open reads the settings and the request.
func (p *parser) Open(r *abi.OpenRequest) error {
	var s settings
	if len(r.Config) > 0 {
		d := json.NewDecoder(bytes.NewReader(r.Config))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return fmt.Errorf("nmon configuration: %w", err)
		}
	}
	p.prefix = or(s.Prefix, "nmon")
	if p.prefix != "" {
		p.prefix += "."
	}
	p.ignored, p.lenient = s.Ignored, s.IgnoreErrors
	p.top, p.uarg, p.properties = or(s.Top, true), or(s.Uarg, true), or(s.Properties, true)
	p.entityName = r.Params["e"]
	if r.ConfigName != "" {
		p.origin = ", parser " + r.ConfigName
	}
	if r.File != "" {
		p.origin += ", file " + r.File
	}
	p.clock = clock{offsets: r.Offsets}
	p.tables = map[string]bool{}
	p.reset()
	return nil
}

func (p *parser) reset() {
	p.clock.restart()
	p.file = file{
		warned:   map[string]bool{},
		sections: map[string]*section{},
		times:    map[string]int64{},
		totals:   map[string]*snapshotTotals{},
		waiting:  map[string][]waitingRow{},
	}
}

// Parse converts the lines that end in chunk.
func (p *parser) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	p.out = out
	p.batch++
	if len(chunk) > 0 {
		p.lineEnd = chunk[len(chunk)-1] == '\n'
	}
	for line := range p.lines.Each(chunk, last) {
		out.AddLines(1)
		if err := p.line(line, p.cutOff(chunk, line, last)); err != nil {
			return err
		}
	}
	if !last && len(chunk) == 0 { // the sender pauses
		p.pause()
	}
	if !last {
		return nil
	}
	p.finish()
	switch {
	case p.stored:
		return nil
	case p.entityOf() == "":
		return errEntity
	}
	return fmt.Errorf("IllegalArgumentException: No data")
}

var errEntity = fmt.Errorf("IllegalArgumentException: Entity not found in nmon file")

// cutOff reports whether line is the rest of a file that does not end with a line end: its last number may be cut.
func (p *parser) cutOff(chunk, line []byte, last bool) bool {
	return last && !p.lineEnd && (len(chunk) == 0 || bytes.HasSuffix(chunk, line))
}

// line handles one line. cut marks one that may be incomplete.
func (p *parser) line(line []byte, cut bool) error {
	if name, rest := p.expected(line); name != nil {
		return p.sectionLine(&row{name: name, rest: rest, line: line, cut: cut, number: p.lines.Number()})
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	name, rest := guest.Cut(line, ',')
	switch {
	case rest == nil:
		p.reject("torn line: no comma", line)
	case !isSectionName(name):
		if !bytes.HasPrefix(name, []byte("NO-PBUF")) {
			p.reject("torn line: it does not begin with a section name", line)
		}
	case string(name) == "AAA":
		return p.configLine(rest)
	case bytes.HasPrefix(name, []byte("BBB")):
		if string(name) == "BBBL" {
			p.partitionLine(rest)
		}
	case string(name) == "ZZZZ":
		return p.snapshotLine(rest, line)
	case bytes.HasPrefix(name, []byte("ERROR")), bytes.HasPrefix(name, []byte("SUMMARY")):
	default:
		return p.sectionLine(&row{name: name, rest: rest, line: line, cut: cut, number: p.lines.Number()})
	}
	return nil
}

// expected cuts a line of the section that came after the last one in the snapshot before; name is nil for any other line.
func (p *parser) expected(line []byte) (name, rest []byte) {
	if p.last == nil || p.last.next == nil {
		return nil, nil
	}
	s := p.last.next
	n := len(s.name)
	if s.seen != p.headers || n >= len(line) || line[n] != ',' || string(line[:n]) != s.name {
		return nil, nil
	}
	return line[:n], line[n+1:]
}

// isSectionName reports whether name is letters, digits and underscores, and begins with a letter.
func isSectionName(name []byte) bool {
	for i, c := range name {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(name) > 0
}

// isSnapshot reports whether f is T and at least four digits.
func isSnapshot(f []byte) bool {
	if len(f) < 5 || f[0] != 'T' {
		return false
	}
	for _, c := range f[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// row is one line of a section, data or header.
type row struct {
	name   []byte
	rest   []byte // after the name
	line   []byte
	cut    bool
	number int
	time   int64 // of the snapshot, Unix ms; of data rows only
}

// snapshot returns the snapshot id of a data row and the fields after it; nil for a header. TOP rows have the pid before the id.
func (r *row) snapshot() (id, values []byte) {
	first, rest := guest.Cut(r.rest, ',')
	if isSnapshot(first) {
		return first, rest
	}
	if string(r.name) == "TOP" {
		if second, rest := guest.Cut(rest, ','); isSnapshot(second) {
			return second, rest
		}
	}
	return nil, nil
}

func (p *parser) sectionLine(r *row) error {
	if n := len(p.current); n > 0 && n < len(r.rest) && r.rest[n] == ',' && string(r.rest[:n]) == p.current {
		r.time = p.time
		return p.data(p.current, r, r.rest[n+1:]) // as nearly all rows
	}
	id, values := r.snapshot()
	if id == nil {
		p.header(r)
		return nil
	}
	var known bool
	if r.time, known = p.times[string(id)]; !known {
		p.wait(string(id), r)
		return nil
	}
	return p.data(string(id), r, values)
}

// wait keeps a row until its ZZZZ line comes.
func (p *parser) wait(id string, r *row) {
	if p.waitingBytes+len(r.line) > maxWaiting {
		p.rejectAt(r.number, "too many rows before their ZZZZ line", r.line)
		return
	}
	p.waitingBytes += len(r.line)
	p.waiting[id] = append(p.waiting[id], waitingRow{r.number, string(r.line)})
}

// snapshotLine ties a snapshot id to a time and converts the rows that waited for it.
func (p *parser) snapshotLine(rest, line []byte) error {
	id, when := guest.Cut(rest, ',')
	if !isSnapshot(id) {
		p.reject("ZZZZ line without a snapshot id", line)
		return nil
	}
	t, err := p.clock.snapshot(string(when), p.date)
	if err == nil && (t < 0 || t > maxTime) {
		err = fmt.Errorf("ZZZZ line with a time outside 1970 to 2106")
	}
	if err != nil {
		p.reject(err.Error(), line)
		return nil
	}
	p.flushTotals()
	if p.current != "" {
		p.flushConfig() // pairs that came after the last ZZZZ line belong to its snapshot
	}
	p.current = string(id)
	if _, known := p.times[p.current]; !known {
		if oldest := p.timed.add(p.current, maxSnapshots); oldest != "" {
			delete(p.times, oldest)
		}
	}
	p.times[p.current], p.time = t, t
	if p.entity == "" {
		if p.entity = p.entityOf(); p.entity == "" {
			return errEntity
		}
	}
	p.stored = true
	p.flushConfig()
	waiting := p.waiting[p.current]
	delete(p.waiting, p.current)
	for _, w := range waiting {
		p.waitingBytes -= len(w.text)
		r := &row{line: []byte(w.text), number: w.line}
		r.name, r.rest = guest.Cut(r.line, ',')
		r.time = t
		_, values := r.snapshot()
		if err := p.data(p.current, r, values); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) entityOf() string {
	if p.entityName != "" {
		return p.entityName
	}
	return underscore(p.host)
}

// fifo is the order in which the keys of a bounded map came.
type fifo struct {
	keys []string
	next int // place of the oldest, once all places are taken
}

// add takes a key that is not there yet and returns the one that has to go for it, "" when there is room.
func (f *fifo) add(key string, limit int) (oldest string) {
	if len(f.keys) < limit {
		f.keys = append(f.keys, key)
		return ""
	}
	oldest, f.keys[f.next] = f.keys[f.next], key
	f.next = (f.next + 1) % limit
	return oldest
}

// pause writes what waits for the next snapshot, which may be minutes away. Rows that still belong to this one correct it.
func (p *parser) pause() {
	p.flushTotals()
	if p.current != "" {
		p.flushConfig()
	}
}

// finish ends the file: totals and configuration of the last snapshot, and a word on every snapshot without a time.
func (p *parser) finish() {
	p.flushTotals()
	if p.entity != "" {
		p.flushConfig()
	}
	for _, id := range sortedKeys(p.waiting) {
		rows := p.waiting[id]
		p.rejectAt(rows[0].line, fmt.Sprintf("snapshot %s has no ZZZZ line: %d rows dropped", id, len(rows)), nil)
	}
	p.waiting, p.waitingBytes = map[string][]waitingRow{}, 0
}

func (p *parser) reject(reason string, line []byte) { p.rejectAt(p.lines.Number(), reason, line) }

func (p *parser) rejectAt(number int, reason string, line []byte) {
	if !p.lenient {
		p.out.Reject(number, 0, reason, string(line))
	}
}

// warn reports a fault once for each section.
func (p *parser) warn(key string, r *row, reason string) {
	if !p.warned[key] {
		p.warned[key] = true
		p.rejectAt(r.number, reason, r.line)
	}
}

// noHeader reports a row whose section has no header, once for each section.
func (p *parser) noHeader(r *row) {
	p.warn("header "+string(r.name), r, "Header not found for row '"+string(r.name)+"'"+p.origin)
}

// isIgnored reports whether the settings leave out a metric, given without the prefix.
func (p *parser) isIgnored(metric string) bool {
	for _, pattern := range p.ignored {
		if begin, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(metric, begin) || pattern == metric {
			return true
		}
	}
	return false
}
