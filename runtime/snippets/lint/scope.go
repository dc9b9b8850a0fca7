package lint

// A scope is a part of the code in which names are declared.
type scope struct {
	parent   *scope
	function bool // declares names of var
	names    map[string]*variable
}

// A variable is a declared name.
type variable struct {
	value  *node // the first one, if a declaration of this name alone has it
	folded []text
	state  foldState
}

func (s *scope) inner(function bool) *scope { return &scope{parent: s, function: function} }

func (s *scope) declare(name string) *variable {
	if s.names == nil {
		s.names = make(map[string]*variable)
	}
	v := s.names[name]
	if v == nil {
		v = new(variable)
		s.names[name] = v
	}
	return v
}

// find returns the variable of a name, or nil for a global.
func (s *scope) find(name string) *variable {
	for ; s != nil; s = s.parent {
		if v := s.names[name]; v != nil {
			return v
		}
	}
	return nil
}

// ofVar returns the scope in which var declares names.
func (s *scope) ofVar() *scope {
	for !s.function {
		s = s.parent
	}
	return s
}

// resolve sets the scopes of a file's nodes, declares its names, and marks its patterns.
func resolve(tree *node) {
	module := &scope{function: true}
	tree.scope = module
	resolveAll(tree.kids, module)
}

func resolveAll(list []*node, s *scope) {
	for _, n := range list {
		n.resolve(s)
	}
}

func (n *node) resolve(s *scope) {
	n.scope = s
	if n.key != nil {
		n.key.resolve(s)
	}
	switch n.kind {
	case function, arrow:
		n.resolveFunction(s)
		return
	case class:
		s = n.resolveID(s)
	case property:
		s = s.inner(true) // initial values of fields
	case block, catchBlock:
		s = s.inner(false)
	case importFrom:
		for _, local := range n.kids {
			s.declare(local.name)
		}
		return
	case declaration:
		n.resolveDeclaration(s)
		return
	case declarator: // of a catch block
		n.kids[0].resolvePattern(s, s)
		return
	case assign:
		if n.name == "=" {
			n.kids[0].resolvePattern(s, nil)
			resolveAll(n.kids[1:], s)
			return
		}
	}
	resolveAll(n.kids, s)
}

// resolveID declares the name of a function or class, and returns the scope inside it.
func (n *node) resolveID(s *scope) *scope {
	if n.declares {
		s.declare(n.id.name)
	}
	s = s.inner(false)
	if n.id != nil && !n.declares {
		s.declare(n.id.name)
	}
	return s
}

func (n *node) resolveFunction(s *scope) {
	inner := n.resolveID(s).inner(true)
	last := len(n.kids) - 1
	for _, parameter := range n.kids[:max(last, 0)] {
		parameter.resolvePattern(inner, inner)
	}
	if last >= 0 {
		n.kids[last].resolve(inner)
	}
}

func (n *node) resolveDeclaration(s *scope) {
	into := s
	if n.name == "var" {
		into = s.ofVar()
	}
	for _, d := range n.kids {
		d.scope = s
		d.kids[0].resolvePattern(s, into)
		resolveAll(d.kids[1:], s)
		if d.kids[0].kind == binding && len(d.kids) == 2 {
			into.declare(d.kids[0].name).value = d.kids[1]
		}
	}
}

// resolvePattern resolves the target of an assignment, or, if into is not nil, declares the names
// of a declaration there.
func (n *node) resolvePattern(s, into *scope) {
	n.scope = s
	switch {
	case n.kind == ident && into != nil:
		n.kind = binding
		into.declare(n.name)
	case n.kind == object:
		n.kind = pattern
		for _, entry := range n.kids {
			entry.resolveEntry(s, into)
		}
	case n.kind == array, n.kind == spread:
		for _, element := range n.kids {
			element.resolvePattern(s, into)
		}
	case n.kind == assign && n.name == "=":
		n.kids[0].resolvePattern(s, into)
		resolveAll(n.kids[1:], s)
	default:
		n.resolve(s)
	}
}

func (n *node) resolveEntry(s, into *scope) {
	if n.kind != property {
		n.resolvePattern(s, into)
		return
	}
	n.kind, n.scope = patternEntry, s
	if n.key != nil {
		n.key.resolve(s)
	}
	for _, value := range n.kids {
		value.resolvePattern(s, into)
	}
}

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
