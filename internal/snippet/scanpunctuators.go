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
		s.openBracket(text)
	case ")", "]", "}":
		s.closeBracket(t, text[0])
	case ",":
		s.comma()
	case "/", "/=":
		s.scanSlash(t)
	case "<":
		s.scanLess(t)
	case "!", "++", "--":
		s.prefixOrPostfix(t)
	case ".":
		if s.top().header {
			s.addNesting(true)
		}
	case ">", ">>", ">>>":
		s.closeAngles(len(text))
	case ";":
		s.preceding = operator
	default:
		// + and - nest if there is no operand to their left.
		if bindsRightward(text) && (s.preceding != operand || len(text) > 1 || text == "?" || text == ":" || text == "=") {
			s.addNesting(text == "=>")
		}
		s.preceding = operator
	}
}

// mark is what may stand before its operand as well as behind it.
func (s *scanner) prefixOrPostfix(t token) {
	if s.preceding == operand && !t.newline {
		return
	}
	s.addNesting(false)
	if s.preceding != unsure {
		s.preceding = operator
	}
}

func (s *scanner) comma() {
	b := s.top()
	b.commas++
	s.cost.depth -= b.chain - b.angles
	s.cost.scopes -= b.scopes
	b.chain, b.scopes = b.angles, 0
	s.preceding = operator
}

// greater ends type arguments, if there are any.
func (s *scanner) closeAngles(n int) {
	b := s.top()
	n = min(n, b.angles)
	b.angles -= n
	b.chain -= n
	s.cost.depth -= n
	s.preceding = unsure
}

func (s *scanner) openBracket(text string) {
	b := bracket{kind: text[0]}
	switch text {
	case "(":
		b.control = s.lastText == "if" || s.lastText == "for" || s.lastText == "while" || s.lastText == "with"
	case "{":
		b.object = s.lastText == "=" || s.lastText == "(" || s.lastText == "," || s.lastText == "[" || s.lastText == "return" ||
			s.lastText == ":" && s.top().object
	}
	s.push(b)
	s.preceding = operator
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
func (s *scanner) closeBracket(t token, with byte) {
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
			s.preceding = operator
			return
		}
		s.preceding = operand
	case with == '}':
		s.preceding = unsure
	case b.control:
		s.preceding = operator
	default:
		s.preceding = operand
	}
}

// slash tells division from a regular expression by what is before it. A type may end
// where a line does, without an operand that could be divided.
func (s *scanner) scanSlash(t token) {
	doubt := s.preceding == unsure || s.preceding == operand && t.newline
	if doubt && !s.slashUnclear {
		rest := s.code[t.end : t.end+lineLength(s.code[t.end:])]
		if !strings.Contains(rest, "/") { // or a regular expression would not end
			s.preceding = operator
			return
		}
		if s.divergesBeyondLine(rest) {
			s.refusal = ambiguousSlash
			return
		}
	}
	if s.preceding == operand || s.preceding == unsure && s.lastText != "}" {
		s.preceding = operator
		return
	}
	s.regex(t.start)
	s.preceding = operand
	s.countFlags(s.code[t.start:s.pos])
}

// ambiguous says whether the two ways to read a slash may go apart beyond the end of the
// line. If they can't, what the one takes for text may be brackets for the other.
func (s *scanner) divergesBeyondLine(rest string) bool {
	if strings.Contains(rest, "`") || strings.Contains(rest, "/*") || strings.Contains(rest, "*/") ||
		strings.HasSuffix(rest, `\`) || s.jsx && strings.ContainsAny(rest, "<>") {
		return true
	}
	s.slashUnclear = true
	s.uncertain += strings.Count(rest, "(") + strings.Count(rest, "[") + strings.Count(rest, "{") +
		strings.Count(rest, ")") + strings.Count(rest, "]") + strings.Count(rest, "}")
	s.checkDepth()
	return false
}
