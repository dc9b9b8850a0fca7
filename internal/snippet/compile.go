package snippet

import (
	"cmp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// A compiler tries the languages that code may be written in.
type compiler struct {
	module     bool         // the result is a module, not a script
	unmapped   bool         // positions of the result are not needed
	file       string       // the name, if the program is a file
	err        *SyntaxError // of the attempt that got furthest
	conclusive bool         // err is about Markdown, and final
}

// parsed is a valid JavaScript program with its statements.
type parsed struct {
	draft
	tree *Node
	// unused are imports that TypeScript does not use as values.
	unused map[string]bool
	// script: the code is not in strict mode.
	script   bool
	isModule bool // only modules allow the code
	// wrapped: the code is the body of an async function, the expression of the only
	// statement.
	wrapped bool
}

// recordError keeps the error that is furthest down the snippet: the attempt that parsed more was the right one.
func (c *compiler) recordError(err *SyntaxError) (parsed, bool) {
	if c.err == nil || cmp.Or(cmp.Compare(err.Line, c.err.Line), cmp.Compare(err.Column, c.err.Column)) > 0 {
		c.err = err
	}
	return parsed{}, false
}

// program extracts the code from Markdown, unless the whole text is code. In JavaScript,
// three backticks are an empty template that is called as a tag of the next one, which
// always throws: so they mean Markdown. Three tildes are valid.
func (c *compiler) program(d draft) (parsed, bool) {
	fences := findFences(d.text)
	if len(fences) == 0 {
		if b, ok := singleLineBlock(d.text); ok {
			return c.code(extract(d, []codeBlock{b}))
		}
		return c.code(d)
	}
	// No template, comment, JSX or continued string can be open after this text. This avoids trying prose as code.
	before := d.text[:fences[0].start]
	if fences[0].mark == '`' && !strings.ContainsAny(before, "`<\\") && !strings.Contains(before, "/*") {
		return c.markdown(d, fences)
	}
	if parse(d.text, maxNesting).fenced { // code scans text that cannot be parsed
		return c.markdown(d, fences)
	}
	if p, ok := c.code(d); ok {
		return p, true
	}
	return c.markdown(d, fences)
}

// code tries the languages in order: JavaScript, TypeScript, TSX.
func (c *compiler) code(d draft) (parsed, bool) {
	if p, ok := c.javascript(d); ok {
		return p, true
	}
	if p, ok := c.typescript(d); ok || c.conclusive {
		return p, ok
	}
	return c.parenthesized(d)
}

// javascript accepts code unchanged if the parser and esbuild do.
func (c *compiler) javascript(d draft) (parsed, bool) {
	js := parse(d.text, maxNesting)
	switch {
	case js.refusal != "":
		return c.recordError(d.errorAt(js.tok.start, js.refusal))
	case js.failed && js.lastBlock >= 0:
		if p, ok := c.object(d, js.lastBlock); ok {
			return p, true
		}
		fallthrough
	case js.failed:
		return parsed{}, false
	}
	if s := lastStatement(js.root.Kids); s != nil {
		if p, ok := c.reinterpretLast(d, s); ok {
			return p, true
		}
	}
	if js.topReturn {
		p, ok := c.javascript(wrap(d, importsOf(js.root.Kids)))
		p.wrapped = true
		return p, ok
	}
	p := parsed{draft: d, tree: js.root, isModule: js.isModule}
	if err := c.check(d); err != nil {
		script := compiler{}
		if p.script = c.module && !p.isModule && script.check(d) == nil; !p.script {
			return c.recordError(err)
		}
	}
	return c.orScript(p), true
}

// reinterpretLast reads the last statement as an expression: a block as an object, and an
// anonymous function declaration as a function.
func (c *compiler) reinterpretLast(d draft, s *Node) (parsed, bool) {
	inner := compiler{module: c.module}
	switch {
	case s.Kind == Block:
		return inner.object(d, s.Start)
	case s.Kind == Function && !s.declares:
		return inner.javascript(d.parenthesize(s.span()))
	}
	return parsed{}, false
}

// parenthesize encloses the end of the program in parentheses, to make it an expression.
func (d draft) parenthesize(at span) draft {
	open := "("
	if strings.TrimSpace(d.text[:at.start]) != "" {
		open = ";(" // otherwise the expression before it would be called
	}
	return d.edit([]edit{insert(at.start, open), insert(at.end, ")")})
}

// object reads a block at the end of the program as an object, if that is valid.
func (c *compiler) object(d draft, at int) (parsed, bool) {
	end, ok := parseRest(d.text, at, (*parser).object)
	if before := strings.TrimSpace(d.text[:at]); !ok || before != "" && strings.TrimSpace(d.text[at+1:end-1]) == "" {
		return parsed{}, false
	}
	return c.javascript(d.parenthesize(span{at, end}))
}

// typescript tries TypeScript and TSX.
func (c *compiler) typescript(d draft) (p parsed, ok bool) {
	if p, ok = c.typed(d, api.LoaderTS); !ok {
		p, ok = c.typed(d, api.LoaderTSX)
	}
	return p, ok
}

// typed translates one of them with esbuild.
func (c *compiler) typed(d draft, loader api.Loader) (parsed, bool) {
	err := c.findFence(d, loader)
	switch {
	case err != nil && loader == api.LoaderTSX: // the last language, and esbuild's errors would mislead
		c.err, c.conclusive = err, true
		return parsed{}, false
	case err != nil:
		return c.recordError(err)
	}
	if p, ok := c.translated(d, loader); ok {
		return p, true
	}
	if !strings.Contains(d.text, "return") {
		return parsed{}, false
	}
	p, ok := c.translated(wrap(d, c.imports(d, loader)), loader)
	p.wrapped = true
	return p, ok
}

func (c *compiler) translated(d draft, loader api.Loader) (parsed, bool) {
	out, err := c.translate(d, loader, keepsImports)
	if err != nil {
		return c.recordError(err)
	}
	js := parse(out.text, maxNesting)
	if js.failed {
		return c.recordError(out.errorAt(js.tok.start, cmp.Or(js.refusal, "the JavaScript that esbuild made of this cannot be parsed")))
	}
	if js.root.Scope.rebinds() && !js.topReturn {
		if err := c.check(out); err != nil {
			return c.recordError(err)
		}
	}
	p := parsed{draft: out, tree: js.root, isModule: js.isModule}
	if bound := js.bound(); len(bound) > 0 { // some may be types
		used, _ := c.translate(d, loader, dropsImports) // differs in nothing else
		usedJS := parse(used.text, maxNesting)
		if c.module {
			p.draft, p.tree, p.isModule = used, usedJS.root, usedJS.isModule
		}
		for name := range usedJS.bound() {
			delete(bound, name)
		}
		p.unused = bound
	}
	return c.orScript(p), !js.topReturn
}

// bound returns the names that imports bind.
func (p *parser) bound() map[string]bool {
	bound := map[string]bool{}
	for _, n := range p.root.Kids {
		if n.Kind == ImportFrom {
			for _, name := range n.Kids {
				bound[name.Name] = true
			}
		}
	}
	return bound
}

// parenthesized tries code that is not a complete statement: an object or an anonymous
// function.
func (c *compiler) parenthesized(d draft) (parsed, bool) {
	first := newParser(d.text)
	if !first.isAny("{", "function", "async", "class") {
		return parsed{}, false
	}
	at := first.tok.start
	if end, ok := parseRest(d.text, at, (*parser).assignment); ok {
		return c.javascript(d.edit([]edit{insert(at, "("), insert(end, ")")}))
	}
	end := len(strings.TrimRight(d.text, " \t\r\n;"))
	d = d.edit([]edit{insert(at, "("), insert(max(at, end), "\n)")})
	return c.typescript(d)
}

const (
	// MaxCode is the maximum size of a snippet in bytes; larger programs should be files.
	MaxCode = 256 << 10

	// maxNesting bounds the recursion of the parser.
	maxNesting = 1000

	// maxMembers bounds chains like a.b.c, for which esbuild also recurses.
	maxMembers = 5000
)

const nestedTooDeeply = "the code is nested too deeply"

// orScript makes a program a script if it assigns to undeclared names, which modules reject, and uses
// no syntax of modules.
func (c *compiler) orScript(p parsed) parsed {
	if c.module && !p.isModule && !p.script {
		for v := range p.tree.all() {
			p.script = p.script || v.written && v.IsGlobal() && !isCommonJS(v.Name)
		}
	}
	return p
}
