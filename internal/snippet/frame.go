package snippet

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	frameBefore = 2 // lines before the one that is shown, and after it, as Babel has them
	frameAfter  = 3
	frameWidth  = 100 // runes of a line
)

// Frame shows a few lines of code around a position, with a > at its line and a ^ under
// its column:
//
//	  1 | const a = 1
//	> 2 | a.b.c
//	    |     ^
//	  3 | a.d
//
// A long line is cut to the part around the column. Control characters stand as U+FFFD, so
// the frame can be printed. It is empty if code has no such line.
func Frame(code string, line, column int) string {
	lines := splitLines(code)
	if line < 1 || line > len(lines) {
		return ""
	}
	first, last := max(1, line-frameBefore), min(len(lines), line+frameAfter)
	margin := len(fmt.Sprint(last))
	from := max(0, runesBefore(lines[line-1], column)-frameWidth*3/4)
	var b strings.Builder
	for n := first; n <= last; n++ {
		sign := " "
		if n == line {
			sign = ">"
		}
		text := strings.TrimRight(fmt.Sprintf("%s %*d | %s", sign, margin, n, cut(lines[n-1], from)), " ")
		b.WriteString(text + "\n")
		if n == line {
			caret := runesBefore(lines[n-1], column) - from
			if from > 0 {
				caret++ // behind the sign that the line is cut
			}
			fmt.Fprintf(&b, "  %*s | %*s\n", margin, "", caret+1, "^")
		}
	}
	return b.String()
}

// runesBefore is how many runes of a line stand before a 1-based column of UTF-16.
func runesBefore(line string, column int) int {
	n := 0
	for _, r := range line {
		if column -= width(r); column < 1 {
			break
		}
		n++
	}
	return n
}

// cut gives frameWidth runes of a line from one on, and signs where it went on.
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

// splitLines parts code where ECMAScript ends lines.
func splitLines(code string) []string {
	var lines []string
	for {
		n := lineLength(code)
		lines = append(lines, code[:n])
		if n == len(code) {
			return lines
		}
		code = code[n+endLength(code[n:]):]
	}
}
