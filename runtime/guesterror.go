package runtime

import (
	"encoding/json"

	"gaol/internal/wire"
	"gaol/runtime/internal/stacktrace"
)

// GuestError is why a program or a snippet failed, in a form for its author. Everything comes
// from the guest, except for the following names.
//
// If no error of the guest ended a snippet, Name is one of "TimeoutError",
// "OutOfMemoryError", "LimitError" (another of Limits), "CanceledError", "SignalError",
// "ExitError" (process.exit with another code than 0) and "UnsettledError" (an await that
// never settles). Name is empty if the thrown value is not an Error.
type GuestError struct {
	Name    string
	Message string
	Stack   string // with the snippet's own lines and columns; may be empty
	Frame   string // the lines of the snippet around the position, if it is known

	// Code is the error's property code, such as "ENOENT", or a number as text. It may be
	// empty.
	Code string

	// Properties are its other own enumerable properties that have JSON, such as errno and
	// path: at most 32, of 4 KiB each. Getters are not called.
	Properties map[string]json.RawMessage

	// Cause is its property cause, if that is an error: at most 4 of them, nested.
	Cause *GuestError
}

// Error returns "Name: Message".
func (e *GuestError) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// Limits of the texts of an error, in characters.
const (
	maxName    = 256
	maxMessage = 16 << 10
	maxStack   = 32 << 10
)

// newGuestError returns the error that a guest reported. sources may be nil.
func newGuestError(f *wire.Failure, sources *stacktrace.Sources) *GuestError {
	e := &GuestError{
		Name:    truncate(f.Name, maxName),
		Message: truncate(sources.Relocate(f.Message), maxMessage),
		Stack:   truncate(sources.Stack(f.Stack), maxStack), Frame: sources.Frame(f.Stack),
		Code: truncate(f.Code, maxName), Properties: f.Properties,
	}
	if f.Cause != nil { // package wire limits their number
		e.Cause = newGuestError(f.Cause, sources)
	}
	return e
}
