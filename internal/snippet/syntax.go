package snippet

import (
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Syntax is what the text of a program says about its module format.
type Syntax struct {
	// Module: it is only valid in an ES module. It has an import or export declaration,
	// import.meta or await at its top level, or it declares one of the names that CommonJS
	// has for itself at its top level by const, let or class. These are Node's rules.
	Module bool

	// CommonJS: it uses a name that only CommonJS has, such as require, and that the code
	// does not declare where it is used.
	CommonJS bool
}

// commonJS are the names that Node gives to CommonJS modules alone.
var commonJS = []string{"require", "module", "exports", "__filename", "__dirname"}

// A nameSet is a set of these names: bit n is the nth one.
type nameSet uint8

func setOfName(text string) nameSet {
	for i, name := range commonJS {
		if text == name {
			return 1 << i
		}
	}
	return 0
}

// use notes the name of a variable.
func (p *parser) useName(name string) { p.names |= setOfName(name) }

// bind notes a name that is declared.
func (p *parser) bindName(name string) {
	p.useName(name)
	p.bound |= setOfName(name)
}

// begins begins to note names anew, and returns those that there are.
func (p *parser) beginNames() nameSet {
	names := p.names
	p.names = 0
	return names
}

// binds says that what came since begins, which returned names, declares some of the names
// in it.
func (p *parser) bindNames(names nameSet) {
	p.bound |= p.names
	p.names |= names
}

// MentionsCommonJS reports whether code may use such a name. It is a quick check: names in
// strings and comments count.
func MentionsCommonJS(code string) bool {
	return slices.ContainsFunc(commonJS, func(name string) bool { return strings.Contains(code, name) })
}

// SyntaxOf reads JavaScript. Names for which given reports true are globals of the program,
// and not CommonJS's.
//
// Of code that cannot be parsed, only the part before the error counts. There, and in code
// that esbuild would take too long for, a name counts although it may be declared.
func SyntaxOf(code string, given func(name string) bool) Syntax {
	if strings.HasPrefix(code, "#!") {
		code = "//" + code[2:]
	}
	p, list := parse(code)
	s := Syntax{Module: p.topAwait || len(p.metas) > 0 || slices.ContainsFunc(list, statement.isModuleSyntax)}
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
	if p.bound != 0 && !p.failed && !p.costly() { // where a name is declared matters
		s.CommonJS = s.CommonJS && usesFree(code, open)
		s.Module = s.Module || slices.ContainsFunc(p.declared, isCommonJS) && redeclares(code)
	}
	return s
}

func isCommonJS(name string) bool { return slices.Contains(commonJS, name) }

// isModules reports whether only ES modules have such a statement.
func (s statement) isModuleSyntax() bool {
	return s.kind == importing || s.kind == exporting || s.kind == defaulting
}

// usesFree reports whether code uses one of the names without declaring it. esbuild, which
// knows all scopes, replaces such names, and only such.
func usesFree(code string, names []string) bool {
	marker := "__free"
	for strings.Contains(code, marker) {
		marker += "_"
	}
	define := make(map[string]string, len(names))
	for _, name := range names {
		define[name] = marker
	}
	result := transformPlain(code, define)
	return len(result.Errors) == 0 && strings.Contains(string(result.Code), marker)
}

// redeclares reports whether const, let or class declares a name of CommonJS at the top
// level: a variable of that name is then an error.
func redeclares(code string) bool {
	return len(transformPlain(code, nil).Errors) == 0 && len(transformPlain(code+"\n;var "+strings.Join(commonJS, ", "), nil).Errors) > 0
}

func transformPlain(code string, define map[string]string) api.TransformResult {
	return api.Transform(code, api.TransformOptions{
		Define: define, Sourcefile: "program.js", Loader: api.LoaderJS, Target: api.ESNext,
		TreeShaking: api.TreeShakingFalse, LogLevel: api.LogLevelSilent,
	})
}
