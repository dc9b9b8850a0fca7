package snippet

import "slices"

// A span is a part of the code, code[start:end].
type span struct{ start, end int }

// A parser makes the tree of JavaScript. It does not validate: esbuild decides which code is valid, and
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

	nodes []Node // allocated for the next nodes of the tree

	context
	root    *Node
	depth   int  // levels of nesting
	nesting int  // the maximum of depth
	types   bool // accept TypeScript's imports of types
	failed  bool
	refusal string // why the code is rejected, if it is

	topReturn bool // a return outside functions
	isModule  bool // only modules allow the code
	lastBlock int  // start of the last top-level statement that is a block, or -1
	fenced    bool // a line starts with ```
}

// context is the part of the parser's state that each function sets for its body.
type context struct {
	async, generator bool // await and yield are operators
	function         bool // return is allowed
	noIn             bool // in ends the expression, as in the head of a for
}

// newParser returns a parser at the first token, outside functions.
func newParser(code string) *parser {
	p := &parser{lexer: newLexer(code), context: context{async: true}, lastBlock: -1, nesting: maxNesting, root: &Node{Kind: Block}}
	p.next()
	return p
}

// parse parses a whole program, which nests at most so deep.
func parse(code string, nesting int) (p *parser) {
	p = newParser(code)
	p.nesting = nesting
	defer func() {
		if recover() != nil { // hostile code must not end the host through a bug of the lexer
			p.fail()
		}
	}()
	p.statements(p.root)
	if p.tok.kind != atEnd {
		p.fail()
	}
	if !p.failed {
		p.root.Scope = &Scope{function: true}
		resolveAll(p.root.Kids, p.root.Scope)
	}
	return p
}

// parseRest reads the rest of the program from an offset on, except for semicolons, and returns where
// that ends.
func parseRest(code string, at int, read func(*parser) *Node) (end int, ok bool) {
	p := newParser(code[at:])
	read(p)
	end = at + p.last
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

// fail stops the parser. Its position does not change.
func (p *parser) fail() {
	p.failed = true
	p.tok.kind, p.tok.end = atEnd, p.tok.start
}

// enter starts a level of nesting, which leave ends.
func (p *parser) enter() {
	if p.depth++; p.depth > p.nesting {
		p.refuse()
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) refuse() {
	p.refusal = nestedTooDeeply
	p.fail()
}

func (p *parser) text() string { return p.code[p.tok.start:p.tok.end] }

// is reports whether the current token is the word or punctuator text.
func (p *parser) is(text string) bool {
	return p.tok.end-p.tok.start == len(text) && (p.tok.kind == word || p.tok.kind == punctuator) && p.text() == text
}

func (p *parser) isAny(texts ...string) bool {
	return (p.tok.kind == word || p.tok.kind == punctuator) && slices.Contains(texts, p.text())
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

// peek returns the n-th token after the current one, and its text.
func (p *parser) peek(n int) (t token, text string) {
	t = p.tok
	if !p.failed {
		t = p.ahead(n)
	}
	return t, p.code[t.start:t.end]
}

// peekIs reports whether the token after the current one is text.
func (p *parser) peekIs(text string) bool {
	_, next := p.peek(1)
	return next == text
}

// semicolon ends a statement by the rules of automatic semicolon insertion.
func (p *parser) semicolon() {
	if !p.accept(";") && !p.is("}") && p.tok.kind != atEnd && !p.tok.newline {
		p.fail()
	}
}

// list reads elements separated by commas, and the end.
func (p *parser) list(end string, element func()) {
	noIn := p.noIn
	p.noIn = false
	for !p.failed && !p.is(end) {
		element()
		if !p.is(end) {
			p.expect(",")
		}
	}
	p.noIn = noIn
	p.expect(end)
}

// inside reads a part of the code in a context.
func (p *parser) inside(c context, read func()) {
	outer := p.context
	p.context = c
	read()
	p.context = outer
}

// enclosed reads an expression between two tokens, so that it may contain the operator in.
func (p *parser) enclosed(read func() *Node) (n *Node) {
	c := p.context
	c.noIn = false
	p.inside(c, func() { n = read() })
	return n
}
