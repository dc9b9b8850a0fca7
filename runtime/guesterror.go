package runtime

import (
	"encoding/json"

	"gaol/internal/wire"
)

// GuestError is why a program or a snippet failed, in a form that its author can be shown.
// All of it comes from the guest, except the names below.
//
// Where no error of the guest's ended a snippet, Name is one of: "TimeoutError",
// "OutOfMemoryError", "LimitError" (another of Limits), "CanceledError", "SignalError",
// "ExitError" (an exit code of its own) and "UnsettledError" (an await of what never
// comes). Of a thrown value that is no Error it is empty.
type GuestError struct {
	Name    string
	Message string
	Stack   string // a snippet's with its own lines and columns; empty if there is none
	Frame   string // the lines of the snippet around the place, where it is known

	// Code is the error's own property code, such as "ENOENT", a number as text; empty if
	// it has none.
	Code string

	// Properties are its other own enumerable properties that have JSON, such as errno and
	// path: at most 32, of 4 KiB each. Getters are left out.
	Properties map[string]json.RawMessage

	// Cause is its property cause, if that is an error: at most 4, one inside the other.
	Cause *GuestError
}

// Error is "Name: Message".
func (e *GuestError) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// Limits, in characters, of what the host takes of an error.
const (
	mostName    = 256
	mostMessage = 16 << 10
	mostStack   = 32 << 10
)

// locator maps places in a guest's error to places in the code as its author wrote it.
type locator interface {
	relocate(text string) string
	stack(text string) string
	frame(stack string) string
}

// asItIs is for programs that ran as they were given.
type asItIs struct{}

func (asItIs) relocate(text string) string { return text }
func (asItIs) stack(text string) string    { return text }
func (asItIs) frame(string) string         { return "" }

func newGuestError(f *wire.Failure, p locator) *GuestError {
	e := &GuestError{
		Name: cut(f.Name, mostName), Message: cut(p.relocate(f.Message), mostMessage), Stack: cut(p.stack(f.Stack), mostStack), Frame: p.frame(f.Stack),
		Code: cut(f.Code, mostName), Properties: f.Properties,
	}
	if f.Cause != nil { // of which package wire lets few through
		e.Cause = newGuestError(f.Cause, p)
	}
	return e
}
