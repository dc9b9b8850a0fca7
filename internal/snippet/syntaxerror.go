package snippet

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf16"
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
	line, column := PositionOf(d.snippet, before)
	return &SyntaxError{Message: message, Line: line, Column: column, snippet: d.snippet}
}

// indexed is a text with an index of its lines. Lines and columns count from 0, columns in UTF-16 units.
type indexed struct {
	code  string
	lines []span // without their ends
}

// indexOf finds the lines of code by ECMAScript's line terminators, as V8 and esbuild do.
func indexOf(code string) indexed {
	x := indexed{code: code}
	for start := 0; ; {
		end := start + strings.IndexFunc(code[start:], isLineEnd)
		if end < start {
			x.lines = append(x.lines, span{start, len(code)})
			return x
		}
		x.lines = append(x.lines, span{start, end})
		_, size := utf8.DecodeRuneInString(code[end:])
		if strings.HasPrefix(code[end:], "\r\n") {
			size = 2
		}
		start = end + size
	}
}

func (x indexed) position(offset int) (line, column int) {
	offset = max(0, min(offset, len(x.code)))
	line = sort.Search(len(x.lines), func(i int) bool { return x.lines[i].start > offset }) - 1
	for _, r := range x.code[x.lines[line].start:offset] {
		column += utf16.RuneLen(r)
	}
	return line, column
}

// offset returns the offset of a position, or -1.
func (x indexed) offset(line, column int) int {
	if line < 0 || line >= len(x.lines) || column < 0 {
		return -1
	}
	at := x.lines[line]
	for i, r := range x.code[at.start:at.end] {
		if column <= 0 {
			return at.start + i
		}
		column -= utf16.RuneLen(r)
	}
	if column > 0 {
		return -1
	}
	return at.end
}

// offsetOf returns the offset of a 1-based line and column of code, or -1.
func offsetOf(code string, line, column int) int { return indexOf(code).offset(line-1, column-1) }

// PositionOf returns the 1-based line and column of an offset. Columns count UTF-16 units.
func PositionOf(code string, offset int) (line, column int) {
	line, column = indexOf(code).position(offset)
	return line + 1, column + 1
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
