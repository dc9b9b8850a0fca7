package snippet

// A Scope is a part of the code in which names are declared.
type Scope struct {
	parent   *Scope
	function bool // declares names of var
	names    map[string]*Variable
}

// A Variable is a declared name.
type Variable struct {
	lexical  bool // by let, const, using or class
	imported bool
	count    int // of declarations
}

func (s *Scope) inner(function bool) *Scope { return &Scope{parent: s, function: function} }

func (s *Scope) declare(name string) *Variable {
	if s.names == nil {
		s.names = make(map[string]*Variable)
	}
	v := s.names[name]
	if v == nil {
		v = new(Variable)
		s.names[name] = v
	}
	v.count++
	return v
}

func (v *Variable) isLexical() bool { return v != nil && v.lexical }

// Find returns the variable of a name, or nil for a global.
func (s *Scope) Find(name string) *Variable {
	for ; s != nil; s = s.parent {
		if v := s.names[name]; v != nil {
			return v
		}
	}
	return nil
}

// IsGlobal reports whether the node is a variable that the code does not declare.
func (n *Node) IsGlobal() bool { return n.Kind == Identifier && n.Scope.Find(n.Name) == nil }

// rebinds reports whether an imported name is declared again. TypeScript allows that, because the import
// could be a type.
func (s *Scope) rebinds() bool {
	for _, v := range s.names {
		if v.imported && v.count > 1 {
			return true
		}
	}
	return false
}

// resolveAll sets the scopes of nodes, declares their names, and marks their patterns.
func resolveAll(list []*Node, s *Scope) {
	for _, n := range list {
		n.resolve(s)
	}
}

func (n *Node) resolve(s *Scope) {
	n.Scope = s
	if n.Key != nil {
		n.Key.resolve(s)
	}
	switch n.Kind {
	case Function, Arrow:
		n.resolveFunction(s)
		return
	case Class:
		s = n.resolveID(s)
	case Property:
		s = s.inner(true) // initial values of fields
	case Block, CatchBlock, Cases, For:
		s = s.inner(false)
	case ImportFrom:
		for _, local := range n.Kids {
			s.declare(local.Name).imported = true
		}
		return
	case Declaration:
		n.resolveDeclaration(s)
		return
	case Declarator: // of a catch block
		n.Kids[0].resolvePattern(s, s)
		return
	case Assign:
		n.Kids[0].resolvePattern(s, nil)
		resolveAll(n.Kids[1:], s)
		return
	case Unary:
		if increments[n.Name] {
			n.Kids[0].resolvePattern(s, nil)
			return
		}
	}
	resolveAll(n.Kids, s)
}

// resolveID declares the name of a function or class, and returns the scope inside it.
func (n *Node) resolveID(s *Scope) *Scope {
	if n.declares {
		v := s.declare(n.Key.Name)
		v.lexical = v.lexical || n.Kind == Class
	}
	s = s.inner(false)
	if n.Key != nil && !n.declares {
		s.declare(n.Key.Name)
	}
	return s
}

func (n *Node) resolveFunction(s *Scope) {
	inner := n.resolveID(s).inner(true)
	for _, parameter := range n.Kids[:len(n.Kids)-1] {
		parameter.resolvePattern(inner, inner)
	}
	n.Value().resolve(inner) // the body
}

func (n *Node) resolveDeclaration(s *Scope) {
	into := s
	for n.Name == "var" && !into.function {
		into = into.parent
	}
	for _, d := range n.Kids {
		d.Scope = s
		d.Kids[0].resolvePattern(s, into)
		resolveAll(d.Kids[1:], s)
		for _, name := range d.Kids[0].bound() {
			into.names[name].lexical = n.Name != "var"
		}
	}
}

// resolvePattern resolves the target of an assignment, or, if into is not nil, declares the names
// of a declaration there.
func (n *Node) resolvePattern(s, into *Scope) {
	n.Scope = s
	switch {
	case n.Kind == Identifier && into != nil:
		n.Kind = Binding
		into.declare(n.Name)
	case n.Kind == Identifier:
		n.written = true
	case n.Kind == Object:
		n.Kind = Pattern
		for _, entry := range n.Kids {
			entry.resolveEntry(s, into)
		}
	case n.Kind == Array, n.Kind == Spread:
		for _, element := range n.Kids {
			element.resolvePattern(s, into)
		}
	case n.Kind == Assign && n.Name == "=":
		n.Kids[0].resolvePattern(s, into)
		resolveAll(n.Kids[1:], s)
	default:
		n.resolve(s)
	}
}

func (n *Node) resolveEntry(s, into *Scope) {
	if n.Kind != Property {
		n.resolvePattern(s, into)
		return
	}
	n.Kind, n.Scope = PatternEntry, s
	if n.Key != nil {
		n.Key.resolve(s)
	}
	for _, value := range n.Kids {
		value.resolvePattern(s, into)
	}
}
