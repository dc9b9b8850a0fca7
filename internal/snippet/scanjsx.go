package snippet

import "strings"

// scanLess starts a JSX tag where an operand is expected. Elsewhere, a < may start type
// arguments, which esbuild looks for.
func (s *scanner) scanLess(t token) {
	next := s.at(0)
	generic := s.lastText == "class" || s.lastText == "function"
	if s.jsx && !generic && s.preceding != operand && (next == '>' || isWordByte(next) && !isDigit(next)) && !s.isGeneric() {
		s.push(bracket{kind: '<'})
		return
	}
	b := s.top()
	b.less++
	b.lessAt += t.start
	b.angles++
	s.addNesting(false)
	s.preceding = operator
}

// isGeneric reports whether < starts the type parameters of an arrow function: in TSX
// these are <T,> or <T extends …>.
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

// scanTag scans a part of a tag: <a b="c" d={e}>.
func (s *scanner) scanTag() (more bool) {
	if _, closed := s.skipSpace(); !closed || s.pos == len(s.code) {
		return false
	}
	c := s.code[s.pos]
	if isWordByte(c) {
		s.lexer.word()
		s.cost.addDiagnostic(s.pos - s.top().at) // for a duplicate attribute
		return true
	}
	s.pos++
	switch c {
	case '"', '\'':
		text, _, closed := strings.Cut(s.code[s.pos:], string(c))
		s.countBrackets(text)
		s.pos += len(text)
		if closed {
			s.pos++
		}
	case '{':
		s.push(bracket{kind: '{'})
	case '/':
		if s.at(0) == '>' {
			s.pos++
			s.endTag(true)
		}
	case '>':
		s.endTag(s.top().closing)
	case '<', '(', '[': // < for type arguments, or an element as an attribute
		s.uncertain++
		s.checkDepth()
	}
	return true
}

// endTag continues with the children of the element, or after the element if it has none
// or they have ended.
func (s *scanner) endTag(last bool) {
	if !last {
		s.top().kind = '>'
		return
	}
	s.pop()
	s.preceding = operand
	s.lastText = ""
}

// scanChildren scans the text between two tags, up to the next tag or {.
func (s *scanner) scanChildren() (more bool) {
	n := strings.IndexAny(s.code[s.pos:], "<{")
	if n < 0 || s.findFence(s.code[s.pos:s.pos+n]) {
		return false
	}
	s.countBrackets(s.code[s.pos : s.pos+n])
	s.pos += n + 1
	if s.code[s.pos-1] == '{' {
		s.push(bracket{kind: '{'})
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

// findFence looks in JSX text for a fence of Markdown.
func (s *scanner) findFence(text string) bool {
	for i, c := range []byte(text) {
		if at := s.pos + i; c == '`' && fenceAt(s.code, at, "```") || c == '~' && fenceAt(s.code, at, "~~~") {
			s.pos, s.fenced = at, true
			return true
		}
	}
	return false
}

// countBrackets counts brackets in apparent text.
func (s *scanner) countBrackets(text string) {
	s.checkNames(text)
	s.uncertain += max(0, countAny(text, "([{")-countAny(text, ")]}"))
	s.checkDepth()
}

// countAny returns how many bytes of text are in chars.
func countAny(text, chars string) (n int) {
	for _, c := range chars {
		n += strings.Count(text, string(c))
	}
	return n
}
