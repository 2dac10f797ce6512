package webhook

import (
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// origin says which kind of parameter a field value came from.
type origin uint8

const (
	fromNothing origin = iota
	fromLiteral
	fromCommand
	fromHeader
)

// value returns the value of a field: its literal parameter, else the payload field its command names, else the header. Blank values count as missing.
func (m *mapper) value(field string) (string, origin) {
	if v := cleanValue(m.params.reserved(field)); v != "" {
		return v, fromLiteral
	}
	if path := m.params.reserved("command." + field); path != "" {
		if v := m.lookup(path); v != "" {
			return v, fromCommand
		}
	}
	if name := m.params.reserved("header." + field); name != "" {
		if v := m.header(name); v != "" {
			return v, fromHeader
		}
	}
	return "", fromNothing
}

// lookup returns the value at a path of the full payload, before any filter; parameters come after the JSON.
func (m *mapper) lookup(path string) string {
	if i := m.payload.find(path); i >= 0 {
		return m.payload.leaves[i].value
	}
	if i := m.plain.find(path); i >= 0 {
		return m.plain.leaves[i].value
	}
	return ""
}

// header returns the first value of a request header. Headers with credentials are never read: their values would end up in the store.
func (m *mapper) header(name string) string {
	key := textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
	switch key {
	case "Authorization", "Proxy-Authorization", "Cookie":
		return ""
	case "Host":
		return cleanValue(m.Host)
	}
	return cleanValue(textproto.MIMEHeader(m.Header).Get(key))
}

// fields fills everything but the tags.
func (m *mapper) fields(result *Result) error {
	message := &result.Message
	rest := cleanValue(m.Rest)
	or := func(field, fallback string) string {
		if v, from := m.value(field); from != fromNothing {
			return tagName(v)
		}
		return tagName(fallback)
	}
	message.Type = or("type", core.WebhookMessageType)
	message.Source = or("source", rest)
	message.Entity = or("entity", rest)
	message.Text, _ = m.value("message")
	if message.Entity == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Empty entity")
	}
	if text, from := m.value("severity"); from != fromNothing {
		var ok bool
		if message.Severity, ok = core.ParseSeverity(text); !ok {
			return core.Errorf(core.Invalid, "IllegalArgumentException: Unknown severity %s", text)
		}
		result.HasSeverity = message.Severity != core.Undefined
	}
	var err error
	message.Time, err = m.date()
	return err
}

// date returns the time of the message.
func (m *mapper) date() (core.Time, error) {
	text, from := m.value("date")
	var t core.Time
	var err error
	switch from {
	case fromNothing:
		return m.Now, nil
	case fromLiteral:
		t, err = dates.ParseISO(text)
	case fromCommand:
		t, err = m.patternDate(text)
	case fromHeader: // the pattern is for payload fields only
		t, err = dates.ParseISOOrUnix(text)
	}
	if err != nil {
		return 0, core.Wrap(core.Invalid, err, "IllegalArgumentException: Failed to parse date "+text)
	}
	return t, nil
}

// patternDate reads a date as datetimePattern says.
func (m *mapper) patternDate(text string) (core.Time, error) {
	pattern := strings.TrimSpace(m.params.reserved("datetimePattern"))
	switch strings.ToLower(pattern) {
	case "", "iso":
		return dates.ParseISOOrUnix(plainNumber(text))
	}
	compiled, err := dates.CompilePattern(pattern)
	if err != nil {
		return 0, err
	}
	zone := m.Zone
	if zone == nil {
		zone = time.UTC
	}
	return compiled.Parse(plainNumber(text), zone)
}

// plainNumber writes a number with an exponent, as some JSON encoders print Unix time, without it.
func plainNumber(text string) string {
	if !strings.ContainsAny(text, "eE") || strings.Trim(text, "0123456789.eE+") != "" {
		return text
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > 1e15 {
		return text
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
