package snippet

import "strings"

// A scanner goes over TypeScript, or TSX, before esbuild does: over its tokens, without its
// grammar. It is there for what the reader does for JavaScript: to say how deep code nests
// and what esbuild will do with it. Where it can't tell a thing from another, it takes what
// costs more.
type scanner struct {
	lexer
	jsx bool

	open         []bracket
	preceding    operandState
	last         token
	lastText     string // its text
	previousText string // the text of the one before
	lastCounted  bool   // the last word counts as a message
	slashUnclear bool   // a slash of this line may be two things
	uncertain    int    // brackets that may be open still, if it's the other one
	cost         cost

	seen         map[string]bool // words that names may be
	importStarts []int           // of import declarations
	fenced       bool            // ``` begins a line, at pos; or ~~~ does in the text of JSX
	refusal      string          // why the code is refused, at pos
}

// operandState is what the last token was.
type operandState uint8

const (
	operator operandState = iota // a slash would begin a regular expression
	operand                      // it would divide
	unsure
)

// A bracket is what is open: ( [ { or ` for a template's ${}, < for a tag of JSX and > for
// what stands between two tags.
type bracket struct {
	kind    byte
	at      int  // where it stands
	control bool // the parentheses of if, for, while or with
	object  bool // the braces of an object: commas part its members
	closing bool // the tag </a>

	// Of the statement or the list's element that is under way:
	chain  int  // what nests to the right: !!!a, a => b => c, if (a) if (b)
	scopes int  // how many of these are scopes
	angles int  // of these are <, which no comma ends
	header bool // namespace a.b.c, where each dot nests
	commas int
	less   int // how many < there were
	lessAt int // the sum of where they stood
	begun  bool
	listed bool // it is a declaration, or the like, whose commas part names
}

// scan goes over the whole code, or up to where it is refused or Markdown's.
func scan(code string, jsx bool) *scanner {
	s := &scanner{lexer: lexer{code: code}, jsx: jsx, open: []bracket{{kind: '{'}}, seen: make(map[string]bool)}
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
	return s
}

// piece goes over a token of code.
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

// nest notes that what follows nests in the current token, and whether it's a scope.
func (s *scanner) addNesting(scope bool) {
	s.top().chain++
	s.cost.depth++
	if scope {
		s.top().scopes++
		s.cost.scopes++
	}
	s.checkDepth()
}

// scope is 1 if names may be declared in the bracket.
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

// settle ends a statement or a list's element.
func (s *scanner) endStatement() {
	b := s.top()
	s.cost.addComparison(b.less*s.pos - b.lessAt)
	if !b.object && !b.listed && b.kind == '{' {
		s.cost.addSequence(b.commas)
	}
	s.cost.depth -= b.chain
	s.cost.scopes -= b.scopes
	*b = bracket{kind: b.kind, at: b.at, control: b.control, object: b.object, closing: b.closing}
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
		s.word(t, text, is)
	case template:
		if fenceAt(s.code, t.start, "```") {
			s.pos, s.fenced = t.start, true
			return
		}
		s.preceding = operand
		if strings.HasSuffix(text, "${") {
			s.push(bracket{kind: '`'})
			s.preceding = operator
		}
	case punctuator:
		s.punctuator(t, text)
	case notAToken:
		s.preceding = unsure
	default:
		s.preceding = operand
	}
	s.top().begun = true
	s.previousText, s.last, s.lastText = s.lastText, t, text
	if s.pos != t.end { // a regular expression, or a template's end
		s.last, s.lastText = token{}, ""
	}
}

// startsStatement says whether a token does, with a semicolon before it or without. Of
// those without, only words and @ need to be told.
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
