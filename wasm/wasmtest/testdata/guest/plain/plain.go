// Package plain is the well-behaved half of the test plugin, which also runs natively.
//
// A line is time,entity,metric,value with an optional fifth cell, a text. Other lines are rejected.
package plain

import (
	"fmt"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// Manifest describes the plugin.
func Manifest() abi.Manifest {
	return abi.Manifest{
		Name: "plain", Version: "1.0.0", Capabilities: abi.Capabilities(),
		Formats: []abi.Format{{Name: "lines", ContentTypes: []string{"text/csv"}, Framing: abi.FramingLines}, {Name: "raw", Framing: abi.FramingNone}},
	}
}

type parser struct {
	lines  guest.Lines
	prefix string
}

// NewParser makes the parser. A configuration is a JSON text: a prefix of the metric names.
func NewParser() guest.Parser { return new(parser) }

func (p *parser) Open(r *abi.OpenRequest) error {
	if len(r.Config) > 0 && r.Config[0] != '"' {
		return fmt.Errorf("config %s: want a text", r.Config)
	}
	if len(r.Config) > 2 {
		p.prefix = string(r.Config[1 : len(r.Config)-1])
	}
	return nil
}

func (p *parser) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	lines := 0
	for line := range p.lines.Each(chunk, last) {
		lines++
		if len(line) > 0 {
			p.line(line, out)
		}
	}
	out.AddLines(lines)
	return nil
}

func (p *parser) line(line []byte, out *abi.Encoder) {
	out.AddRecords(1)
	at, rest := guest.Cut(line, ',')
	entity, rest := guest.Cut(rest, ',')
	metric, rest := guest.Cut(rest, ',')
	number, text := guest.Cut(rest, ',')
	ms, ok := guest.ParseTime(at)
	if !ok {
		out.Reject(p.lines.Number(), 1, "time is neither ISO nor milliseconds", string(at))
		return
	}
	v, ok := guest.ParseFloat(number)
	if !ok {
		out.Reject(p.lines.Number(), 4, "value is not a number", string(number))
		return
	}
	var s abi.SeriesRef
	if p.prefix == "" {
		s = out.SeriesBytes(metric, entity)
	} else {
		s = out.Series(p.prefix+string(metric), string(entity))
	}
	if text != nil {
		out.SampleText(s, ms, v, string(text))
		return
	}
	out.Sample(s, ms, v)
}

type alert struct{}

// NewAlert makes the renderer.
func NewAlert() guest.AlertRenderer { return alert{} }

func (alert) Open(*abi.OpenRequest) error { return nil }

func (alert) Render(events abi.Events, out []abi.Rendering) ([]abi.Rendering, error) {
	for i := range events.Len() {
		e := events.At(i)
		text := fmt.Sprintf("%s on %s: %g", e.Text(abi.EventRule), e.Text(abi.EventEntity), e.Value())
		out = append(out, abi.Rendering{Text: text, Body: fmt.Sprintf(`{"text":%q}`, text)})
	}
	return out, nil
}
