package snippet

import (
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// wrap makes the code the body of an async function, so that it may return. Imports move
// before it.
func wrap(d draft, imports []span) draft {
	var edits []edit
	for _, at := range imports {
		edits = append(edits, d.hoist(at, oneLine(d.text[at.start:at.end]))...)
	}
	edits = append(edits, insert(0, "(async () => {"), insert(len(d.text), "\n})"))
	return d.edit(edits)
}

// hoist replaces a statement by text at the start of the program.
func (d draft) hoist(at span, text string) []edit {
	return []edit{{text: text + "; ", moved: true, from: at.start}, d.remove(at)}
}

// remove removes a statement, except its line ends. Without the semicolon, the statements
// around it could become one.
func (d draft) remove(at span) edit { return replace(at, ";"+lineEnds(d.text[at.start:at.end])) }

// oneLine writes tokens on one line, without comments and final semicolon. They must not
// contain templates or regular expressions.
func oneLine(code string) string {
	var b strings.Builder
	l := newLexer(code)
	for t := l.next(); t.kind != atEnd; t = l.next() {
		if text := code[t.start:t.end]; text != ";" {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

func importsOf(list []*Node) (imports []span) {
	for _, n := range list {
		if n.Kind == ImportFrom {
			imports = append(imports, n.span())
		}
	}
	return imports
}

// imports returns the import declarations of TypeScript. In the function that wraps the code, esbuild rejects the first
// of them, at the token after the keyword. It rejects imports in other brackets without that function, too.
func (c *compiler) imports(d draft, loader api.Loader) (list []span) {
	const keyword = "import"
	options := api.TransformOptions{Loader: loader}
	invalid := map[int]bool{}
	alone, _ := c.transform(d, options)
	for _, m := range alone.Errors {
		invalid[d.offset(m)] = true
	}
	for {
		wrapped := wrap(d, list)
		result, err := c.transform(wrapped, options)
		if err == nil {
			return list
		}
		at, _ := wrapped.stages[len(d.stages)].original(wrapped.offset(result.Errors[0]))
		start := strings.LastIndex(d.text[:at], keyword)
		if invalid[at] || start < 0 || strings.TrimSpace(d.text[start+len(keyword):at]) != "" {
			return list
		}
		p := newParser(d.text[start:])
		p.types = true
		p.importStatement()
		if p.failed {
			return list
		}
		list = append(list, span{start, start + p.last})
	}
}

// exported is the part of CommonJS's exports that an expression sets.
type exported uint8

const (
	exportsNothing  exported = iota
	exportsProperty          // exports.a = 1, module.exports.a = 1: the value is exports, which the guest reads
	exportsFunction          // module.exports = () => 1
)

// exports returns the part of exports that an expression sets, which is nothing if the code
// declares module or exports itself.
func (n *Node) exports() exported {
	if n == nil || n.Kind != Assign || n.Name != "=" {
		return exportsNothing
	}
	target := n.Kids[0]
	if target.isExports() {
		if target.Kind == Member && n.Kids[1].isFunction() {
			return exportsFunction
		}
		return exportsNothing
	}
	for target.Kind == Member || target.Kind == Index {
		if target = target.Kids[0]; target.isExports() {
			return exportsProperty
		}
	}
	return exportsNothing
}

// isExports reports whether an expression is exports or module.exports.
func (n *Node) isExports() bool {
	if n.Kind == Member && n.Name == "exports" {
		return n.Kids[0].Name == "module" && n.Kids[0].IsGlobal()
	}
	return n.Name == "exports" && n.IsGlobal()
}
