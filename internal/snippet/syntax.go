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

// CommonJS are the names that Node defines only in CommonJS modules.
var CommonJS = []string{"require", "module", "exports", "__filename", "__dirname"}

// MentionsCommonJS reports whether code may use a name of CommonJS. It is a quick check: names in
// strings and comments count.
func MentionsCommonJS(code string) bool {
	return slices.ContainsFunc(CommonJS, func(name string) bool { return strings.Contains(code, name) })
}

// SyntaxOf detects the module format of JavaScript. names lists the [CommonJS] names that are not globals of the
// program. It builds a syntax tree, of up to 1,000 bytes for each byte of code.
//
// If code cannot be parsed, only the part before the error counts. In that part, a name counts
// even if it is declared.
func SyntaxOf(code string, names []string) Syntax {
	p := parse(code, maxTreeNesting)
	found := Syntax{Module: p.isModule}
	for _, name := range CommonJS {
		found.Module = found.Module || p.root.Scope != nil && p.root.Scope.names[name].isLexical()
	}
	if !p.isModule {
		for n := range p.root.all() {
			found.CommonJS = found.CommonJS || slices.Contains(names, n.Name) && n.IsGlobal()
		}
	}
	return found
}

func isCommonJS(name string) bool { return slices.Contains(CommonJS, name) }
