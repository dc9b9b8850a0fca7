package lint

// kind is the kind of a node. The zero value is a node of which only the children matter.
type kind uint8

const (
	other        kind = iota
	ident             // a variable: name
	binding           // a variable where it is declared: name
	str               // a string or number: name is its value
	template          // children: str and expressions in turn
	array             // children: elements, without holes
	object            // children: property, spread
	property          // of an object or class: name or key, child: value, if any
	pattern           // a destructured object. children: patternEntry, spread
	patternEntry      // like property, in a pattern
	spread            // child: the spread value
	member            // a.b: name, child: a
	index             // a[b]: children: a, b
	call              // children: callee, arguments
	construct         // like call, with new
	binary            // children: operands, ops: operators in between
	assign            // name: operator, children: target, value. A target alone in the head of a loop
	conditional       // children: test, two values
	sequence          // children: values
	unary             // name: operator, child
	function          // id, children: parameters, body
	arrow             // like function
	class             // id, children: superclass if any, property, block for static blocks
	importCall        // import(a): children: arguments
	importMeta        // import.meta
	importFrom        // an import or export declaration: name: specifier, children: binding
	declaration       // name: var, let, const or using; children: declarator
	declarator        // children: pattern, value if any
	block             // a scope. children: statements
	catchBlock        // a scope. children: declarator if any, body
	with              // children: object, body
)

// A node is a node of the syntax tree.
type node struct {
	kind kind
	// declares: a function or class whose id is visible around it.
	declares bool

	at    int // offset at which it is reported: for member, the offset of the name
	start int // offset of its first token
	name  string
	id    *node    // of a function or class
	key   *node    // of a property, if it is computed or a string
	kids  []*node  // never nil
	ops   []string // of binary
	scope *scope   // set by resolve
}

func (n *node) add(kids ...*node) *node {
	for _, k := range kids {
		if k != nil {
			n.kids = append(n.kids, k)
		}
	}
	return n
}

// value returns the last child, or nil.
func (n *node) value() *node {
	if len(n.kids) == 0 {
		return nil
	}
	return n.kids[len(n.kids)-1]
}
