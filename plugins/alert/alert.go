// Package alert renders alerts: a short text for people and a JSON body for programs. It is pure Go, and runs natively as well as
// compiled to WebAssembly.
//
// The body is one object, its fields in this order, absent ones left out:
//
//	status        "OPEN", "REPEAT" or "CANCEL"
//	rule, condition, window
//	severity      upper-case name
//	entity, metric
//	tags, entityTags, variables    objects of strings
//	type, source  of a message; type of a property
//	message       text of the record
//	value, openValue               numbers; null for none
//	repeatCount
//	time, received, opened         ISO, UTC, milliseconds
//	duration      milliseconds since the alert opened; not on OPEN
//	text          the text for people
package alert

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// Plugin is the alert renderer.
func Plugin() guest.Plugin {
	return guest.Plugin{
		Manifest: abi.Manifest{
			Name:        "alert",
			Version:     "1.0.0",
			Description: "text and JSON body of alerts",
			ConfigSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
				`"maxText":{"type":"integer","description":"longest text in bytes, default 1000"}}}`),
		},
		NewAlert: func() guest.AlertRenderer { return &renderer{maxText: defaultMaxText} },
	}
}

// defaultMaxText fits every chat service and leaves room for its own decoration.
const defaultMaxText = 1000

type renderer struct{ maxText int }

// Open reads the settings.
func (r *renderer) Open(request *abi.OpenRequest) error {
	if len(request.Config) == 0 {
		return nil
	}
	var s struct {
		MaxText int `json:"maxText"`
	}
	if err := json.Unmarshal(request.Config, &s); err != nil {
		return fmt.Errorf("alert configuration: %w", err)
	}
	if s.MaxText > 0 {
		r.maxText = s.MaxText
	}
	return nil
}

// Render makes one rendering for each event.
func (r *renderer) Render(events abi.Events, out []abi.Rendering) ([]abi.Rendering, error) {
	for i := range events.Len() {
		e := events.At(i)
		text := r.text(e)
		out = append(out, abi.Rendering{Text: text, Body: string(body(nil, e, text))})
	}
	return out, nil
}

var statusNames = [...]string{abi.StatusOpen: "OPEN", abi.StatusRepeat: "REPEAT", abi.StatusCancel: "CANCEL"}

func statusName(s abi.Status) string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "OPEN"
}

// text is for people: `[OPEN] MAJOR hot: pump-3 temp {loc=b2} is 91.5`.
func (r *renderer) text(e abi.EventView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] ", statusName(e.Status()))
	if e.Status() != abi.StatusCancel && e.Severity() > 0 {
		b.WriteString(core.Severity(e.Severity()).String() + " ")
	}
	fmt.Fprintf(&b, "%s: %s", e.Text(abi.EventRule), e.Text(abi.EventEntity))
	metric := string(e.Text(abi.EventMetric))
	isSeries := metric != "message" && metric != "property"
	if isSeries {
		b.WriteString(" " + metric)
	}
	if tags := joined(e.Tags); tags != "" {
		b.WriteString(" {" + tags + "}")
	}
	switch {
	case isSeries && !math.IsNaN(e.Value()):
		b.WriteString(" is " + number(e.Value()))
	case len(e.Text(abi.EventMessage)) > 0:
		fmt.Fprintf(&b, ": %s", e.Text(abi.EventMessage))
	}
	if ms := e.Time() - e.Opened(); e.Status() != abi.StatusOpen && ms >= 0 {
		b.WriteString(" after " + duration(ms))
	}
	return shorten(b.String(), r.maxText)
}

func joined(pairs iter.Seq2[[]byte, []byte]) string {
	var b strings.Builder
	for name, value := range pairs {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s=%s", name, value)
	}
	return b.String()
}

// number is the shortest text with at most three decimals.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// duration prints the two highest units.
func duration(ms int64) string {
	s := ms / 1000
	switch {
	case s >= 86400:
		return fmt.Sprintf("%dd %dh", s/86400, s%86400/3600)
	case s >= 3600:
		return fmt.Sprintf("%dh %dm", s/3600, s%3600/60)
	case s >= 60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 3 && !utf8.RuneStart(s[limit-3]) {
		limit--
	}
	return s[:max(limit-3, 0)] + "..."
}

// body appends the JSON object.
func body(b []byte, e abi.EventView, text string) []byte {
	w := writer{b: append(b, '{')}
	w.text("status", statusName(e.Status()))
	w.text("rule", string(e.Text(abi.EventRule)))
	w.text("condition", string(e.Text(abi.EventCondition)))
	w.text("window", string(e.Text(abi.EventWindow)))
	w.text("severity", core.Severity(e.Severity()).String())
	w.text("entity", string(e.Text(abi.EventEntity)))
	w.text("metric", string(e.Text(abi.EventMetric)))
	w.object("tags", e.Tags)
	w.object("entityTags", e.EntityTags)
	w.object("variables", e.Variables)
	w.text("type", string(e.Text(abi.EventType)))
	w.text("source", string(e.Text(abi.EventSource)))
	w.text("message", string(e.Text(abi.EventMessage)))
	w.number("value", e.Value())
	w.number("openValue", e.OpenValue())
	w.integer("repeatCount", int64(e.Repeat()))
	w.time("time", e.Time())
	w.time("received", e.Received())
	w.time("opened", e.Opened())
	if e.Status() != abi.StatusOpen {
		w.integer("duration", e.Received()-e.Opened())
	}
	w.text("text", text)
	return append(w.b, '}')
}

// writer appends members of an object.
type writer struct{ b []byte }

func (w *writer) name(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.quoted(name), ':')
}

func (w *writer) quoted(s string) []byte {
	text, _ := json.Marshal(strings.ToValidUTF8(s, "\uFFFD")) // a string cannot fail
	return append(w.b, text...)
}

func (w *writer) text(name, value string) {
	if value != "" {
		w.name(name)
		w.b = w.quoted(value)
	}
}

func (w *writer) object(name string, pairs iter.Seq2[[]byte, []byte]) {
	empty := true
	for k, v := range pairs {
		if empty {
			w.name(name)
			w.b = append(w.b, '{')
			empty = false
		}
		w.name(string(k))
		w.b = w.quoted(string(v))
	}
	if !empty {
		w.b = append(w.b, '}')
	}
}

func (w *writer) number(name string, v float64) {
	w.name(name)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

func (w *writer) integer(name string, v int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *writer) time(name string, ms int64) {
	if ms > 0 {
		w.text(name, dates.FormatISO(core.Time(ms)))
	}
}
