package snippet

import "strings"

// scanLess starts a JSX tag where an operand is expected.
func (s *scanner) scanLess() {
	next := s.at(0)
	generic := s.lastText == "class" || s.lastText == "function"
	if s.jsx && !generic && s.preceding != operand && (next == '>' || isWordByte(next) && !isDigit(next)) && !s.isGeneric() {
		s.push(bracket{kind: '<'})
		return
	}
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
		return true
	}
	s.pos++
	switch c {
	case '"', '\'':
		text, _, closed := strings.Cut(s.code[s.pos:], string(c))
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
	}
	return true
}

// endTag continues with the children of the element, or after an element without children or at
// its end.
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
