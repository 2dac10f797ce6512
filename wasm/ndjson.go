package wasm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// decode reads a command batch in either form: the binary one begins with its version, the easy one with a brace.
func decode(b *abi.Batch, text string, limits abi.Limits) error {
	if text == "" || text[0] != '{' {
		return b.Decode(text, limits)
	}
	var e abi.Encoder
	e.Reset()
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := encodeLine(&e, line); err != nil {
			return fmt.Errorf("line %d of the output: %w", n, err)
		}
		if e.Len() > limits.Bytes {
			return fmt.Errorf("%w: output of more than %d bytes", abi.ErrFormat, limits.Bytes)
		}
	}
	// The binary decoder checks what both forms have in common.
	return b.Decode(string(e.Finish()), limits)
}

// jsonLine is one command of the easy form; which fields count depends on Command.
type jsonLine struct {
	Command string `json:"command"` // series message property entity metric reject stop count

	Metric, Entity, Type, Source, Name string
	Time                               int64
	Value                              *json.Number
	Text                               *string
	Append                             bool
	Severity                           uint8
	Persist                            *bool // absent = true
	Tags, Keys, Fields                 map[string]string

	Line, Column, Lines, Records int
	Reason                       string
}

func encodeLine(e *abi.Encoder, line string) error {
	var l jsonLine
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		return fmt.Errorf("%w: %w", abi.ErrFormat, err)
	}
	persist := l.Persist == nil || *l.Persist
	text := ""
	if l.Text != nil {
		text = *l.Text
	}
	switch l.Command {
	case "series":
		return encodeSample(e, &l)
	case "message":
		e.Message(&abi.Message{Entity: l.Entity, Type: l.Type, Source: l.Source, Severity: l.Severity, Persist: persist,
			Time: l.Time, Text: text, Tags: pairsOf(l.Tags)})
	case "property":
		e.Property(&abi.Property{Entity: l.Entity, Type: l.Type, Persist: persist, Time: l.Time, Keys: pairsOf(l.Keys), Tags: pairsOf(l.Tags)})
	case "entity":
		e.Entity(&abi.Record{Name: l.Name, Fields: pairsOf(l.Fields), Tags: pairsOf(l.Tags)})
	case "metric":
		e.Metric(&abi.Record{Name: l.Name, Fields: pairsOf(l.Fields), Tags: pairsOf(l.Tags)})
	case "reject":
		e.Reject(l.Line, l.Column, l.Reason, text)
	case "stop":
		e.Reject(l.Line, l.Column, l.Reason, text)
		e.Stop()
	case "count":
		e.AddLines(l.Lines)
		e.AddRecords(l.Records)
	default:
		return fmt.Errorf("%w: unknown command %q", abi.ErrFormat, l.Command)
	}
	return nil
}

func encodeSample(e *abi.Encoder, l *jsonLine) error {
	ref := e.Series(l.Metric, l.Entity, pairsOf(l.Tags)...)
	if l.Value == nil {
		if l.Text == nil {
			return fmt.Errorf("%w: a series line has neither value nor text", abi.ErrFormat)
		}
		var flags abi.SampleFlags
		if l.Append {
			flags = abi.AppendText
		}
		e.Text(ref, l.Time, *l.Text, flags)
		return nil
	}
	v, err := l.Value.Float64()
	if err != nil {
		return fmt.Errorf("%w: value %q: %w", abi.ErrFormat, *l.Value, err)
	}
	if l.Text != nil {
		e.SampleText(ref, l.Time, v, *l.Text)
		return nil
	}
	if decimal := l.Value.String(); len(decimal) > 15 {
		e.SampleDecimal(ref, l.Time, v, decimal) // more digits than a float64 is sure to keep
		return nil
	}
	e.Sample(ref, l.Time, v)
	return nil
}

// pairsOf sorts by name: the order of a map would reach the output.
func pairsOf(m map[string]string) []abi.Pair {
	if len(m) == 0 {
		return nil
	}
	ps := make([]abi.Pair, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		ps = append(ps, abi.Pair{Name: name, Value: m[name]})
	}
	return ps
}
