package snippets

import (
	"time"

	"gaol/runtime/snippets/bundle"
)

// Input is what one run executes. Exactly one of Source and Files is set.
type Input struct {
	// Source is the text of src/main.ts, as the only file.
	Source string

	// Files are 1 to 10 files, of 200,000 bytes of UTF-8 together. One is src/main.ts, which
	// runs; the others are imported by it.
	Files []File

	// Timeout is the wall-clock time that the snippet may take. It is rounded to the nearest
	// allowed value: 100 ms to 10 s. Zero: 5 s.
	Timeout time.Duration

	// OnLog, if not nil, is called with each of Output.Logs as it arrives, one at a time, and if
	// the snippet runs out of memory also with what V8 prints then. A slow function slows down the
	// snippet.
	OnLog func(line string)
}

// File is a file of a snippet.
type File = bundle.File

// InputError is the error of an input that breaks a rule of [Input].
type InputError struct {
	Code    string // InputTooLarge or InputInvalid
	Message string
}

// Codes of an [InputError].
const (
	InputTooLarge = "input-too-large"
	InputInvalid  = "input-invalid"
)

// Error returns the message.
func (e *InputError) Error() string { return e.Message }
