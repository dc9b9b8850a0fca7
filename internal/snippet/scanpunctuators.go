package snippet

import "strings"

// rightward are the operators for whose right side esbuild recurses.
var rightward = setOf("!", "~", "+", "-", "++", "--", "?", ":", "=>", "**", "...", "=", "+=", "-=", "*=", "/=", "%=",
	"&=", "|=", "^=", "&&=", "||=", "??=", "<<=", ">>=", ">>>=", "**=")

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
		// + and - nest if no operand precedes them
		if rightward[text] && (s.preceding != operand || len(text) > 1 || text == "?" || text == ":" || text == "=") {
			s.addNesting(text == "=>")
		}
		s.preceding = operator
	}
}

// prefixOrPostfix handles operators that may be before or after their operand.
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

// closeAngles ends type arguments, if any are open.
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
		b.list = s.preceding == operand
	case "[":
		b.list = s.preceding == operator
	case "{":
		b.object = s.lastText == "=" || s.lastText == "(" || s.lastText == "," || s.lastText == "[" || s.lastText == "return" ||
			s.lastText == ":" && s.top().object
	}
	s.push(b)
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

// divergesBeyondLine reports whether the two meanings of a slash may lead to different
// tokens after the line. If not, the text of one meaning may be brackets in the other.
func (s *scanner) divergesBeyondLine(rest string) bool {
	if strings.Contains(rest, "`") || strings.Contains(rest, "/*") || strings.Contains(rest, "*/") ||
		strings.HasSuffix(rest, `\`) || s.jsx && strings.ContainsAny(rest, "<>") {
		return true
	}
	s.slashUnclear = true
	s.checkNames(rest)
	s.uncertain += countAny(rest, "([{}])")
	s.checkDepth()
	return false
}
