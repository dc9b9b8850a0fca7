package snippet

import "strings"

// A scanner reads the tokens of TypeScript or TSX, without its grammar, before esbuild
// does. Like the parser for JavaScript, it determines how deep the code nests and how
// expensive it is for esbuild. If it cannot distinguish two meanings, it assumes the more
// expensive one.
type scanner struct {
	lexer
	jsx bool

	open         []bracket
	preceding    operandState
	lastText     string // the last token
	previousText string // the token before it
	lastCounted  bool   // countDiagnostics counted the last word
	slashUnclear bool   // the meaning of a slash in this line is unclear
	uncertain    int    // brackets that may be open, depending on unclear slashes and text
	cost         cost

	seen         map[string]bool // words that may be names
	mentions     *mentions       // instead of seen, unless nil
	importStarts []int           // start of each import declaration
	fenced       bool            // a line starts with ``` at pos, or with three tildes in JSX text
	refusal      string          // why the code is rejected at pos
	longName     int             // where the first name longer than maxName ends, or 0
}

// operandState says what a slash after the last token means.
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
	at      int  // its offset
	control bool // the parentheses of if, for, while or with
	object  bool // the braces of an object, whose commas separate members
	list    bool // commas separate arguments or the elements of an array
	closing bool // a closing tag, </a>

	// About the current statement or list element:
	chain  int  // levels nested to the right: !!!a, a => b => c, if (a) if (b)
	scopes int  // those of chain that are scopes
	angles int  // those of chain that are <, which no comma ends
	header bool // in namespace a.b.c, where each dot nests
	commas int
	less   int // number of < so far
	lessAt int // sum of their offsets
	begun  bool
	listed bool // a declaration or similar, whose commas separate names
}

// scan scans the code, up to the place where it is rejected or is found to be Markdown.
func scan(code string, jsx bool) *scanner {
	s := newScanner(code, jsx)
	s.scan()
	return s
}

func newScanner(code string, jsx bool) *scanner {
	return &scanner{lexer: lexer{code: code}, jsx: jsx, open: []bracket{{kind: '{'}}, seen: make(map[string]bool)}
}

func (s *scanner) scan() {
	for more := true; more && s.refusal == "" && !s.fenced; {
		switch s.top().kind {
		case '<':
			more = s.scanTag()
		case '>':
			more = s.scanChildren()
		default:
			more = s.scanToken()
		}
	}
	s.endStatement()
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
	b.at = s.pos
	s.open = append(s.open, b)
	s.preceding = operator
	s.cost.depth++
	s.cost.scopes += b.scope()
	s.checkDepth()
}

func (s *scanner) pop() {
	s.endStatement()
	s.cost.depth--
	s.cost.scopes -= s.top().scope()
	s.open = s.open[:len(s.open)-1]
}

// addNesting records that the code after the current token is nested in it, and whether
// that is a scope.
func (s *scanner) addNesting(scope bool) {
	s.top().chain++
	s.cost.depth++
	if scope {
		s.top().scopes++
		s.cost.scopes++
	}
	s.checkDepth()
}

// scope returns 1 if names may be declared in the bracket, or 0.
func (b bracket) scope() int {
	if b.kind == '(' || b.kind == '{' {
		return 1
	}
	return 0
}

func (s *scanner) checkDepth() {
	if s.cost.depth+s.uncertain > maxNesting/2 {
		s.refusal = nestedTooDeeply
	}
}

// endStatement ends a statement or list element.
func (s *scanner) endStatement() {
	b := s.top()
	s.cost.addComparison(b.less*s.pos - b.lessAt)
	if !b.object && !b.list && !b.listed {
		s.cost.addSequence(b.commas)
	}
	s.cost.depth -= b.chain
	s.cost.scopes -= b.scopes
	*b = bracket{kind: b.kind, at: b.at, control: b.control, object: b.object, list: b.list, closing: b.closing}
}

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
		s.endStatement()
	}
	s.countDiagnostics(t, text, is)
	switch t.kind {
	case word:
		s.checkName(text)
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
	s.previousText, s.lastText = s.lastText, text
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

// checkName records where a name is too long.
func (s *scanner) checkName(text string) {
	if len(text) > maxName && s.longName == 0 {
		s.longName = s.pos
	}
}

// checkNames is checkName for text that may be code.
func (s *scanner) checkNames(text string) {
	for len(text) > maxName {
		n := 0
		for n < len(text) && isWordByte(text[n]) {
			n++
		}
		s.checkName(text[:n])
		text = text[min(n+1, len(text)):]
	}
}

func (s *scanner) word(t token, text string, is traits) {
	s.cost.addRename(s.uncertain)
	s.preceding = operand
	if s.lastText == "." || s.lastText == "?." {
		return
	}
	if b := s.top(); !b.begun {
		b.listed = is&listsNames != 0
		if text == "import" && len(s.open) == 1 {
			s.importStarts = append(s.importStarts, t.start)
		}
	}
	switch {
	case is&contextual != 0:
		s.preceding = unsure
		s.top().header = s.top().header || is&namespaceHeader != 0
	case is&nests != 0:
		s.preceding = operator
	}
	if is&nests != 0 {
		s.addNesting(is&opensScope != 0)
	}
}
