package snippet

import (
	"errors"
	"strings"
)

// Unfinished reports whether code is no cell yet, and could become one by what is written
// behind it: a bracket, a template or a comment is open, or an operand is missing.
func Unfinished(code string) bool {
	message := syntaxErrorMessage(code)
	switch {
	case strings.HasSuffix(message, "end of file"), strings.HasSuffix(message, "to terminate multi-line comment"):
		return true
	case message == unterminated: // a template, or a string, for which it is too late
		return syntaxErrorMessage(code+"\n`") != unterminated
	case message == typesTooLong: // the reader alone has looked at it
		at := reach(code)
		return at == len(code) || reach(code+"\n`") > at || reach(code+"\n*/") > at
	}
	return false
}

// reach is how far the reader comes in a program, or in an object in its place.
func reach(code string) int {
	r, _ := parse(code)
	if !r.failed || r.lastBlock < 0 {
		return r.tok.start
	}
	object := newParser(code, r.lastBlock)
	object.object()
	return max(r.tok.start, object.tok.start)
}

// unterminated is what esbuild says of templates, too.
const unterminated = "Unterminated string literal"

// syntaxErrorMessage is why code is no cell; empty if it is one.
func syntaxErrorMessage(code string) string {
	_, err := Cell(code)
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return e.Message
	}
	return ""
}
