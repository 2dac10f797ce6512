// Package csv turns delimited and fixed-width text files into series, properties or messages, as a named configuration says: columns
// are picked by the names in the header, or cells by a program, the schema. It is pure Go, and runs natively as well as compiled to WebAssembly.
package csv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// Plugin is the csv parser.
func Plugin() guest.Plugin {
	var server guest.Host // of the one instance that is made of this plugin
	return guest.Plugin{
		Init: func(_ []byte, host guest.Host) error {
			server = host
			return nil
		},
		Manifest: abi.Manifest{
			Name:         "csv",
			Version:      "1.0.0",
			Description:  "delimited and fixed-width text files",
			Formats:      []abi.Format{{Name: "csv", ContentTypes: []string{"text/csv", "text/plain"}, Framing: abi.FramingNone}},
			Stateful:     true,
			ConfigSchema: json.RawMessage(`{"type":"object"}`),
		},
		NewParser: func() guest.Parser { return &parser{host: server} },
	}
}

// settings are a named configuration. The names are those of the contract's parser settings.
type settings struct {
	Name               string            `json:"name"`
	Description        string            `json:"description"`
	Enabled            *bool             `json:"enabled"`
	CommandType        string            `json:"commandType"` // METRIC, PROPERTY, MESSAGE
	WriteProperty      bool              `json:"writeProperty"`
	PropertyType       string            `json:"propertyType"`
	EntityColumns      list              `json:"entityColumns"`
	EntityPrefix       string            `json:"entityPrefix"`
	DefaultEntity      string            `json:"defaultEntity"`
	EntityLookup       string            `json:"entityLookup"`       // name of a replacement table, which the host reads into the next
	EntityReplacements map[string]string `json:"entityReplacements"` // name in the file -> stored name
	ProcessEvents      bool              `json:"processEvents"`      // read by the host
	MetricPrefix       string            `json:"metricPrefix"`
	MetricNameColumn   string            `json:"metricNameColumn"`
	MetricValueColumn  string            `json:"metricValueColumn"`
	DefaultMetric      string            `json:"defaultMetric"`
	MessageColumn      string            `json:"messageColumn"`
	TimestampColumns   list              `json:"timestampColumns"`
	TimestampType      string            `json:"timestampType"` // PATTERN, SECONDS, MILLISECONDS
	TimestampPattern   string            `json:"timestampPattern"`
	TimezoneDiffColumn string            `json:"timezoneDiffColumn"`
	Timezone           string            `json:"timezone"` // read by the host
	Filter             string            `json:"filter"`
	TagColumns         list              `json:"tagColumns"`
	DefaultTags        map[string]string `json:"defaultTags"`
	EntityTags         list              `json:"entityTags"`
	MetricTags         list              `json:"metricTags"`
	IgnoredColumns     list              `json:"ignoredColumns"`
	PropertyColumns    list              `json:"propertyColumns"`
	PropertyKeyColumns list              `json:"propertyKeyColumns"`
	RenamedColumns     map[string]string `json:"renamedColumns"`
	Header             list              `json:"header"`
	Schema             string            `json:"schema"`
	Delimiter          string            `json:"delimiter"`
	LineDelimiter      string            `json:"lineDelimiter"` // EOL or ;
	TextQualifier      *string           `json:"textQualifier"`
	Comment            string            `json:"comment"`
	Padding            string            `json:"padding"`
	DecimalSeparator   string            `json:"decimalSeparator"`
	GroupingSeparator  string            `json:"groupingSeparator"`
	FieldLengths       []int             `json:"fieldLengths"`
	DiscardNaN         bool              `json:"discardNaN"`
	IgnoreLineErrors   bool              `json:"ignoreLineErrors"`
	SkipLines          int               `json:"skipLines"`
	Encoding           string            `json:"encoding"` // read by the host
}

// list is an array of strings, or one string with its elements separated by commas, semicolons or line breaks.
type list []string

func (l *list) UnmarshalJSON(data []byte) error {
	var many []string
	if err := json.Unmarshal(data, &many); err == nil {
		*l = many
		return nil
	}
	var one string
	if err := json.Unmarshal(data, &one); err != nil {
		return fmt.Errorf("expected a list of names, got %s", data)
	}
	*l = split(one)
	return nil
}

func split(names string) (l list) {
	for _, s := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		if s = strings.TrimSpace(s); s != "" {
			l = append(l, s)
		}
	}
	return l
}

// command is what a row becomes.
type command uint8

const (
	metrics command = iota
	properties
	messages
)

// parser reads one upload.
type parser struct {
	settings
	command command
	reader  reader
	pattern *dates.Pattern
	isISO   bool // the pattern is iso
	zone    *time.Location
	noZone  string // the last that a time named and the host does not know
	moment  dates.Moment
	time    core.Time // of rows without a timestamp column
	host    guest.Host
	arrival bool // time is that of the chunk: of a stream it goes on
	filter  *filter.Expr
	tags    []abi.Pair // of the request, then the defaults; sorted by name
	copied  []copiedTag
	number  numbers

	plan *plan
	grid *grid // of the schema mode

	defaultEntity []byte

	batch  uint32
	series map[string]*seriesRefs
	recent [recentSize]*seriesRefs // by a cheap hash of what the row says
	key    []byte
	value  []byte // of a sample that a program made
}

// Open checks the whole configuration: all its faults are listed at once.
func (p *parser) Open(r *abi.OpenRequest) error {
	d := json.NewDecoder(bytes.NewReader(r.Config))
	d.DisallowUnknownFields()
	if err := d.Decode(&p.settings); err != nil {
		return fmt.Errorf("csv configuration: %w", err)
	}
	if p.Name == "" {
		p.Name = r.ConfigName
	}
	p.override(r)
	p.zone = location(r.Offsets)
	p.moment = dates.Moment{Now: core.Time(r.Received), Zone: p.zone}
	p.time, p.arrival = core.Time(r.Received), r.Params["time"] == ""
	p.series = map[string]*seriesRefs{}
	p.defaultEntity = []byte(p.DefaultEntity)
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("csv configuration: "+format, args...))
	}
	p.compile(r, fault)
	p.copyTags(fault)
	p.separators(r.Limits.LineBytes, fault)
	return errors.Join(faults...)
}

// override lets request parameters beat settings.
func (p *parser) override(r *abi.OpenRequest) {
	for name, field := range map[string]*string{"default-entity": &p.DefaultEntity, "entity-prefix": &p.EntityPrefix,
		"default-metric": &p.DefaultMetric, "metric-prefix": &p.MetricPrefix} {
		if v, ok := r.Params[name]; ok {
			*field = v
		}
	}
	for name, field := range map[string]*list{"entity-tags": &p.EntityTags, "metric-tags": &p.MetricTags} {
		if v, ok := r.Params[name]; ok {
			*field = split(v)
		}
	}
	var tags core.Tags
	for name, v := range p.DefaultTags {
		tags = append(tags, core.Tag{Name: strings.ToLower(name), Value: v})
	}
	for name, v := range r.Tags {
		tags = append(tags, core.Tag{Name: strings.ToLower(name), Value: v})
	}
	for _, t := range tags.Normal() {
		if t.Value != "" {
			p.tags = append(p.tags, abi.Pair{Name: t.Name, Value: t.Value})
		}
	}
}

// compile checks the settings that are little languages of their own.
func (p *parser) compile(r *abi.OpenRequest, fault func(string, ...any)) {
	kinds := map[string]command{"": metrics, "METRIC": metrics, "PROPERTY": properties, "MESSAGE": messages}
	kind, ok := kinds[strings.ToUpper(p.CommandType)]
	if !ok {
		fault("commandType %q is none of METRIC, PROPERTY, MESSAGE", p.CommandType)
	}
	p.command = kind
	switch p.TimestampType = strings.ToUpper(p.TimestampType); p.TimestampType {
	case "", "PATTERN":
		text := p.TimestampPattern
		if text == "" {
			text = "iso"
		}
		var err error
		if p.pattern, err = dates.CompilePattern(text); err != nil {
			fault("timestampPattern: %v", err)
		}
		p.isISO = text == "iso" && err == nil
		if err == nil {
			p.pattern.LoadZonesBy(p.loadZone)
		}
	case "SECONDS", "MILLISECONDS":
	default:
		fault("timestampType %q is none of PATTERN, SECONDS, MILLISECONDS", p.TimestampType)
	}
	if p.Filter != "" {
		compiler := filter.Compiler{Zone: p.zone, Now: func() core.Time { return p.moment.Now }}
		var err error
		if p.filter, err = compiler.Compile(filter.Rows, p.Filter); err != nil {
			fault("filter: %v", err)
		}
	}
	if text := r.Params["time"]; text != "" {
		t, err := p.moment.ParseLocal(text)
		if ms, isMs := strconv.ParseInt(text, 10, 64); isMs == nil {
			t, err = core.Time(ms), nil // the host has evaluated the expression
		}
		if err != nil {
			fault("parameter time: %v", err)
		}
		p.time = t
	}
	if strings.TrimSpace(p.Schema) != "" {
		p.compileSchema(r.File, fault)
	}
}

// copyTags prepares the tags of the row's entity and metric. The host knows their values, and that of an entity is over that of a metric.
func (p *parser) copyTags(fault func(string, ...any)) {
	for _, from := range []struct {
		setting, prefix string
		names           list
	}{{"entityTags", abi.CopyEntity, p.EntityTags}, {"metricTags", abi.CopyMetric, p.MetricTags}} {
		for _, name := range from.names {
			name = cleanName(name)
			switch {
			case name == "":
			case p.makesMessages() && slices.Contains(messageFields, name):
				fault("%s: %s is a field of messages, not a tag", from.setting, name)
			default:
				p.copied = append(p.copied, copiedTag{from.prefix + name, name})
			}
		}
	}
}

// separators checks the characters that cut a file into cells, and sets up the reader.
func (p *parser) separators(lineLimit int, fault func(string, ...any)) {
	one := func(name, text string, otherwise byte) byte {
		switch text {
		case "":
			return otherwise
		case "tab", `\t`:
			return '\t'
		case "none":
			return 0
		case "space":
			return ' '
		}
		if len(text) != 1 || text[0] >= utf8.RuneSelf {
			fault("%s %q is not one ASCII character", name, text)
			return otherwise
		}
		return text[0]
	}
	qualifier := byte('"')
	if p.TextQualifier != nil {
		qualifier = one("textQualifier", *p.TextQualifier, 0)
	}
	if lineLimit <= 0 {
		lineLimit = 1 << 20
	}
	p.reader = reader{
		delimiter: one("delimiter", p.Delimiter, ','),
		qualifier: qualifier,
		comment:   one("comment", p.Comment, 0),
		padding:   one("padding", p.Padding, 0),
		widths:    p.FieldLengths,
		skip:      p.SkipLines,
		limit:     lineLimit,
		grid:      p.grid != nil,
	}
	switch p.LineDelimiter {
	case "", "EOL", "\n", "\r\n", "\r":
	case ";":
		p.reader.terminator = ';'
	default:
		fault("lineDelimiter %q is neither EOL nor ;", p.LineDelimiter)
	}
	p.number = numbers{decimal: one("decimalSeparator", p.DecimalSeparator, '.'), grouping: one("groupingSeparator", p.GroupingSeparator, 0)}
	if p.number.decimal == p.number.grouping {
		fault("decimalSeparator and groupingSeparator are both %q", p.number.decimal)
	}
	if p.SkipLines < 0 {
		fault("skipLines is %d", p.SkipLines)
	}
	for _, w := range p.FieldLengths {
		if w <= 0 {
			fault("fieldLengths: %d is not a width", w)
		}
	}
}

// Parse converts the records that end in chunk. A fault that ends the file is the last reject, so that what was read before it is kept.
func (p *parser) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	p.batch++
	if p.arrival {
		if now := p.host.NowMs(); now > 0 {
			p.time = core.Time(now)
		}
	}
	lines := p.reader.lines
	for r := range p.reader.records(chunk, last) {
		if fault := p.record(r, out); fault != nil && !p.tolerate(fault, out) {
			break
		}
	}
	out.AddLines(p.reader.lines - lines)
	return nil
}

// fault is what is wrong with a line, or with one cell of it.
type fault struct {
	line, column int
	reason, text string
}

// tolerate reports a fault and says whether the file goes on.
func (p *parser) tolerate(f *fault, out *abi.Encoder) bool {
	out.Reject(f.line, f.column, f.reason, f.text)
	if !p.IgnoreLineErrors {
		out.Stop()
	}
	return p.IgnoreLineErrors
}
