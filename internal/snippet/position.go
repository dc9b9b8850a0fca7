package snippet

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// lines iterates over the lines of code, without their ends, and the offset of each. Lines
// end where ECMAScript says, as in V8 and esbuild.
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
