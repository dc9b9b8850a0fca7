package snippet

import (
	"iter"
	"slices"
)

// NodeKind is the kind of a [Node]. The zero value is a node of which only the children matter.
type NodeKind uint8

// The kinds of nodes.
const (
	Other         NodeKind = iota
	Identifier             // a variable: name
	Binding                // a variable where it is declared: name. Of an import, Key is the imported name as it is written
	Literal                // a string or number: name is its value
	Template               // children: Literal and expressions in turn
	Array                  // children: elements, without holes
	Object                 // children: Property, Spread
	Property               // of an object or class: name or key, child: value, if any
	Pattern                // a destructured object. children: PatternEntry, Spread
	PatternEntry           // like Property, in a pattern
	Spread                 // child: the spread value
	Member                 // a.b: name, child: a
	Index                  // a[b]: children: a, b
	Call                   // children: callee, arguments
	Construct              // like Call, with new
	Binary                 // children: operands, Ops: operators in between, whatever their precedence
	Assign                 // name: operator, children: target, value. A target alone in the head of a loop
	Sequence               // children: values
	Unary                  // name: operator, child
	Function               // Key, children: parameters, body
	Arrow                  // like Function
	Class                  // Key, children: superclass if any, Property, Function for static blocks
	ImportCall             // the callee of import(a)
	ImportMeta             // import.meta
	ImportFrom             // an import or export declaration: name: specifier, Key: the same with the attributes as child, children: Binding
	Export                 // child: the exported declaration. At: its offset
	ExportDefault          // child: an expression, Function or Class. At: its offset
	ExportList             // children: ImportFrom, or the local names with the exported names as Key, as they are written
	Declaration            // name: var, let, const, using or await; children: Declarator
	Declarator             // children: target, value if any
	Expression             // a statement. child: the expression; End is without the semicolon
	Empty                  // a lone semicolon
	Block                  // a scope. children: statements
	Branch                 // if, try, switch or a label. children: conditions, and the statements one of which runs last
	Cases                  // of a switch, a scope. children: Case
	Case                   // children: condition if any, statements
	CatchBlock             // a scope. children: Declarator if any, body
	For                    // a scope. children: head, body
	With                   // children: object, body
)

// A Node is a node of the syntax tree of JavaScript.
type Node struct {
	Kind NodeKind
	// declares: a function or class whose name is visible around it.
	declares  bool
	written   bool // a variable in a resolved tree that is assigned to
	shorthand bool // a variable that is also the name of a property, as in ({a} = b)

	At    int // offset at which it is reported: for Member, the offset of the name
	Start int // offset of its first token
	End   int // offset of its end, of statements, names, patterns and blocks
	Name  string
	Key   *Node    // the name of a function or class; of a property if it is computed, a string or a number
	Kids  []*Node  // none is nil
	Ops   []string // of Binary
	Scope *Scope
}

// maxTreeNesting bounds the depth of a tree. Code that esbuild prints may nest deeper than its source.
const maxTreeNesting = 4 * maxNesting

// Parse returns the syntax tree of valid JavaScript, with the scopes of its names, or the offset at which
// the code could not be read.
func Parse(code string) (tree *Node, failed int, ok bool) {
	p := parse(code, maxTreeNesting)
	return p.root, p.tok.start, !p.failed
}

// node returns a node at the current token.
func (p *parser) node(k NodeKind) *Node {
	if len(p.nodes) == 0 {
		p.nodes = make([]Node, 32) // fewer allocations
	}
	n := &p.nodes[0]
	p.nodes = p.nodes[1:]
	n.Kind, n.At, n.Start = k, p.tok.start, p.tok.start
	return n
}

// named returns a node with the text of the current token as its name.
func (p *parser) named(k NodeKind) *Node {
	n := p.node(k)
	n.Name = unescape(p.text())
	return n
}

// enclosing returns a node that starts with its first child.
func enclosing(k NodeKind, name string, first *Node) *Node {
	return (&Node{Kind: k, Name: name, At: first.At, Start: first.Start}).add(first)
}

// add adds children that are not nil.
func (n *Node) add(kids ...*Node) *Node {
	for _, k := range kids {
		if k != nil {
			n.Kids = append(n.Kids, k)
		}
	}
	return n
}

// Value returns the last child, or nil.
func (n *Node) Value() *Node {
	if len(n.Kids) == 0 {
		return nil
	}
	return n.Kids[len(n.Kids)-1]
}

// all returns the node and its descendants, in the order of the code.
func (n *Node) all() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { n.visit(yield) }
}

func (n *Node) visit(yield func(*Node) bool) bool {
	return yield(n) && (n.Key == nil || n.Key.visit(yield)) && !slices.ContainsFunc(n.Kids, func(kid *Node) bool { return !kid.visit(yield) })
}

// isFunction reports whether an expression is a function.
func (n *Node) isFunction() bool { return n != nil && (n.Kind == Function || n.Kind == Arrow) }

// bound returns the names that a declaration or a target of it binds.
func (n *Node) bound() (names []string) {
	kids := n.Kids
	switch n.Kind {
	case Binding:
		return []string{n.Name}
	case Assign, Declarator:
		kids = n.Kids[:1] // without the initial value
	}
	for _, kid := range kids {
		names = append(names, kid.bound()...)
	}
	return names
}

func (n *Node) span() span { return span{n.Start, n.End} }

// value returns the part of an export that follows its keywords, or an expression without its semicolon.
func (n *Node) value() span { return span{n.At, n.End} }

// lastStatement returns the last statement that may have a value. It skips imports, which
// are hoisted, and lists of exports.
func lastStatement(list []*Node) *Node {
	for _, n := range slices.Backward(list) {
		if !n.valueless() {
			return n
		}
	}
	return nil
}

// valueless reports whether lastStatement skips the statement.
func (n *Node) valueless() bool {
	return n.Kind == Empty || n.Kind == ImportFrom || n.Kind == ExportList
}

// results returns the expression statements one of which a statement evaluates last.
func (n *Node) results() (list []*Node) {
	kids := n.Kids
	switch n.Kind {
	case Expression:
		return []*Node{n}
	case Block, Case:
		last := lastStatement(kids)
		if n.Kind == Case && last == n.Value() && last != nil && last.Name == "break" { // which yields no value
			last = lastStatement(kids[:len(kids)-1])
		}
		if last == nil {
			return nil
		}
		return last.results()
	case Branch, CatchBlock, Cases:
		for _, kid := range kids {
			list = append(list, kid.results()...)
		}
	}
	return list
}

// callable reports whether the value of a statement is exactly one function.
func (n *Node) callable() bool {
	return (n.Kind == Expression || n.Kind == ExportDefault) && n.Kids[0].isFunction()
}

// call returns "()" if the value of a statement is the result of a function: it is one, or assigned to module.exports.
func (n *Node) call() string {
	if n.callable() || n.Kids[0].exports() == exportsFunction {
		return "()"
	}
	return ""
}

// declaration returns the function or class that a statement declares, or nil.
func (n *Node) declaration() *Node {
	if n.Kind == Export || n.Kind == ExportDefault {
		n = n.Kids[0]
	}
	if !n.declares {
		return nil
	}
	return n
}

// name returns the name of a declared function or class.
func (n *Node) name() string {
	if d := n.declaration(); d != nil {
		return d.Key.Name
	}
	return ""
}
