package lint

// globals are names of the global object.
var globals = setOf("globalThis", "window", "self", "global")

// isGlobal reports whether the node is a variable of that name that the code does not
// declare.
func (n *node) isGlobal(name string) bool {
	return n.kind == ident && n.name == name && n.scope.find(name) == nil
}

// isGlobalObject reports whether the node is globalThis, globalThis.globalThis or such.
func (n *node) isGlobalObject() bool {
	for n.kind == member && globals[n.name] {
		n = n.kids[0]
	}
	return n.kind == ident && globals[n.name] && n.scope.find(n.name) == nil
}

// checkGlobal checks how the global object is used.
func (c *checker) checkGlobal(n, parent *node) {
	switch {
	case parent == nil, parent.kind == unary && parent.name == "typeof":
		return
	case parent.kind == member:
		return // checkMember checks the name
	case parent.kind == index && parent.kids[0] == n:
		if c.has(GlobalIndex) {
			c.report(n.at, GlobalIndex, "%s[…] is not allowed: the name cannot be checked. Write %[1]s.name", n.name)
		}
	case c.has(GlobalAlias):
		c.report(n.at, GlobalAlias, "%s may only be used as in %[1]s.name: its use under another name cannot be checked", n.name)
	}
}
