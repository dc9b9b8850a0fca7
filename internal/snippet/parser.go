package snippet

// A span is a part of the code, code[start:end].
type span struct{ start, end int }

// A parser finds where the statements and expressions of JavaScript start and end, and
// which names modules bind. It makes a tree if root is not childless. It does not validate: esbuild decides which code is valid, and
// of valid code the parser must find the right parts. It accepts more than is valid, but
// never reads a valid program differently, because the grammar is unambiguous with one
// token of lookahead; it reads the syntax that arrow parameters and patterns share with
// expressions as both.
//
// After an error, the parser behaves as at the end of the code.
type parser struct {
	lexer
	tok  token
	last int // end of the previous token

	context
	root    *Node // of the tree; childless if none is made, to save memory
	depth   int   // levels of nesting
	nesting int   // the maximum of depth
	types   bool  // accept TypeScript's imports of types
	failed  bool
	refusal string // why the code is rejected, if it is

	lastBody  []statement // of the last function body
	topReturn bool        // a return outside functions
	lastBlock int         // start of the last top-level statement that is a block, or -1
	fenced    bool        // a line starts with ```

	decls     []declaration
	exporting bool      // reading an exported declaration
	listed    []binding // of lists: the exported name, and the code's

	metas    []span // each import.meta
	topAwait bool   // await is an operator outside functions
}

// context is the part of the parser's state that each function sets for its body.
type context struct {
	async, generator bool // await and yield are operators
	function         bool // return is allowed
}

// parse parses a whole program, with its tree.
func parse(code string) (*parser, []statement) {
	p := newParser(code, 0)
	return p, p.tree()
}

// tree reads the program and makes its tree.
func (p *parser) tree() []statement {
	p.root.childless = false
	list := p.program()
	if !p.failed {
		resolve(p.root)
	}
	return list
}

func (p *parser) program() []statement {
	list := p.statements(p.root)
	if p.tok.kind != atEnd {
		p.fail()
	}
	return list
}

// newParser returns a parser at the first token from an offset on, outside functions.
func newParser(code string, at int) *parser {
	p := &parser{lexer: lexer{code: code, pos: at}, context: context{async: true}, lastBlock: -1, nesting: maxNesting, root: &Node{Kind: Block, childless: true}}
	p.next()
	return p
}

// parseRest reads the rest of the program except for semicolons, and returns where that
// ends.
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
	if p.tok = t; t.kind == notAToken {
		p.fail()
	}
}

// rescan scans the current token again, which starts with a slash or }: its kind depends on the
// context.
func (p *parser) rescan(scan func(start int) tokenKind) {
	if p.failed {
		return
	}
	t := p.tok
	t.kind = scan(t.start)
	t.end = p.pos
	p.setToken(t)
}

// fail stops the parser. Its position does not change.
func (p *parser) fail() {
	p.failed = true
	p.tok.kind, p.tok.end = atEnd, p.tok.start
}

// enter starts a level of nesting, which leave ends.
func (p *parser) enter() {
	if p.depth++; p.depth > p.nesting {
		p.refusal = nestedTooDeeply
		p.fail()
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) text() string { return p.code[p.tok.start:p.tok.end] }

// is reports whether the current token is the word or punctuator text.
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

// accept reads the current token if it is text.
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

// peek returns the token after the current one, and its text.
func (p *parser) peek() (t token, text string) {
	t = p.tok
	if !p.failed {
		l := p.lexer
		t = l.next()
	}
	return t, p.code[t.start:t.end]
}

// peekIs reports whether the token after the current one is text.
func (p *parser) peekIs(text string) bool {
	_, next := p.peek()
	return next == text
}

// semicolon ends a statement by the rules of automatic semicolon insertion.
func (p *parser) semicolon() {
	if !p.accept(";") && !p.is("}") && p.tok.kind != atEnd && !p.tok.newline {
		p.fail()
	}
}
