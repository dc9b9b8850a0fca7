package snippet

import "strings"

// sequence reads an expression with commas. callable reports whether it is exactly one
// function.
func (p *parser) sequence(noIn bool) (callable bool) {
	callable = p.assignment(noIn)
	for p.accept(",") {
		p.assignment(noIn)
		callable = false
	}
	return callable
}

// assignment reads an expression without commas. Precedence does not affect where it ends,
// so operands and operators alternate. Operands nested on the right, for which esbuild
// recurses, count as nested until the end.
func (p *parser) assignment(noIn bool) (callable bool) {
	depth := p.depth
	defer func() { p.depth = depth }()
	callable = true
	for level := depth; !p.failed; {
		p.depth = level
		p.enter()
		if p.prefixOperators() {
			callable = false
		}
		if p.is("yield") && p.generator {
			if !p.yield() {
				return false
			}
			callable = false
			continue
		}
		kind := p.operand(noIn)
		if kind == anArrow {
			return callable
		}
		if p.postfixes() || kind != aFunction {
			callable = false
		}
		some, right := p.operator(noIn)
		if !some {
			return callable
		}
		if right {
			level++
		}
		callable = false
	}
	return false
}

// prefixes are the prefix operators, to the parser also new.
var prefixes = setOf("!", "~", "+", "-", "++", "--", "typeof", "void", "delete", "new")

func (p *parser) prefixOperators() (some bool) {
	for p.tok.kind == word || p.tok.kind == punctuator {
		text := p.text()
		switch {
		case text == "await" && p.async && !p.peekIs("=>"):
			p.noteAwait()
		case text == "new" && p.peekIs("."):
			return some
		case !prefixes[text]:
			return some
		}
		if text == "~" {
			p.tildeFenced = p.tildeFenced || fenceAt(p.code, p.tok.start, "~~~")
		}
		p.enter()
		p.next()
		if increments[text] && p.tok.kind == word {
			p.assigned = append(p.assigned, p.text())
		}
		some = true
	}
	return some
}

// noteAwait records an await, which makes the code a module if it is outside functions.
func (p *parser) noteAwait() { p.topAwait = p.topAwait || !p.function }

// yield reads the word, and reports whether an operand follows.
func (p *parser) yield() bool {
	p.next()
	if p.tok.newline || p.tok.kind == atEnd || p.isAny(")", "]", "}", ",", ";", ":", "in", "of") {
		return false
	}
	p.accept("*")
	return true
}

// operator reads a binary operator, if there is one, and reports whether it is
// right-associative. esbuild makes lists of the left-associative ones.
func (p *parser) operator(noIn bool) (some, right bool) {
	switch {
	case p.accept("?"):
		p.assignment(false)
		p.expect(":")
		return true, true
	case p.tok.kind == word:
		return p.accept("instanceof") || !noIn && p.accept("in"), false
	case p.tok.kind != punctuator || notBinary[p.text()]:
		return false, false
	case p.is("<") && strings.HasPrefix(p.code[p.tok.start:], "<!--"):
		p.fail() // a browser's HTML comment in scripts, an error in modules
	}
	right = p.is("**") || p.isAssignment()
	p.next()
	return true, right
}

var (
	// notBinary are the punctuators that are not binary operators.
	notBinary   = setOf("(", ")", "[", "]", "{", "}", ";", ",", ":", ".", "...", "?.", "=>", "!", "~", "++", "--")
	increments  = setOf("++", "--")
	comparisons = setOf("==", "===", "!=", "!==", "<=", ">=")
)

func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool)
	for _, t := range texts {
		set[t] = true
	}
	return set
}

// postfixes reads all that directly follows an operand: .name, [key], (arguments), a
// template, ++.
func (p *parser) postfixes() (some bool) {
	for n := 0; ; n++ {
		switch {
		case p.tok.kind == template:
			p.template()
		case p.is("."), p.is("?.") && !p.peekIs("(") && !p.peekIs("["):
			p.member()
		case p.is("?."):
			p.next()
		case p.is("["):
			p.next()
			p.sequence(false)
			p.expect("]")
		case p.is("("):
			p.arguments()
		case p.isAny("++", "--") && !p.tok.newline:
			p.next()
		default:
			return n > 0
		}
		if n > maxMembers {
			p.refusal = nestedTooDeeply
			p.fail()
		}
	}
}

// member reads .name, .#name, ?.name and the invalid ?.`…`.
func (p *parser) member() {
	p.next()
	if p.tok.kind != word {
		p.fail()
	}
	p.next()
}

// arguments reads a list in parentheses: an expression, the arguments of a call, or the
// parameters of an arrow function. callable reports whether it contains exactly one
// function.
func (p *parser) arguments() (callable bool) {
	p.expect("(")
	n := 0
	p.list(")", func() {
		spread := p.accept("...")
		callable = p.assignment(false) && n == 0 && !spread && !p.is(",")
		n++
	})
	return callable
}

func (p *parser) array() {
	p.expect("[")
	p.list("]", func() {
		if !p.is(",") { // an omitted element
			p.accept("...")
			p.assignment(false)
		}
	})
}

// template reads a template from its first part on.
func (p *parser) template() {
	p.fenced = p.fenced || fenceAt(p.code, p.tok.start, "```")
	for strings.HasSuffix(p.text(), "${") && p.tok.kind == template {
		p.next()
		p.sequence(false)
		if !p.is("}") {
			p.fail()
			return
		}
		p.rescan(p.lexer.template)
	}
	p.next()
}
