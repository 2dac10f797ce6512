package webhook

import (
	"bytes"
	"encoding/json"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// AppendJSON appends the record as the debug answer shows it: entity, type, source, message if set, severity or null, tags by name, date.
func AppendJSON(dst []byte, r Result) ([]byte, error) {
	record := struct {
		Entity   string            `json:"entity"`
		Type     string            `json:"type"`
		Source   string            `json:"source"`
		Message  string            `json:"message,omitempty"`
		Severity *string           `json:"severity"`
		Tags     map[string]string `json:"tags"`
		Date     string            `json:"date"`
	}{
		Entity: r.Message.Entity, Type: r.Message.Type, Source: r.Message.Source, Message: r.Message.Text,
		Tags: r.Message.Tags.Map(), Date: dates.FormatISO(r.Message.Time),
	}
	if r.HasSeverity {
		name := r.Message.Severity.String()
		record.Severity = &name
	}
	if record.Tags == nil {
		record.Tags = map[string]string{}
	}
	out := bytes.NewBuffer(dst)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(record); err != nil {
		return dst, core.Wrap(core.Internal, err, "cannot print the message")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
