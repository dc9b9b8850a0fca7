package lint

import "gaol/internal/snippet"

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
