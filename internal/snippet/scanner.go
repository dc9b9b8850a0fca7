package snippet

import "strings"

// A scanner reads the tokens of TypeScript or TSX, without its grammar, to find imports and fences of
// Markdown before esbuild translates the code. If it cannot distinguish a division from a
// regular expression, it assumes the more frequent one.
type scanner struct {
	lexer
	jsx bool

	open         []bracket
	preceding    operandState
	lastText     string // the last token
	slashUnclear bool   // the meaning of a slash in this line is unclear

	importStarts []int // start of each import declaration
	fenced       bool  // a line starts with ``` at pos, or with three tildes in JSX text
}

// operandState is the meaning of a slash after the last token.
type operandState uint8

const (
	operator operandState = iota // the start of a regular expression
	operand                      // a division
	unsure
)

// A bracket is an open bracket: ( [ { or ` for a template's ${}, < for a JSX tag and > for
// the children between two tags.
type bracket struct {
	kind    byte
	control bool // the parentheses of if, for, while or with
	closing bool // a closing tag, </a>
	begun   bool // a token of the current statement or list element was read
}

// scan scans the code, up to the offset at which it is found to be Markdown.
func scan(code string, jsx bool) *scanner {
	s := newScanner(code, jsx)
	s.scan()
	return s
}

func newScanner(code string, jsx bool) *scanner {
	return &scanner{lexer: lexer{code: code}, jsx: jsx, open: []bracket{{kind: '{'}}}
}

func (s *scanner) scan() {
	for more := true; more && !s.fenced; {
		switch s.top().kind {
		case '<':
			more = s.scanTag()
		case '>':
			more = s.scanChildren()
		default:
			more = s.scanToken()
		}
	}
}

// scanToken scans one token outside JSX tags and text.
func (s *scanner) scanToken() (more bool) {
	t := s.next()
	if t.kind == atEnd || t.kind == notAToken && t.end == len(s.code) {
		return false
	}
	s.token(t)
	return true
}

func (s *scanner) top() *bracket { return &s.open[len(s.open)-1] }

func (s *scanner) push(b bracket) {
	s.open = append(s.open, b)
	s.preceding = operator
}

func (s *scanner) pop() { s.open = s.open[:len(s.open)-1] }

func (s *scanner) token(t token) {
	text := s.code[t.start:t.end]
	if s.slashUnclear && t.newline {
		s.slashUnclear, s.preceding = false, unsure
	}
	var is traits
	if t.kind == word && mayBeKeyword(text) {
		is = keywords[text]
	}
	if s.startsStatement(t, text, is) {
		s.top().begun = false
	}
	switch t.kind {
	case word:
		s.word(t, text, is)
	case template:
		if fenceAt(s.code, t.start, "```") {
			s.pos, s.fenced = t.start, true
			return
		}
		s.templatePart(t.start)
	case punctuator:
		s.punctuator(t, text)
	case notAToken:
		s.preceding = unsure
	default:
		s.preceding = operand
	}
	s.top().begun = true
	s.lastText = text
	if s.pos != t.end { // a regular expression, or the end of a template
		s.lastText = ""
	}
}

// templatePart follows a part of a template that ends at the current offset.
func (s *scanner) templatePart(start int) {
	s.preceding = operand
	if strings.HasSuffix(s.code[start:s.pos], "${") {
		s.push(bracket{kind: '`'})
	}
}

// startsStatement reports whether a token starts a statement, after a semicolon or without
// one. Without one, only words and @ need to be detected.
func (s *scanner) startsStatement(t token, text string, is traits) bool {
	switch {
	case s.lastText == ";":
		return text != "else"
	case t.kind != word && text != "@", is&continues != 0:
		return false
	case s.lastText == "}", t.newline && s.preceding == operand:
		return true
	}
	return is&caseClause != 0 && s.lastText != "." && s.lastText != "?." && s.top().kind == '{'
}

func (s *scanner) word(t token, text string, is traits) {
	s.preceding = operand
	if s.lastText == "." || s.lastText == "?." {
		return
	}
	if text == "import" && len(s.open) == 1 && !s.top().begun {
		s.importStarts = append(s.importStarts, t.start)
	}
	switch {
	case is&contextual != 0:
		s.preceding = unsure
	case is&nests != 0:
		s.preceding = operator
	}
}

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

// closeBracket closes a bracket. It ignores mismatched brackets: esbuild reports them.
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

// scanSlash uses the last token to distinguish division from a regular expression. A type at the
// end of a line may not be an operand, so a slash on the next line may start a regular expression.
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
