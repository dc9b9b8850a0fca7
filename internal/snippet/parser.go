package snippet

// A span is a part of the code, code[start:end].
type span struct{ start, end int }

// A reader reads JavaScript by its grammar, as far as is needed to tell where statements
// and their expressions begin and end, and which names modules bind. It doesn't judge:
// esbuild is the authority on what is valid, and of a valid program the reader is to find
// the right parts. It reads more than is valid, and never a valid program in another way,
// because by one token's lookahead the grammar is unambiguous; what an arrow's parameters
// and patterns share with expressions is read as both.
//
// When it fails, the code is at its end for all that reads on.
type parser struct {
	lexer
	tok  token
	last int // where the token before ended

	context
	cost    cost
	failed  bool
	refusal string // why, if the code is refused

	commas      int         // of the sequence that was read last
	lastBody    []statement // of the function body that was read last
	topReturn   bool        // there is a return outside of functions
	lastBlock   int         // where the last statement that is a block begins, outside of all others, or -1
	fenced      bool        // ``` begins a line
	tildeFenced bool        // ~~~ does

	declared []string // names outside of functions, and in patterns all words
	pattern  bool     // one is being read

	imports  []span // the word of each import(…)
	metas    []span // import.meta
	topAwait bool   // await is an operator outside of functions

	names nameSet // of CommonJS that are variables here
	bound nameSet // of these, those that may be declared here
}

// context is what a function changes for the code in it.
type context struct {
	async, generator bool // await and yield are operators
	function         bool // return ends a function
}

// read reads a whole program.
func parse(code string) (*parser, []statement) {
	p := newParser(code, 0)
	list := p.statements()
	if p.tok.kind != atEnd {
		p.fail()
	}
	return p, list
}

// newParser is at the token that begins at an offset, outside of functions.
func newParser(code string, at int) *parser {
	p := &parser{lexer: lexer{code: code, pos: at}, context: context{async: true}, lastBlock: -1}
	p.next()
	return p
}

// parseRest reads what is the rest of the program, but for semicolons, and gives its end.
func parseRest(code string, at int, read func(*parser)) (end int, ok bool) {
	p := newParser(code, at)
	read(p)
	end = p.last
	for p.accept(";") {
	}
	return end, !p.failed && p.tok.kind == atEnd
}

func (p *parser) next() {
	if p.failed {
		return
	}
	p.last = p.tok.end
	p.setToken(p.lexer.next())
}

func (p *parser) setToken(t token) {
	switch p.tok = t; t.kind {
	case notAToken:
		p.fail()
	case word:
		p.cost.addLookup()
		if p.pattern {
			p.declared = append(p.declared, p.text())
		}
	}
}

// again takes the current token, which begins with a slash or with }, as what scan finds
// there.
func (p *parser) rescan(scan func(start int) tokenKind) {
	if p.failed {
		return
	}
	t := p.tok
	t.kind = scan(t.start)
	t.end = p.pos
	p.setToken(t)
}

// fail ends the reading. The position stays where it is.
func (p *parser) fail() {
	p.failed = true
	p.tok.kind, p.tok.end = atEnd, p.tok.start
}

// deeper begins a level of nesting, which is to be ended by shallower.
func (p *parser) enter() {
	if p.cost.depth++; p.cost.depth > maxNesting {
		p.refusal = nestedTooDeeply
		p.fail()
	}
}

func (p *parser) leave() { p.cost.depth-- }

func (p *parser) text() string { return p.code[p.tok.start:p.tok.end] }

// is says whether the current token is a word or punctuator with this text.
func (p *parser) is(text string) bool {
	return p.tok.end-p.tok.start == len(text) && (p.tok.kind == word || p.tok.kind == punctuator) && p.text() == text
}

func (p *parser) isAny(texts ...string) bool {
	for _, t := range texts {
		if p.is(t) {
			return true
		}
	}
	return false
}

// take goes over the current token if it is text.
func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.fail()
	}
}

// ahead is the token after the current one.
func (p *parser) peek() token {
	if p.failed {
		return p.tok
	}
	l := p.lexer
	return l.next()
}

// isAhead says whether the token after the current one is text.
func (p *parser) peekIs(text string) bool {
	t := p.peek()
	return p.code[t.start:t.end] == text
}

// semicolon ends a statement, by the rules of its automatic insertion.
func (p *parser) semicolon() {
	if !p.accept(";") && !p.is("}") && p.tok.kind != atEnd && !p.tok.newline {
		p.fail()
	}
}
