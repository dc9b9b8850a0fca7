package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

// importDeclaration reads import a, {b as c} from 'd', and similar.
func (p *parser) importDeclaration() *node {
	n := p.node(importFrom)
	p.next()
	if _, next := p.peek(); p.is("defer", "source") && next != "from" && next != "," {
		p.next()
	}
	for p.tok.Kind != snippet.Quoted && p.tok.Kind != snippet.AtEnd {
		switch {
		case p.is("{"):
			n.add(p.importedNames()...)
		case p.accept("*"):
			p.expect("as")
		case p.accept(","):
		case p.is("from") && p.specifierFollows():
			p.next()
		default:
			n.add(p.word(binding))
		}
	}
	p.specifier(n)
	return n
}

func (p *parser) specifierFollows() bool {
	after, _ := p.peek()
	return after.Kind == snippet.Quoted
}

// importedNames reads {a, b as c, "d" as e}, and returns the names a, c and e.
func (p *parser) importedNames() (list []*node) {
	p.bracketed("{", "}", func() {
		for p.more("}") {
			var name *node
			for p.more("}") && !p.is(",") { // the last word is the local name
				name = p.exportName()
			}
			list = append(list, name)
			p.accept(",")
		}
	})
	return list
}

// exportName reads a name, which may be a string.
func (p *parser) exportName() *node {
	if p.tok.Kind == snippet.Quoted {
		return p.literal()
	}
	return p.word(binding)
}

// specifier reads the module of an import, and attributes.
func (p *parser) specifier(n *node) {
	n.at = p.tok.Start
	if p.tok.Kind != snippet.Quoted {
		p.fail()
		return
	}
	n.name = p.literal().name
	if p.accept("with") {
		p.object()
	}
	p.semicolon()
}

func (p *parser) export() *node {
	n := p.node(importFrom)
	p.next()
	switch {
	case p.accept("default"):
		return p.exportDefault()
	case p.accept("*"):
		if p.accept("as") {
			p.exportName()
		}
		p.expect("from")
		p.specifier(n)
		return n
	case !p.is("{"):
		return p.statement()
	}
	p.importedNames()
	if p.accept("from") {
		p.specifier(n)
		return n
	}
	p.semicolon()
	return nil // esbuild keeps only names that the file declares
}

func (p *parser) exportDefault() *node {
	_, next := p.peek()
	if p.is("function", "class") || p.is("async") && next == "function" {
		return p.declare()
	}
	return p.expressionStatement()
}

// importSource matches the comment that makes a bundler import a package for JSX.
var importSource = lazyregexp.New(`@jsxImportSource\s+(\S+)`)

// checkImportSources checks the comments that importSource matches.
func (c *checker) checkImportSources() {
	for _, m := range importSource().FindAllStringSubmatchIndex(c.source, maxProblems) {
		if rule, message := c.importRule(c.source[m[2]:m[3]]); rule != "" {
			c.reportAt(m[2], rule, message)
		}
	}
}

// checkImport checks the module of an import or export declaration.
func (c *checker) checkImport(n *node) {
	if rule, message := c.importRule(n.name); rule != "" {
		c.report(n.at, rule, "%s", message)
	}
}

// importRule returns the rule that denies the import of a module, or "", and the message.
func (c *checker) importRule(specifier string) (rule, message string) {
	if strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../") {
		if c.has(RelativeImport) && path.Ext(specifier) != ".js" {
			return RelativeImport, fmt.Sprintf("the import of a file must end in .js, also if the file is .ts or .tsx: %.100q", specifier)
		}
		return "", ""
	}
	name := packageOf(specifier)
	if reason, denied := c.DeniedImports[name]; denied {
		return Import, fmt.Sprintf("%s may not be imported: %s", name, reason)
	}
	if c.has(Import) && (!slices.Contains(c.Imports, name) || slices.Contains(strings.Split(specifier, "/"), "..")) {
		return Import, fmt.Sprintf("%.100q may not be imported. Allowed are files, such as './other.js', and %s", specifier, strings.Join(c.Imports, ", "))
	}
	return "", ""
}

// packageOf returns the package of a specifier, without a subpath.
func packageOf(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
