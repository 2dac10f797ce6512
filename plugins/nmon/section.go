package nmon

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// kind says how the columns of a section become series.
type kind uint8

const (
	table    kind = iota // metric = title.column
	instance             // metric = title, tag id = column
	measure              // the column holds instance and measure: metric = title.measure, tag id = instance
)

// section is what the header of a section says.
type section struct {
	name    string // as in the file, with the number of a continued disk table
	title   string // readable, without the host
	metric  string // of the title, without prefix
	kind    kind
	id      string   // tag of every series, for CPUs and page sizes
	names   []string // as written, trimmed; "" where the header has no name
	columns []column
	derived []derived
	total   string   // of disk tables: what their columns add up to
	totals  []string // metrics that columns of the section add up to
	values  []value  // of the row in work, by column; nil when nothing is derived from them
	named   int      // names that are not empty
	next    *section // the one whose row came behind the last row of this, a guess for the next snapshot
	seen    uint32   // parser.headers when the section was found by its name
}

// column is one series of a section, or nothing when metric is empty.
type column struct {
	name   string // lower case
	metric string // with prefix
	tags   []abi.Pair
	batch  uint32 // ref is valid in this batch
	ref    abi.SeriesRef
	total  string // measure that the column adds to, "" for none
}

// value is one number of a row; ok says that there is one.
type value struct {
	v  float64
	ok bool
}

func (p *parser) header(r *row) {
	title, rest := guest.Cut(r.rest, ',')
	switch {
	case string(r.name) == "TOP":
		if bytes.HasPrefix(title, []byte("+")) || bytes.EqualFold(title, []byte("PID")) {
			p.process = &section{names: splitNames(rest)}
		}
		return
	case string(r.name) == "UARG":
		p.commands = append([]string{strings.TrimLeft(string(title), "+")}, splitNames(rest)...)
		return
	}
	if p.lenient && !isKnownSection(string(r.name)) {
		return // its rows then have no header, which is not reported either
	}
	p.headers++
	s := p.newSection(string(r.name), string(title), splitNames(rest))
	p.sections[string(r.name)] = s
	if strings.HasPrefix(s.name, "CPUUTIL") {
		p.cpuUtil = s
	}
	if s.name == "JFSFILE" {
		p.jfsHeader(s.names)
	}
}

func splitNames(rest []byte) []string {
	if rest == nil {
		return nil
	}
	names := strings.Split(string(rest), ",")
	for i := range names {
		names[i] = text(names[i])
	}
	return names
}

func (p *parser) newSection(name, title string, names []string) *section {
	s := &section{name: name, title: p.cutHost(text(title)), names: names}
	s.metric = underscore(s.title)
	p.classify(s)
	p.bindDerived(s)
	s.columns, s.named = make([]column, len(names)), countNames(names)
	for i, n := range names {
		if n != "" {
			s.columns[i] = p.newColumn(s, n)
			if total := s.columns[i].total; total != "" && !slices.Contains(s.totals, total) {
				s.totals = append(s.totals, total)
			}
		}
	}
	if len(s.derived)+len(s.totals) > 0 {
		s.values = make([]value, len(names))
	}
	return s
}

// classify sets kind, id and total of a section from its name, and mends the metric where the title is not enough.
func (p *parser) classify(s *section) {
	family := strings.TrimRight(s.name, "0123456789")
	number := s.name[len(family):]
	switch {
	case number != "" && (family == "CPU" || family == "PCPU" || family == "SCPU"):
		s.metric, s.title, s.id = strings.ToLower(family), family+" Detail", trimZeros(number)
	case strings.HasPrefix(s.name, "CPUUTIL"):
		s.metric, s.title = "cpu_util_stats", "CPU Util Stats"
		s.id = cpuUtilID(s.name)
	case s.name == "LPAR":
		s.metric, s.title = "logical_partition", "Logical Partition"
	case strings.HasPrefix(s.name, "MEMPAGES"):
		s.id = strings.TrimPrefix(s.name, "MEMPAGES")
	case strings.HasPrefix(s.name, "NET"), s.name == "IOADAPT":
		s.kind = measure
	case strings.HasPrefix(s.name, "DISK"):
		s.kind, s.total = instance, diskTotals[family]
	case isInstanceSection(s.name):
		s.kind = instance
	}
}

// diskTotals are the disk tables whose columns are summed up; a numbered section continues its table.
var diskTotals = map[string]string{"DISKBUSY": "disk_%busy", "DISKREAD": "disk_read_kb/s", "DISKWRITE": "disk_write_kb/s", "DISKXFER": "disk_transfers_per_second"}

func isInstanceSection(name string) bool {
	for _, prefix := range []string{"JFS", "DG", "VG", "GPU", "SEA", "FC"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "PAGING" || name == "MHZ"
}

// cpuUtilID is the row number plus one, so that it agrees with the CPUnnn sections: rows count from 000, headers from 001.
func cpuUtilID(name string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "CPUUTIL"))
	if err != nil {
		return "total"
	}
	return strconv.Itoa(n + 1)
}

func trimZeros(number string) string {
	if trimmed := strings.TrimLeft(number, "0"); trimmed != "" {
		return trimmed
	}
	return "0"
}

func (p *parser) newColumn(s *section, name string) column {
	c := column{name: underscore(name)}
	metric := s.metric
	switch s.kind {
	case table:
		metric += "." + c.name
		if s.id != "" {
			c.tags = []abi.Pair{{Name: "id", Value: s.id}}
		}
	case instance:
		id := name
		if s.name == "MHZ" {
			id = trimZeros(strings.TrimLeft(name, "CPU"))
		}
		c.tags = []abi.Pair{{Name: "id", Value: id}}
		c.total = s.total
	case measure:
		id, what := splitMeasure(name)
		metric += "." + underscore(what)
		c.tags = []abi.Pair{{Name: "id", Value: id}}
		if s.name == "NETPACKET" && id != "lo" && id != "lo0" {
			c.total = packetTotals[underscore(what)]
		}
	}
	if !p.isIgnored(metric) {
		c.metric = p.prefix + metric
	}
	return c
}

// packetTotals are the sums over all interfaces; AIX writes reads/s where Linux has read/s.
var packetTotals = map[string]string{"read/s": "network_packets.read/s", "reads/s": "network_packets.read/s",
	"write/s": "network_packets.write/s", "writes/s": "network_packets.write/s"}

var measures = []string{"read-KB/s", "write-KB/s", "read/s", "write/s", "reads/s", "writes/s", "readsize", "writesize", "ierrs", "oerrs", "collisions", "KB/s", "tps"}

// splitMeasure cuts a column name at the separator before a known measure, else at the last dash: `virbr1-nic-read-KB/s` is virbr1-nic
// and read-KB/s, `fcs0_read-KB/s` is fcs0_read and KB/s.
func splitMeasure(name string) (id, what string) {
	for _, m := range measures {
		if head, ok := cutSuffixFold(name, m); ok && len(head) > 1 && (head[len(head)-1] == '-' || m != "read-KB/s" && m != "write-KB/s" && head[len(head)-1] == '_') {
			return head[:len(head)-1], m
		}
	}
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i], name[i+1:]
	}
	return name, "value"
}

func cutSuffixFold(s, suffix string) (string, bool) {
	at := len(s) - len(suffix)
	if at < 0 || !strings.EqualFold(s[at:], suffix) {
		return s, false
	}
	return s[:at], true
}

// cutHost cuts the host or run name from the end of a title; a title of several words without them loses its last word.
func (p *parser) cutHost(title string) string {
	short, _, _ := strings.Cut(p.host, ".")
	for _, name := range []string{p.host, short, p.run} {
		if name == "" {
			continue
		}
		if head, ok := cutSuffixFold(title, " "+name); ok {
			return strings.TrimSpace(head)
		}
	}
	if i := strings.LastIndexByte(title, ' '); i > 0 {
		return strings.TrimSpace(title[:i])
	}
	return title
}

// oldMemory are the columns of an AIX MEM section whose header lost two separators.
var oldMemory = []string{"Real Free %", "Virtual free %", "Real free(MB)", "Virtual free(MB)", "Real total(MB)", "Virtual total(MB)"}

// data converts a data row of a snapshot with a known time.
func (p *parser) data(id string, r *row, values []byte) error {
	p.out.AddRecords(1)
	switch string(r.name) {
	case "TOP":
		if p.top {
			p.topRow(r, values)
		}
		return nil
	case "UARG":
		if p.uarg {
			p.commandRow(r, values)
		}
		return nil
	}
	s := p.sectionOf(r)
	if s == nil {
		p.noHeader(r)
		return nil
	}
	fields := guest.Split(values, ',', p.ends)
	if fields > len(p.ends) {
		p.ends = make([]uint32, 2*fields)
		guest.Split(values, ',', p.ends)
	}
	if r.cut && fields < s.named {
		p.rejectAt(r.number, "the file ends within this line", r.line)
		return nil
	}
	if s.name == "MEM" && fields == len(oldMemory) && len(s.names) == len(oldMemory)-2 {
		s = p.newSection("MEM", "Memory "+p.host, oldMemory)
		p.sections["MEM"] = s
		p.headers++
	}
	p.convert(s, r, values, fields)
	if len(s.values) > 0 {
		p.derive(s, r.time)
		p.addTotals(s, id)
	}
	return nil
}

// sectionOf finds the section of a row. Files repeat the order of their sections from snapshot to snapshot, and to compare with the name
// that came next in the last one is much cheaper than a look-up in a map, above all in a guest.
func (p *parser) sectionOf(r *row) *section {
	if p.last != nil && p.last.next != nil && p.last.next.seen == p.headers && p.last.next.name == string(r.name) {
		p.last = p.last.next
		return p.last
	}
	s := p.findSection(r)
	if s != nil {
		s.seen = p.headers
		if p.last != nil {
			p.last.next = s
		}
	}
	p.last = s
	return s
}

func (p *parser) findSection(r *row) *section {
	if s := p.sections[string(r.name)]; s != nil && !strings.HasPrefix(s.name, "CPUUTIL") {
		return s
	}
	name := string(r.name)
	if !strings.HasPrefix(name, "CPUUTIL") || p.cpuUtil == nil {
		return nil
	}
	row := "row " + name // rows are numbered from 000, headers from 001: never mix them
	if p.sections[row] == nil {
		p.sections[row] = p.newSection(name, "", p.cpuUtil.names)
	}
	return p.sections[row]
}

func countNames(names []string) int {
	n := 0
	for _, name := range names {
		if name != "" {
			n++
		}
	}
	return n
}

// convert writes the samples of a row, whose fields end at p.ends, and keeps its numbers in s.values. When the names that are not empty
// are as many as the values they pair in order; otherwise by position.
func (p *parser) convert(s *section, r *row, values []byte, fields int) {
	if fields > 1 && len(values) > 0 && values[len(values)-1] == ',' {
		fields--
	}
	clear(s.values)
	skipEmpty := s.named == fields && s.named < len(s.names)
	column, start := 0, uint32(0)
	for _, end := range p.ends[:fields] {
		f := values[start:end]
		start = end + 1
		for skipEmpty && column < len(s.names) && s.names[column] == "" {
			column++
		}
		if column < len(s.columns) && s.columns[column].batch == p.batch {
			// Nearly every value. A guest does here what cell does too: calls are what costs it.
			if v, ok := guest.ParseDecimal(f); ok {
				v += 0 // -0 is stored as 0
				p.out.Sample(s.columns[column].ref, r.time, v)
				if column < len(s.values) {
					s.values[column] = value{v, true}
				}
				column++
				continue
			}
		}
		p.cell(s, r, f, column)
		column++
	}
}

// cell converts any value of a row.
func (p *parser) cell(s *section, r *row, f []byte, column int) {
	if column >= len(s.columns) || s.columns[column].name == "" {
		if len(bytes.TrimSpace(f)) > 0 {
			p.warn("surplus "+string(r.name), r, "more values than column names: the surplus is dropped")
		}
		return
	}
	v, ok := p.number(f, r)
	if !ok {
		return
	}
	p.sample(s, &s.columns[column], r.time, v)
	if column < len(s.values) {
		s.values[column] = value{v, true}
	}
}

// number reads a value; not-a-number in any of nmon's spellings is no value.
func (p *parser) number(f []byte, r *row) (float64, bool) {
	if len(f) == 0 || f[0] <= ' ' || f[len(f)-1] <= ' ' {
		if f = bytes.TrimSpace(f); len(f) == 0 {
			return 0, false
		}
	}
	v, ok := guest.ParseFloat(f)
	if ok && v == v && v-v == 0 {
		return v + 0, true // -0 is stored as 0
	}
	if !ok && !isNotANumber(f) {
		p.warn("number "+string(r.name), r, "not a number: "+string(f))
	}
	return 0, false
}

func isNotANumber(f []byte) bool {
	switch strings.ToLower(strings.TrimLeft(string(f), "-+")) {
	case "nan", "nanq", "nans", "inf", "infinity":
		return true
	}
	return false
}

func (p *parser) sample(s *section, c *column, t int64, v float64) {
	if c.metric == "" {
		return
	}
	if c.batch != p.batch {
		c.batch, c.ref = p.batch, p.out.Series(c.metric, p.entity, c.tags...)
		p.announce(c.metric, s.title)
	}
	p.out.Sample(c.ref, t, v)
}

// announce gives a metric the tag `table`, once an upload.
func (p *parser) announce(metric, title string) {
	if !p.tables[metric] {
		p.tables[metric] = true
		p.out.Metric(&abi.Record{Name: metric, Tags: []abi.Pair{{Name: "table", Value: title}}})
	}
}
