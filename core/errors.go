package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code says what kind of thing went wrong. The set is closed; core/api maps it to HTTP statuses in one table.
type Code uint8

const (
	Internal        Code = iota // a fault of the server
	Invalid                     // the request or record is wrong and will stay wrong
	Unauthenticated             // no or bad credentials
	Forbidden                   // known user, missing role or entity permission
	NotFound
	MethodNotAllowed
	TooLarge      // a limit was exceeded; the text names it
	Unsupported   // content type or encoding
	Unimplemented // part of the interface that is not built
	Unavailable   // try again later: starting, stopping, overloaded, backend incomplete
	NoSpace       // the disk, or its configured share, is full
	Canceled      // the caller went away or ran out of time
)

var codeNames = [...]string{"internal", "invalid", "unauthenticated", "forbidden", "not found", "method not allowed", "too large",
	"unsupported", "unimplemented", "unavailable", "no space", "canceled"}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Error is an error whose Text may be shown to the user as it is; Cause is for the log only.
type Error struct {
	Code       Code
	Text       string
	Cause      error
	RetryAfter time.Duration // with Unavailable: when to try again; 0 = not known
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Text + ": " + e.Cause.Error()
	}
	return e.Text
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error. The text is for the user: it must not carry secrets, nor internal paths.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error that hides cause from the user and keeps it for the log.
func Wrap(code Code, cause error, text string) *Error {
	return &Error{Code: code, Text: text, Cause: cause}
}

// CodeOf returns the code of the first Error in err's chain, Canceled for an ended context, and Internal for anything else.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Canceled
	}
	return Internal
}
