package ast

import "fmt"

// Error is what is wrong with a statement, in the words that clients know. It is always the statement's fault.
type Error struct {
	Text string
	Hint string // what else may have been meant, for logs and people; clients compare Text. "" = nothing
}

func (e *Error) Error() string { return e.Text }

// Errorf makes an Error without a place.
func Errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Errorf makes an Error that says where: text at line L position P near "token".
func (s Start) Errorf(format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...) + s.String()}
}

// String is the place as errors show it, with a blank before it.
func (s Start) String() string {
	return fmt.Sprintf(` at line %d position %d near "%s"`, s.Line, s.Column, s.Token)
}
