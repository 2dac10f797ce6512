package command

import (
	"errors"
	"fmt"
)

// Reason says why a command was refused, for the counters of those who read streams of them.
type Reason uint8

const (
	BadSyntax Reason = iota // and whatever has no reason of its own
	BadName                 // of an entity, metric or tag
	BadTime                 // not a time, or outside the storable range
	BadValue                // not a number
	Unknown                 // the first word is no command
	TooLong                 // longer than MaxLength
	Reasons                 // how many there are
)

func (r Reason) String() string {
	return [...]string{"syntax", "name", "time", "value", "unknown", "length"}[r]
}

// rejection is the cause of a refused command.
type rejection struct {
	reason Reason
	text   string
}

func (r *rejection) Error() string { return r.text }

// Rejectf makes the cause of a refusal. Its text names the place and what is wrong there.
func Rejectf(reason Reason, format string, args ...any) error {
	return &rejection{reason, fmt.Sprintf(format, args...)}
}

// ReasonOf returns the reason of an error that Parser.Line or Splitter.Next gave.
func ReasonOf(err error) Reason {
	var r *rejection
	switch {
	case errors.As(err, &r):
		return r.reason
	case errors.Is(err, ErrTooLong):
		return TooLong
	}
	return BadSyntax
}

var errUnknown = &rejection{Unknown, "unknown command"}
