package snippet

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
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

// Of returns a decoded error with the code that it is about.
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

// lines iterates over the lines of code, without their line terminators, and the offset of each.
// It uses ECMAScript's line terminators, as V8 and esbuild do.
func lines(code string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for start := 0; ; {
			end := start + lineLength(code[start:])
			if !yield(start, code[start:end]) || end == len(code) {
				return
			}
			_, start = utf8.DecodeRuneInString(code[end:])
			if strings.HasPrefix(code[end:], "\r\n") {
				start = 2
			}
			start += end
		}
	}
}

// offsetOf returns the offset of a 1-based line and column of code, or -1. Columns count
// UTF-16 units.
func offsetOf(code string, line, column int) int {
	for start, text := range lines(code) {
		if line--; line != 0 || column < 1 {
			continue
		}
		offset := 0
		for column--; column > 0 && offset < len(text); {
			r, n := utf8.DecodeRuneInString(text[offset:])
			offset += n
			column -= width(r)
		}
		if column <= 0 {
			return start + offset
		}
	}
	return -1
}

// positionOf returns the 1-based line and column of an offset.
func positionOf(code string, offset int) (line, column int) {
	first := 0
	for start := range lines(code) {
		if start > offset {
			break
		}
		first = start
		line++
	}
	column = 1
	for _, r := range code[first:max(first, offset)] {
		column += width(r)
	}
	return line, column
}

// width returns the number of UTF-16 units of a rune.
func width(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// lineEnds returns only the line ends of s.
func lineEnds(s string) string {
	return strings.Map(func(r rune) rune {
		if isLineEnd(r) {
			return r
		}
		return -1
	}, s)
}
