package snippet

import "slices"

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
