package snippet

import (
	"errors"
	"strings"
)

// Unfinished reports whether code is not a valid cell but could become one by appending to
// it: a bracket, a template or a comment is open, or an operand is missing.
func Unfinished(code string) bool {
	message := syntaxErrorMessage(code)
	switch {
	case strings.HasSuffix(message, "end of file"), strings.HasSuffix(message, "to terminate multi-line comment"):
		return true
	case message == unterminated: // a template, or a string that cannot be closed any more
		return syntaxErrorMessage(code+"\n`") != unterminated
	}
	return false
}

// unterminated is esbuild's message for templates, too.
const unterminated = "Unterminated string literal"

// syntaxErrorMessage returns why code is not a valid cell, or "".
func syntaxErrorMessage(code string) string {
	_, err := Cell(code)
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return e.Message
	}
	return ""
}
