package snippet

import "strings"

func (s *scanner) punctuator(t token, text string) {
	switch text {
	case "(", "[", "{":
		s.openBracket(text)
	case ")", "]", "}":
		s.closeBracket(t, text[0])
	case "/", "/=":
		s.scanSlash(t)
	case "<":
		s.scanLess()
	case "!", "++", "--":
		s.prefixOrPostfix(t)
	case ".":
	case ">", ">>", ">>>": // may end type arguments
		s.preceding = unsure
	default:
		s.preceding = operator
	}
}

// prefixOrPostfix handles operators that may be before or after their operand.
func (s *scanner) prefixOrPostfix(t token) {
	if s.preceding == operand && !t.newline {
		return
	}
	if s.preceding != unsure {
		s.preceding = operator
	}
}

func (s *scanner) openBracket(text string) {
	control := s.lastText == "if" || s.lastText == "for" || s.lastText == "while" || s.lastText == "with"
	s.push(bracket{kind: text[0], control: text == "(" && control})
}

func (b bracket) endsWith(c byte) bool {
	i := strings.IndexByte("([{`", b.kind)
	return i >= 0 && ")]}}"[i] == c
}

// closeBracket ends a bracket. esbuild stops at one that does not match.
func (s *scanner) closeBracket(t token, with byte) {
	b := *s.top()
	if len(s.open) == 1 || !b.endsWith(with) {
		return
	}
	s.pop()
	switch {
	case b.kind == '`':
		s.template(t.start)
		s.templatePart(t.start)
	case with == '}':
		s.preceding = unsure
	case b.control:
		s.preceding = operator
	default:
		s.preceding = operand
	}
}

// scanSlash uses the last token to distinguish division from a regular expression. A type
// may end at a line's end without an operand that could be divided.
func (s *scanner) scanSlash(t token) {
	doubt := s.preceding == unsure || s.preceding == operand && t.newline
	if doubt && !s.slashUnclear {
		rest := s.code[t.end : t.end+lineLength(s.code[t.end:])]
		if !strings.Contains(rest, "/") { // a regular expression would have to end in this line
			s.preceding = operator
			return
		}
		s.slashUnclear = true
	}
	if s.preceding == operand || s.preceding == unsure && s.lastText != "}" {
		s.preceding = operator
		return
	}
	s.regex(t.start)
	s.preceding = operand
}
