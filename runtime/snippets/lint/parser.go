package lint

import (
	"slices"
	"strings"

	"gaol/internal/snippet"
)

// maxDepth bounds the recursion of the parser. Code that package snippet accepts nests less.
const maxDepth = 4000

// A parser reads valid JavaScript, as esbuild prints it. It accepts more than is valid. It
// reads patterns, which it can only recognize at their end, like expressions: resolve
// distinguishes them.
//
// After an error, the parser behaves as at the end of the code.
type parser struct {
	code   string
	tokens *snippet.Tokens
	tok    snippet.Token
	failed bool
	depth  int

	context
	noIn bool // in is not an operator: in the head of a loop
}

// context is the part of the parser's state that each function sets for its body.
type context struct {
	function         bool
	async, generator bool
}

// parse returns the syntax tree of a file, or the offset at which it could not be read.
func parse(code string) (tree *node, failed int, ok bool) {
	p := &parser{code: code, tokens: snippet.NewTokens(code)}
	if strings.HasPrefix(code, "#!") {
		p.tokens.Seek(max(strings.IndexByte(code, '\n'), 0))
	}
	p.next()
	tree = &node{kind: block}
	for p.tok.Kind != snippet.AtEnd {
		tree.add(p.statement())
	}
	return tree, p.tok.Start, !p.failed
}

func (p *parser) next() {
	if p.failed {
		return
	}
	if p.tok = p.tokens.Next(); p.tok.Kind == snippet.NotAToken {
		p.fail()
	}
}

func (p *parser) fail() {
	p.failed = true
	p.tok.Kind, p.tok.End = snippet.AtEnd, p.tok.Start
}

// enter starts a level of nesting, which leave ends.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) text() string { return p.code[p.tok.Start:p.tok.End] }

// is reports whether the current token is one of the words or punctuators.
func (p *parser) is(texts ...string) bool {
	return (p.tok.Kind == snippet.Word || p.tok.Kind == snippet.Punctuator) && slices.Contains(texts, p.text())
}

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
func (p *parser) peek() (snippet.Token, string) {
	if p.failed {
		return p.tok, ""
	}
	ahead := *p.tokens
	t := ahead.Next()
	return t, p.code[t.Start:t.End]
}

// more reports whether a list continues that the token text ends.
func (p *parser) more(text string) bool {
	return p.tok.Kind != snippet.AtEnd && !p.is(text)
}

// node returns a node at the current token.
func (p *parser) node(k kind) *node {
	return &node{kind: k, at: p.tok.Start, start: p.tok.Start}
}

// word reads an identifier or the name of a property.
func (p *parser) word(k kind) *node {
	n := p.node(k)
	if p.tok.Kind != snippet.Word {
		p.fail()
	}
	if n.name = p.text(); strings.Contains(n.name, `\`) {
		n.name = unescape(n.name)
	}
	p.next()
	return n
}

// inside reads code in another context.
func (p *parser) inside(c context, read func()) {
	outer, noIn := p.context, p.noIn
	p.context, p.noIn = c, false
	read()
	p.context, p.noIn = outer, noIn
}

// bracketed reads code between brackets, in which in is an operator.
func (p *parser) bracketed(open, shut string, read func()) {
	noIn := p.noIn
	p.noIn = false
	p.expect(open)
	read()
	p.expect(shut)
	p.noIn = noIn
}

// list reads expressions between commas, up to the token shut.
func (p *parser) list(shut string) (list []*node) {
	for p.more(shut) {
		if p.accept(",") {
			continue
		}
		list = append(list, p.element())
		if !p.is(",") && !p.is(shut) {
			p.fail()
		}
	}
	return list
}

// element reads an expression, or ... and one.
func (p *parser) element() *node {
	if !p.is("...") {
		return p.assignment()
	}
	n := p.node(spread)
	p.next()
	return n.add(p.assignment())
}
