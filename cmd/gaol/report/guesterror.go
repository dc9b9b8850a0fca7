package report

import (
	"strings"

	"gaol/runtime"
)

// ErrorText returns a guest's error for people: its stack, which usually starts with
// its message, and the frame, the lines of code around the place.
func ErrorText(e *runtime.GuestError) string {
	text := e.Stack
	if !strings.Contains(text, e.Message) || text == "" {
		text = e.Error()
	}
	if e.Frame != "" {
		text += "\n\n" + e.Frame
	}
	return strings.TrimRight(text, "\n")
}
