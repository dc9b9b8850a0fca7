package snippet

import "fmt"

// A SyntaxError says why a snippet is no program, in esbuild's words, or which limit it is
// over.
type SyntaxError struct {
	Message string
	// Line and Column are those of the snippet as it was given. They count from 1, and
	// columns count UTF-16, as V8's do.
	Line, Column int
	// Limit: the code may be valid, but is over a limit of this package.
	Limit bool

	snippet string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Frame shows the lines around the error.
func (e *SyntaxError) Frame() string { return Frame(e.snippet, e.Line, e.Column) }

// errorAt is an error at an offset of the draft's text.
func (d draft) errorAt(offset int, message string) *SyntaxError {
	before, _ := d.origin(offset)
	line, column := positionOf(d.snippet, before)
	return &SyntaxError{Message: message, Line: line, Column: column, snippet: d.snippet}
}

// furthest is the one of two errors that is further down the snippet: the attempt that
// understood more is the one that was meant.
func furthest(a, b *SyntaxError) *SyntaxError {
	switch {
	case a == nil:
		return b
	case b == nil, b.Line < a.Line, b.Line == a.Line && b.Column <= a.Column:
		return a
	}
	return b
}
