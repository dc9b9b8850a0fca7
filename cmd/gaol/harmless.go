package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is a terminal's escape sequence that changes how text looks, and nothing else.
var style = regexp.MustCompile(`^\x1b\[[0-9;]{0,32}m`)

const plainStyle = "\x1b[0m"

// harmless makes a guest's text harmless to the terminal that shows it: control
// characters, and those that turn the direction of writing, become visible. With styles,
// sequences that change the looks of this very text stay.
func harmless(text string, styles bool) string {
	var b strings.Builder
	styled := false
	for len(text) > 0 {
		if found := style.FindString(text); styles && found != "" {
			b.WriteString(found)
			text, styled = text[len(found):], true
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n', r == '\t', !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r):
			b.WriteRune(r) // what is not UTF-8 is U+FFFD
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	if styled {
		b.WriteString(plainStyle)
	}
	return b.String()
}
