package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

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
func (c *checker) checkImport(n *snippet.Node) {
	if rule, message := c.importRule(n.Name); rule != "" {
		c.report(n.At, rule, "%s", message)
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
	name := snippet.PackageOf(specifier)
	if reason, denied := c.DeniedImports[name]; denied {
		return Import, fmt.Sprintf("%s may not be imported: %s", name, reason)
	}
	if c.has(Import) && (!slices.Contains(c.Imports, name) || slices.Contains(strings.Split(specifier, "/"), "..")) {
		return Import, fmt.Sprintf("%.100q may not be imported. Allowed are files, such as './other.js', and %s", specifier, strings.Join(c.Imports, ", "))
	}
	return "", ""
}
