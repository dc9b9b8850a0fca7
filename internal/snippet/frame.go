package snippet

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

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
		text := strings.TrimRight(fmt.Sprintf("%s %*d | %s", sign, margin, n, cut(all[n-1], from)), " ")
		b.WriteString(text + "\n")
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
