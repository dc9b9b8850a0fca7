package snippet

import (
	"strings"
	"unicode/utf8"
)

// offsetOf returns the offset of a 1-based line and column of code, or -1. Columns count
// UTF-16 units, and lines end where ECMAScript says, as in V8 and esbuild.
func offsetOf(code string, line, column int) int {
	if line < 1 || column < 1 {
		return -1
	}
	offset := 0
	for ; line > 1; line-- {
		n := lineLength(code[offset:])
		if offset+n == len(code) {
			return -1
		}
		offset += n + endLength(code[offset+n:])
	}
	end := offset + lineLength(code[offset:])
	for column--; column > 0 && offset < end; {
		r, n := utf8.DecodeRuneInString(code[offset:])
		offset += n
		column -= width(r)
	}
	if column > 0 {
		return -1
	}
	return offset
}

// positionOf returns the 1-based line and column of an offset.
func positionOf(code string, offset int) (line, column int) {
	line = 1
	start := 0
	for {
		n := lineLength(code[start:])
		next := start + n + endLength(code[start+n:])
		if start+n == len(code) || next > offset {
			break
		}
		start = next
		line++
	}
	column = 1
	for _, r := range code[start:max(start, offset)] {
		column += width(r)
	}
	return line, column
}

// endLength returns the length of the line end at the start of s.
func endLength(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
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
