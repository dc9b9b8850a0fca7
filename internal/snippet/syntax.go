package snippet

import (
	"slices"
	"strings"
)

// Syntax is the module format that the text of a program indicates.
type Syntax struct {
	// Module: the code is valid only as an ES module. It contains an import or export
	// declaration, import.meta or await at its top level, or declares one of CommonJS's
	// own names there by const, let or class. These are Node's rules.
	Module bool

	// CommonJS: the code uses a name that only CommonJS has, such as require, without
	// declaring it in that scope.
	CommonJS bool
}

// commonJS are the names that Node defines only in CommonJS modules.
var commonJS = []string{"require", "module", "exports", "__filename", "__dirname"}

// A nameSet is a set of names of CommonJS: one bit for each.
type nameSet uint8

func setOfName(text string) nameSet {
	for i, name := range commonJS {
		if text == name {
			return 1 << i
		}
	}
	return 0
}

// useName records the name of a variable.
func (p *parser) useName(name string) { p.names |= setOfName(name) }

// bindName records a declared name.
func (p *parser) bindName(name string) {
	p.useName(name)
	p.bound |= setOfName(name)
}

// beginNames starts a new set of names, and returns the current one.
func (p *parser) beginNames() nameSet {
	names := p.names
	p.names = 0
	return names
}

// bindNames ends the set that was started when beginNames returned names. Its names may be
// declared by the code in between.
func (p *parser) bindNames(names nameSet) {
	p.bound |= p.names
	p.names |= names
}

// MentionsCommonJS reports whether code may use a name of CommonJS. It is a quick check: names in
// strings and comments count.
func MentionsCommonJS(code string) bool {
	return slices.ContainsFunc(commonJS, func(name string) bool { return strings.Contains(code, name) })
}

// SyntaxOf detects the module format of JavaScript. Names for which given returns true are
// globals of the program, not CommonJS's. If the code declares names of CommonJS somewhere, the Syntax is
// preliminary, and Scopes determine it, which takes memory: a tree of the code.
//
// If code cannot be parsed, only the part before the error counts. In that part, a name counts
// even if it may be declared.
func SyntaxOf(code string, given func(name string) bool) (Syntax, *Scopes) {
	p := newParser(withoutShebang(code), 0)
	list := p.program()
	s := Syntax{Module: p.isModule(list)}
	names := p.names
	var open []string
	for i, name := range commonJS {
		if given(name) {
			names &^= 1 << i
		} else {
			open = append(open, name)
		}
	}
	s.CommonJS = names != 0
	if p.bound == 0 || p.failed {
		return s, nil
	}
	return s, &Scopes{[]byte(code), open, s}
}

// Scopes is code whose Syntax depends on the scopes of names.
type Scopes struct {
	Code        []byte
	Names       []string // that are CommonJS's unless the code declares them
	Preliminary Syntax
}

// Syntax determines the format.
func (s *Scopes) Syntax() Syntax {
	found := s.Preliminary
	tree, _, ok := Parse(string(s.Code))
	if !ok {
		return found
	}
	found.CommonJS = found.CommonJS && tree.uses(s.Names)
	for _, name := range commonJS {
		v := tree.Scope.names[name]
		found.Module = found.Module || v != nil && v.lexical
	}
	return found
}

// uses reports whether a tree uses one of the names without declaring it.
func (n *Node) uses(names []string) bool {
	return slices.Contains(names, n.Name) && n.IsGlobal() || n.Key != nil && n.Key.uses(names) ||
		slices.ContainsFunc(n.Kids, func(kid *Node) bool { return kid.uses(names) })
}

// withoutShebang makes a comment of a line with #! at the start of code.
func withoutShebang(code string) string {
	if strings.HasPrefix(code, "#!") {
		code = "//" + code[2:]
	}
	return code
}

func isCommonJS(name string) bool { return slices.Contains(commonJS, name) }

func (p *parser) isModule(list []statement) bool {
	return p.topAwait || len(p.metas) > 0 || slices.ContainsFunc(list, statement.isModuleSyntax)
}

// isModuleSyntax reports whether only ES modules allow the statement.
func (s statement) isModuleSyntax() bool {
	return s.kind == importing || s.kind == exporting || s.kind == defaulting
}
