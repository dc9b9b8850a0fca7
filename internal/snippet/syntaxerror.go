package snippet

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
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

const (
	frameBefore = 2 // lines before the error; both as in Babel
	frameAfter  = 3
	frameWidth  = 100 // runes per line
)

// Frame returns a few lines of code around a position, with a > at its line and a ^ under
// its column:
//
//	  1 | const a = 1
//	> 2 | a.b.c
//	    |     ^
//	  3 | a.d
//
// A long line is cut to the part around the column. Control characters are replaced by
// U+FFFD, so that the frame can be printed. Frame returns "" if line is out of range.
func Frame(code string, line, column int) string {
	var all []string
	for _, at := range indexOf(code).lines {
		all = append(all, code[at.start:at.end])
	}
	if line < 1 || line > len(all) {
		return ""
	}
	first, last := max(1, line-frameBefore), min(len(all), line+frameAfter)
	margin := len(fmt.Sprint(last))
	from := max(0, runesBefore(all[line-1], column)-frameWidth*3/4)
	var b strings.Builder
	for n := first; n <= last; n++ {
		sign := " "
		if n == line {
			sign = ">"
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s %*d | %s", sign, margin, n, cut(all[n-1], from)), " ") + "\n")
		if n == line {
			caret := runesBefore(all[n-1], column) - from
			if from > 0 {
				caret++ // after the ellipsis
			}
			fmt.Fprintf(&b, "  %*s | %*s\n", margin, "", caret+1, "^")
		}
	}
	return b.String()
}

// runesBefore returns the number of runes before a 1-based UTF-16 column of a line.
func runesBefore(line string, column int) int {
	n := 0
	for _, r := range line {
		if column -= utf16.RuneLen(r); column < 1 {
			break
		}
		n++
	}
	return n
}

// cut returns frameWidth runes of a line from an index, with ellipses where the line
// continues.
func cut(line string, from int) string {
	runes := []rune(line)
	runes = runes[min(from, len(runes)):]
	end := ""
	if len(runes) > frameWidth {
		runes, end = runes[:frameWidth], "…"
	}
	for i, r := range runes {
		switch {
		case r == '\t':
			runes[i] = ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			runes[i] = unicode.ReplacementChar
		}
	}
	if from > 0 {
		return "…" + string(runes) + end
	}
	return string(runes) + end
}
