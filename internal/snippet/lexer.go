package snippet

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	atEnd      tokenKind = iota
	notAToken            // invalid in JavaScript: @, a lone quote, an open comment
	word                 // an identifier, #name or a keyword; the grammar decides which
	number               // with the suffix n
	quoted               // a string
	template             // a template up to its end or the next ${
	regex                // with its flags
	punctuator           // the longest operator or bracket
)

// A token is a part of the code, code[start:end].
type token struct {
	kind       tokenKind
	start, end int
	newline    bool // a line ends between the previous token and this one
}

// A lexer splits code into tokens. It returns a slash and } as punctuators: only the
// grammar knows where regular expressions start and where the ${} of a template ends.
// There, the caller calls regex or template for the same offset.
type lexer struct {
	code string
	pos  int
}

func (l *lexer) next() token {
	newline, closed := l.skipSpace()
	t := token{start: l.pos, newline: newline}
	if !closed {
		t.kind, l.pos = notAToken, len(l.code)
	} else if l.pos < len(l.code) {
		t.kind = l.scan(l.code[l.pos])
	}
	t.end = l.pos
	return t
}

// scan reads one token, whose first byte is c.
func (l *lexer) scan(c byte) tokenKind {
	switch {
	case isWordByte(c) && !isDigit(c):
		return l.word()
	case isDigit(c), c == '.' && isDigit(l.at(1)):
		return l.number()
	case c == '"', c == '\'':
		return l.quoted(c)
	case c == '`':
		return l.template(l.pos)
	case c == '#' && isWordByte(l.at(1)):
		l.pos++
		return l.word()
	}
	if n := punctuatorLength(l.code[l.pos:]); n > 0 {
		l.pos += n
		return punctuator
	}
	l.pos++
	return notAToken
}

// at returns the byte n after the current one, or 0.
func (l *lexer) at(n int) byte {
	if l.pos+n < len(l.code) {
		return l.code[l.pos+n]
	}
	return 0
}

// skipSpace skips white space and comments. It reports whether a line ended there, and
// whether all comments were closed.
func (l *lexer) skipSpace() (newline, closed bool) {
	for l.pos < len(l.code) {
		switch c := l.code[l.pos]; {
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
			l.pos++
		case c == '\n' || c == '\r':
			newline = true
			l.pos++
		case c == '/' && l.at(1) == '/':
			l.pos += lineLength(l.code[l.pos:])
		case c == '/' && l.at(1) == '*':
			rest := l.code[l.pos+2:]
			n := strings.Index(rest, "*/")
			if n < 0 {
				return newline, false
			}
			newline = newline || hasLineEnd(rest[:n])
			l.pos += n + 4
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(l.code[l.pos:])
			if !isSpace(r) {
				return newline, true
			}
			newline = newline || isLineEnd(r)
			l.pos += n
		default:
			return newline, true
		}
	}
	return newline, true
}

func (l *lexer) word() tokenKind {
	for l.pos < len(l.code) {
		c := l.code[l.pos]
		switch {
		case c == '\\':
			l.pos++
			if l.at(0) == 'u' && l.at(1) == '{' {
				l.pos += max(0, strings.IndexByte(l.code[l.pos:], '}'))
			}
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(l.code[l.pos:])
			if isSpace(r) {
				return word
			}
			l.pos += n
			continue
		case !isWordByte(c):
			return word
		}
		l.pos++
	}
	l.pos = len(l.code) // a lone backslash may have moved it further
	return word
}

// number is lenient: a word directly after a number is invalid anyway.
func (l *lexer) number() tokenKind {
	radix := l.at(0) == '0' && strings.IndexByte("xXoObB", l.at(1)) >= 0 && l.at(1) != 0
	for dot := false; l.pos < len(l.code); l.pos++ {
		c := l.code[l.pos]
		switch {
		case c == '.' && !dot && !radix:
			dot = true
		case (c == '+' || c == '-') && !radix && (l.code[l.pos-1]|0x20) == 'e':
		case !isWordByte(c) || c >= utf8.RuneSelf || c == '\\':
			return number
		case c == 'n' || (c|0x20) == 'e':
			dot = true // 1n.x and 1e5.x are members
		}
	}
	return number
}

func (l *lexer) quoted(quote byte) tokenKind {
	for l.pos++; l.pos < len(l.code); l.pos++ {
		switch l.code[l.pos] {
		case quote:
			l.pos++
			return quoted
		case '\\':
			if l.pos++; l.at(0) == '\r' && l.at(1) == '\n' {
				l.pos++
			}
		case '\n', '\r':
			return notAToken
		}
	}
	l.pos = len(l.code)
	return notAToken
}

// template reads from the ` of a template, or the } that ends its ${, at start, to its end
// or the next ${.
func (l *lexer) template(start int) tokenKind {
	for l.pos = start + 1; l.pos < len(l.code); l.pos++ {
		switch l.code[l.pos] {
		case '`':
			l.pos++
			return template
		case '$':
			if l.at(1) == '{' {
				l.pos += 2
				return template
			}
		case '\\':
			l.pos++
		}
	}
	l.pos = len(l.code)
	return notAToken
}

// regex reads a regular expression and its flags from the slash at start. In V8's v mode
// classes nest, but slashes must be escaped there too.
func (l *lexer) regex(start int) tokenKind {
	class := false
	for l.pos = start + 1; l.pos < len(l.code); l.pos++ {
		switch c := l.code[l.pos]; {
		case c == '\\':
			l.pos++
			if hasLineEnd(l.code[min(l.pos, len(l.code)):min(l.pos+1, len(l.code))]) {
				return notAToken
			}
		case c == '\n' || c == '\r':
			return notAToken
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.pos++
			l.word()
			return regex
		}
	}
	l.pos = len(l.code)
	return notAToken
}

// punctuators are the multi-byte punctuators, the longest first. Before a digit, ?. is not a punctuator.
var punctuators = strings.Fields(">>>= ... === !== **= <<= >>= >>> &&= ||= ??= => == != ** *= << <= >> >= && &= || |= ?? ?. ++ += -- -= /= %= ^=")

func punctuatorLength(code string) int {
	if strings.IndexByte("{}()[];,<>+-*/%&|^!~?:=.", code[0]) < 0 {
		return 0
	}
	if len(code) == 1 || strings.IndexByte(".=><*&|?+-", code[1]) < 0 {
		return 1 // no other byte can be the second
	}
	for _, p := range punctuators {
		if strings.HasPrefix(code, p) && (p != "?." || len(code) == 2 || !isDigit(code[2])) {
			return len(p)
		}
	}
	return 1
}

// isWordByte reports whether a byte may continue a word, as all bytes beyond ASCII do except in
// white space.
func isWordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c == '_' || c == '$' || c == '\\' || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isSpace reports whether r is white space or a line end of ECMAScript.
func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r >= utf8.RuneSelf && (unicode.Is(unicode.Zs, r) || r == '\ufeff' || isLineEnd(r))
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

func hasLineEnd(s string) bool { return strings.IndexFunc(s, isLineEnd) >= 0 }

// lineLength returns the length of the first line without its end.
func lineLength(s string) int {
	if n := strings.IndexFunc(s, isLineEnd); n >= 0 {
		return n
	}
	return len(s)
}
