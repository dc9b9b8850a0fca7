package lint

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

// maxProblems is how many problems of a file are reported.
const maxProblems = 100

// A Problem is a position in a file that breaks a rule.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`           // from 1
	Column  int    `json:"column"`         // from 1, in UTF-16 code units
	Rule    string `json:"rule,omitempty"` // such as Name
	Message string `json:"message"`
}

// String returns path:line:col — message.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d — %s", p.Path, p.Line, p.Column, p.Message)
}

// Check returns the problems of a file, in order, and at most 100. The extension of the name
// selects the language; a .ts file that is valid only as TSX is read as TSX, as bundles are.
// Other files than code, such as .json, have no problems. Of invalid code, the syntax error is
// the only problem.
//
// Check is safe for concurrent use. Hostile code can take unbounded time and memory.
func (r Rules) Check(name, source string) []Problem {
	if _, isCode := snippet.Loaders[path.Ext(name)]; !isCode {
		return nil
	}
	file, err := snippet.Strip(name, source)
	if err != nil {
		return []Problem{{name, err.Line, err.Column, Syntax, err.Message}}
	}
	c := &checker{Rules: r, path: name, source: source, file: file}
	tree, failed, ok := snippet.Parse(file.Code)
	if !ok {
		c.report(failed, Syntax, "the linter cannot read this code: write it in a simpler way")
		return c.problems
	}
	c.check(tree, nil)
	for _, m := range importSource().FindAllStringSubmatchIndex(c.source, maxProblems) {
		if rule, message := c.importRule(c.source[m[2]:m[3]]); rule != "" {
			c.reportAt(m[2], rule, message)
		}
	}
	slices.SortFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
	list := slices.Compact(c.problems)
	return list[:min(len(list), maxProblems)]
}

// A checker checks one file.
type checker struct {
	Rules
	path, source string
	file         *snippet.Stripped
	problems     []Problem
}

func (c *checker) report(offset int, rule, format string, args ...any) {
	if len(c.problems) == maxProblems {
		return
	}
	origin, _ := c.file.Origin(offset)
	c.reportAt(origin, rule, fmt.Sprintf(format, args...))
}

// reportAt reports a problem at an offset of the file.
func (c *checker) reportAt(origin int, rule, message string) {
	line, column := c.file.Position(origin)
	c.problems = append(c.problems, Problem{c.path, line, column, rule, message})
}

// check checks a node and its descendants.
func (c *checker) check(n, parent *snippet.Node) {
	switch n.Kind {
	case snippet.Identifier:
		c.checkName(n, parent)
	case snippet.Member:
		if globals[n.Name] && isGlobalObject(n) {
			c.checkGlobal(n, parent)
		} else {
			c.checkProperty(n.Name, n.At, n)
		}
	case snippet.Index:
		if !isGlobalObject(n.Kids[0]) { // checkGlobal reports these
			c.checkKey(n.Kids[1], n)
		}
	case snippet.PatternEntry:
		if n.Key == nil {
			c.checkProperty(n.Name, n.At, nil)
		} else {
			c.checkKey(n.Key, nil)
		}
	case snippet.Call, snippet.Construct:
		if isReflection(n.Kids[0]) {
			for _, arg := range n.Kids[1:] {
				c.checkKey(arg, nil)
			}
		}
	case snippet.ImportFrom:
		if rule, message := c.importRule(n.Name); rule != "" { // of an import or export declaration
			c.report(n.At, rule, "%s", message)
		}
	}
	if denied, ok := deniedConstructs[n.Kind]; ok && c.has(denied.rule) {
		c.report(n.At, denied.rule, "%s", denied.message)
	}
	if n.Key != nil {
		c.check(n.Key, n)
	}
	for _, kid := range n.Kids {
		c.check(kid, n)
	}
}

// deniedConstructs are the rules against kinds of nodes.
var deniedConstructs = map[snippet.NodeKind]struct{ rule, message string }{
	snippet.ImportCall: {ImportCall, "import() is not allowed: the loaded module cannot be checked. Write an import declaration"},
	snippet.ImportMeta: {ImportMeta, "import.meta is not allowed: snippets have no location"},
	snippet.With:       {With, "with is not allowed: its names cannot be checked. Write object.name"},
}

// checkName checks a variable.
func (c *checker) checkName(n, parent *snippet.Node) {
	if n.Scope.Find(n.Name) != nil {
		return
	}
	if globals[n.Name] {
		c.checkGlobal(n, parent)
		return
	}
	reason, denied := c.Names[n.Name]
	switch called := parent != nil && (parent.Kind == snippet.Call || parent.Kind == snippet.Construct) && parent.Kids[0] == n; {
	case n.Name == "Function" && called && c.has(Function):
		c.report(n.At, Function, "Function() is not allowed: %s", noStrings)
	case denied:
		c.report(n.At, Name, "%s is not allowed: %s", n.Name, reason)
	}
}

// checkProperty checks the name of a property in a.b or a['b'], which is of, or elsewhere.
func (c *checker) checkProperty(name string, at int, of *snippet.Node) {
	if reason, denied := c.Properties[name]; denied && (of == nil || !c.generated(of)) {
		c.report(at, Property, "the property %s is not allowed: %s", name, reason)
	}
}

// checkKey checks an expression that is the name of a property.
func (c *checker) checkKey(key, of *snippet.Node) {
	if name, known := text(key); known {
		c.checkProperty(name, key.Start, of)
	}
}

// isReflection reports whether a function such as Reflect.get is called, whose arguments may be names of properties.
func isReflection(callee *snippet.Node) bool {
	if callee.Kind != snippet.Member {
		return false
	}
	of := callee.Kids[0]
	return (of.Name == "Reflect" || of.Name == "Object") && of.IsGlobal()
}

// generated reports whether esbuild has generated a.b or a['b'] from other code. For the member
// of an enum or the property that a parameter declares, a and b have the same origin; for the
// exports of a namespace, the origin of a is a keyword.
func (c *checker) generated(n *snippet.Node) bool {
	object, known := c.file.Origin(n.Start)
	name, _ := c.file.Origin(n.At)
	return known && (object >= name || n.Kids[0].Kind == snippet.Identifier && keyword().MatchString(c.source[object:min(object+20, len(c.source))]))
}

var keyword = lazyregexp.New(`^(export|function|class|async\s+function)[\s{(*/]`)

// text returns the value of a constant expression: strings and templates, also joined by +.
func text(n *snippet.Node) (value string, known bool) {
	switch n.Kind {
	case snippet.Literal:
		return n.Name, true
	case snippet.Binary:
		if slices.ContainsFunc(n.Ops, func(operator string) bool { return operator != "+" }) {
			return "", false
		}
	case snippet.Template:
	default:
		return "", false
	}
	for _, part := range n.Kids {
		next, known := text(part)
		if !known {
			return "", false
		}
		value += next
	}
	return value, true
}

// globals are names of the global object.
var globals = map[string]bool{"globalThis": true, "window": true, "self": true, "global": true}

// isGlobalObject reports whether the node is globalThis, globalThis.globalThis or such.
func isGlobalObject(n *snippet.Node) bool {
	for n.Kind == snippet.Member && globals[n.Name] {
		n = n.Kids[0]
	}
	return globals[n.Name] && n.IsGlobal()
}

// checkGlobal checks how the global object is used.
func (c *checker) checkGlobal(n, parent *snippet.Node) {
	switch {
	case parent == nil, parent.Kind == snippet.Unary && parent.Name == "typeof":
		return
	case parent.Kind == snippet.Member:
		return // checkMember checks the name
	case parent.Kind == snippet.Index && parent.Kids[0] == n:
		if c.has(GlobalIndex) {
			c.report(n.At, GlobalIndex, "%s[…] is not allowed: the name cannot be checked. Write %[1]s.name", n.Name)
		}
	case c.has(GlobalAlias):
		c.report(n.At, GlobalAlias, "%s may only be used as in %[1]s.name: its use under another name cannot be checked", n.Name)
	}
}

// importSource matches the comment that makes a bundler import a package for JSX.
var importSource = lazyregexp.New(`@jsxImportSource\s+(\S+)`)

// importRule returns the rule that denies the import of a module, or "", and the message.
func (c *checker) importRule(specifier string) (rule, message string) {
	if strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../") {
		if c.has(RelativeImport) && path.Ext(specifier) != ".js" {
			return RelativeImport, fmt.Sprintf("the import of a file must end in .js, also if the file is .ts or .tsx: %.100q", specifier)
		}
		return "", ""
	}
	name := snippet.PackageOf(specifier)
	if reason, denied := c.DeniedImports[name]; denied {
		return Import, fmt.Sprintf("%s may not be imported: %s", name, reason)
	}
	if c.has(Import) && (!slices.Contains(c.Imports, name) || slices.Contains(strings.Split(specifier, "/"), "..")) {
		return Import, fmt.Sprintf("%.100q may not be imported. Allowed are files, such as './other.js', and %s", specifier, strings.Join(c.Imports, ", "))
	}
	return "", ""
}
