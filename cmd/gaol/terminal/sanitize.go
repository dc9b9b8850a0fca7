package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gaol/internal/lazyregexp"
)

// colorSequence matches an escape sequence that changes colors and fonts, and nothing else.
var colorSequence = lazyregexp.New(`^\x1b\[[0-9;]{0,32}m`)

const resetColors = "\x1b[0m"

// Sanitize returns untrusted text with control characters and characters that
// change the direction of writing replaced by visible escapes. Line feeds and tabs
// stay. With colors, color sequences stay too, and a reset follows the text.
func Sanitize(text string, colors bool) string {
	var b strings.Builder
	colored := false
	for len(text) > 0 {
		if found := colorSequence().FindString(text); colors && found != "" {
			b.WriteString(found)
			text, colored = text[len(found):], true
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n', r == '\t', !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r):
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	if colored {
		b.WriteString(resetColors)
	}
	return b.String()
}
