package snippet

import "strings"

// bindsRightward is for the operators whose right side esbuild reads by recursion.
func bindsRightward(text string) bool {
	switch text {
	case "!", "~", "+", "-", "++", "--", "?", ":", "=>", "**", "...", "=", "+=", "-=", "*=", "/=", "%=",
		"&=", "|=", "^=", "&&=", "||=", "??=", "<<=", ">>=", ">>>=", "**=":
		return true
	}
	return false
}

func (s *scanner) punctuator(t token, text string) {
	switch text {
	case "(", "[", "{":
		s.opening(text)
	case ")", "]", "}":
		s.closing(t, text[0])
	case ",":
		s.comma()
	case "/", "/=":
		s.slash(t)
	case "<":
		s.lessThan(t)
	case "!", "++", "--":
		s.mark(t)
	case ".":
		if s.top().header {
			s.nest(true)
		}
	case ">", ">>", ">>>":
		s.greater(len(text))
	case ";":
		s.before = operator
	default:
		// + and - nest if there is no operand to their left.
		if bindsRightward(text) && (s.before != operand || len(text) > 1 || text == "?" || text == ":" || text == "=") {
			s.nest(text == "=>")
		}
		s.before = operator
	}
}

// mark is what may stand before its operand as well as behind it.
func (s *scanner) mark(t token) {
	if s.before == operand && !t.newline {
		return
	}
	s.nest(false)
	if s.before != unsure {
		s.before = operator
	}
}

func (s *scanner) comma() {
	b := s.top()
	b.commas++
	s.effort.depth -= b.chain - b.angles
	s.effort.scopes -= b.scopes
	b.chain, b.scopes = b.angles, 0
	s.before = operator
}

// greater ends type arguments, if there are any.
func (s *scanner) greater(n int) {
	b := s.top()
	n = min(n, b.angles)
	b.angles -= n
	b.chain -= n
	s.effort.depth -= n
	s.before = unsure
}

func (s *scanner) opening(text string) {
	b := bracket{kind: text[0]}
	switch text {
	case "(":
		b.control = s.lastIs == "if" || s.lastIs == "for" || s.lastIs == "while" || s.lastIs == "with"
	case "{":
		b.object = s.lastIs == "=" || s.lastIs == "(" || s.lastIs == "," || s.lastIs == "[" || s.lastIs == "return" ||
			s.lastIs == ":" && s.top().object
	}
	s.push(b)
	s.before = operator
}

func (b bracket) endsWith(c byte) bool {
	switch b.kind {
	case '(':
		return c == ')'
	case '[':
		return c == ']'
	case '{', '`':
		return c == '}'
	}
	return false
}

// closing ends a bracket. One that doesn't fit is wrong, and there esbuild ends too.
func (s *scanner) closing(t token, with byte) {
	b := *s.top()
	if len(s.open) == 1 || !b.endsWith(with) {
		return
	}
	s.pop()
	switch {
	case b.kind == '`':
		s.template(t.start)
		if strings.HasSuffix(s.code[t.start:s.pos], "${") {
			s.push(bracket{kind: '`'})
			s.before = operator
			return
		}
		s.before = operand
	case with == '}':
		s.before = unsure
	case b.control:
		s.before = operator
	default:
		s.before = operand
	}
}

// slash tells division from a regular expression by what is before it. A type may end
// where a line does, without an operand that could be divided.
func (s *scanner) slash(t token) {
	doubt := s.before == unsure || s.before == operand && t.newline
	if doubt && !s.hazy {
		rest := s.code[t.end : t.end+lineLength(s.code[t.end:])]
		if !strings.Contains(rest, "/") { // or a regular expression would not end
			s.before = operator
			return
		}
		if s.ambiguous(rest) {
			s.trouble = ambiguousSlash
			return
		}
	}
	if s.before == operand || s.before == unsure && s.lastIs != "}" {
		s.before = operator
		return
	}
	s.regex(t.start)
	s.before = operand
	s.flags(s.code[t.start:s.pos])
}

// ambiguous says whether the two ways to read a slash may go apart beyond the end of the
// line. If they can't, what the one takes for text may be brackets for the other.
func (s *scanner) ambiguous(rest string) bool {
	if strings.Contains(rest, "`") || strings.Contains(rest, "/*") || strings.Contains(rest, "*/") ||
		strings.HasSuffix(rest, `\`) || s.jsx && strings.ContainsAny(rest, "<>") {
		return true
	}
	s.hazy = true
	s.debt += strings.Count(rest, "(") + strings.Count(rest, "[") + strings.Count(rest, "{") +
		strings.Count(rest, ")") + strings.Count(rest, "]") + strings.Count(rest, "}")
	s.limit()
	return false
}

// lessThan begins a tag of JSX where an operand is to come. Elsewhere it may begin type
// arguments, for which esbuild looks ahead.
func (s *scanner) lessThan(t token) {
	next := s.at(0)
	generic := s.lastIs == "class" || s.lastIs == "function"
	if s.jsx && !generic && s.before != operand && (next == '>' || isWordByte(next) && !isDigit(next)) && !s.isGeneric() {
		s.push(bracket{kind: '<'})
		return
	}
	b := s.top()
	b.less++
	b.lessAt += t.start
	b.angles++
	s.nest(false)
	s.before = operator
}

// isGeneric says whether < begins the type parameters of an arrow function: in TSX they
// are <T,> or <T extends …>.
func (s *scanner) isGeneric() bool {
	l := s.lexer
	l.next()
	t := l.next()
	text := s.code[t.start:t.end]
	if text == "extends" {
		t = l.next()
		after := s.code[t.start:t.end]
		return after != "=" && after != ">" && after != "/"
	}
	return text == "," || text == "="
}

// tag goes over a piece of a tag: <a b="c" d={e}>.
func (s *scanner) tag() (more bool) {
	if _, closed := s.skipSpace(); !closed || s.pos == len(s.code) {
		return false
	}
	c := s.code[s.pos]
	if isWordByte(c) {
		s.lexer.word()
		s.effort.message(s.pos - s.top().at) // that it's there twice
		return true
	}
	s.pos++
	switch c {
	case '"', '\'':
		text, _, closed := strings.Cut(s.code[s.pos:], string(c))
		s.text(text)
		s.pos += len(text)
		if closed {
			s.pos++
		}
	case '{':
		s.push(bracket{kind: '{'})
		s.before = operator
	case '/':
		if s.at(0) == '>' {
			s.pos++
			s.endTag(true)
		}
	case '<':
		s.debt++ // type arguments, or an element as an attribute
		s.limit()
	case '>':
		s.endTag(s.top().closing)
	case '(', '[':
		s.debt++
		s.limit()
	}
	return true
}

// endTag goes on with the children of the element, or behind it if it is the last.
func (s *scanner) endTag(last bool) {
	if !last {
		s.top().kind = '>'
		return
	}
	s.pop()
	s.before = operand
	s.last, s.lastIs = token{}, ""
}

// children goes over the text between two tags, up to the next one or to {.
func (s *scanner) children() (more bool) {
	n := strings.IndexAny(s.code[s.pos:], "<{")
	if n < 0 || s.fence(s.code[s.pos:s.pos+n]) {
		return false
	}
	s.text(s.code[s.pos : s.pos+n])
	s.pos += n + 1
	if s.code[s.pos-1] == '{' {
		s.push(bracket{kind: '{'})
		s.before = operator
		return true
	}
	l := s.lexer
	if t := l.next(); s.code[t.start:t.end] == "/" {
		s.pos = l.pos
		s.top().kind, s.top().closing = '<', true
		return true
	}
	s.push(bracket{kind: '<'})
	return true
}

// fence looks in the text of JSX for what fences code in Markdown.
func (s *scanner) fence(text string) bool {
	for i, c := range []byte(text) {
		if at := s.pos + i; c == '`' && beginsFence(s.code, at, "```") || c == '~' && beginsFence(s.code, at, "~~~") {
			s.pos, s.fenced = at, true
			return true
		}
	}
	return false
}

// text notes brackets in what seems to be text.
func (s *scanner) text(text string) {
	open := strings.Count(text, "(") + strings.Count(text, "[") + strings.Count(text, "{")
	closed := strings.Count(text, ")") + strings.Count(text, "]") + strings.Count(text, "}")
	s.debt += max(0, open-closed)
	s.limit()
}
