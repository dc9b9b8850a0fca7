package snippet

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// simpleEscapes are the characters of escape sequences, by the letter after the backslash.
var simpleEscapes = map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'v': '\v', 'f': '\f', '0': 0}

// unescape returns the value of the text of a string, template or identifier.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		before, after, found := strings.Cut(text, `\`)
		b.WriteString(before)
		if text = after; found {
			text = unescapeOne(&b, after)
		}
	}
	return b.String()
}

// unescapeOne decodes the escape sequence at the start of text, without its backslash, and returns the rest.
func unescapeOne(b *strings.Builder, text string) string {
	if text == "" {
		return ""
	}
	digits, rest := "", ""
	switch c := text[0]; {
	case strings.HasPrefix(text, "u{"):
		digits, rest, _ = strings.Cut(text[2:], "}")
	case c == 'u' && len(text) >= 5:
		digits, rest = text[1:5], text[5:]
	case c == 'x' && len(text) >= 3:
		digits, rest = text[1:3], text[3:]
	default:
		if r, ok := simpleEscapes[c]; ok {
			b.WriteRune(r)
			return text[1:]
		}
		r, n := utf8.DecodeRuneInString(text)
		if r != '\n' { // which continues a line
			b.WriteRune(r)
		}
		return text[n:]
	}
	if n, err := strconv.ParseUint(digits, 16, 32); err == nil {
		b.WriteRune(rune(min(n, utf8.MaxRune+1)))
	}
	return rest
}
