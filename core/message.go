package core

import (
	"math"
	"strconv"
	"strings"
)

// Severity is the contract's scale from 0 to 7.
type Severity uint8

const (
	Undefined Severity = iota
	Unknown
	Normal
	Warning
	Minor
	Major
	Critical
	Fatal
)

var severityNames = [...]string{"UNDEFINED", "UNKNOWN", "NORMAL", "WARNING", "MINOR", "MAJOR", "CRITICAL", "FATAL"}

func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return "UNDEFINED"
}

// ParseSeverity takes a code, a name or an alias (INFO, WARN, ERROR), ignoring case.
func ParseSeverity(text string) (Severity, bool) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == math.Trunc(n) && n >= 0 { // some clients write whole numbers as 3.0
		return Severity(min(n, math.MaxUint8)), n < float64(len(severityNames))
	}
	up := strings.ToUpper(text)
	for i, name := range severityNames {
		if name == up {
			return Severity(i), true
		}
	}
	switch up {
	case "INFO":
		return Normal, true
	case "WARN":
		return Warning, true
	case "ERROR":
		return Critical, true
	}
	return Undefined, false
}

// DefaultMessageType, and DefaultMessageSource, stand for a type or source that was not sent.
const (
	DefaultMessageType   = "default"
	DefaultMessageSource = "default"
	WebhookMessageType   = "webhook"
)

// Message is one text event of an entity. It has a text or at least one tag.
type Message struct {
	Time     Time
	Entity   string
	Type     string
	Source   string
	Severity Severity
	Text     string
	Tags     Tags
	Flags    Flags
}

// Clone returns a copy that shares no memory with m.
func (m Message) Clone() Message {
	m.Entity, m.Type, m.Source, m.Text = strings.Clone(m.Entity), strings.Clone(m.Type), strings.Clone(m.Source), strings.Clone(m.Text)
	m.Tags = m.Tags.Clone()
	return m
}
