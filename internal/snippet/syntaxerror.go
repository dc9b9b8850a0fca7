package snippet

import (
	"fmt"
	"strings"
)

// A SyntaxError is the reason why a snippet is not a valid program: esbuild's message, or
// the limit that it exceeds.
type SyntaxError struct {
	Message string
	// Line and Column are the position in the original snippet. They count from 1, and
	// columns count UTF-16 units, as in V8.
	Line, Column int
	// Limit: the code may be valid, but exceeds a limit of this package.
	Limit bool

	snippet string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Of returns the error for the code that it is about, after it was decoded.
func (e *SyntaxError) Of(code string) *SyntaxError {
	e.snippet = strings.TrimPrefix(code, bom)
	return e
}

// Frame returns the lines around the error.
func (e *SyntaxError) Frame() string { return Frame(e.snippet, e.Line, e.Column) }

// errorAt returns an error at an offset of the draft's text.
func (d draft) errorAt(offset int, message string) *SyntaxError {
	before, _ := d.origin(offset)
	line, column := positionOf(d.snippet, before)
	return &SyntaxError{Message: message, Line: line, Column: column, snippet: d.snippet}
}

// furthest returns the error that is further down the snippet: the attempt that parsed
// more was the right one.
func furthest(a, b *SyntaxError) *SyntaxError {
	switch {
	case a == nil:
		return b
	case b == nil, b.Line < a.Line, b.Line == a.Line && b.Column <= a.Column:
		return a
	}
	return b
}
