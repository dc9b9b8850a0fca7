package snippet

import (
	"slices"
	"strings"
)

// An emitter edits a program so that it delivers its value.
type emitter struct {
	parsed
	// prefix and suffix enclose the expression that is the value. noValue is appended to code
	// without a value. await precedes expressions in parentheses.
	prefix, suffix, noValue, await string
	// exported: the value is an object with the exports.
	exported bool
	// cell: the value of a branch is the script's completion value, and function declarations
	// are not called.
	cell bool

	edits []edit

	// Of cells: how earlier cells and this cell declare names, and names that the start of the code
	// declares or resets.
	declared, declares map[string]Declared
	lets, vars, resets []string
}

func (f *emitter) insert(at int, text string) { f.edits = append(f.edits, insert(at, text)) }

// enclose inserts text around an expression. V8 reports many errors of the expression at the start of a call
// around it, such as an undefined name.
func (f *emitter) enclose(value span, before, after string) {
	f.edits = append(f.edits, edit{span: span{value.start, value.start}, text: before, moved: true, from: value.start})
	f.insert(value.end, after)
}

func (f *emitter) appendCode(text string) { f.insert(len(f.text), "\n;"+text) }

// appendValue appends an expression that is the value.
func (f *emitter) appendValue(value string) { f.appendCode(f.prefix + value + f.suffix) }

// module returns the program as an ES module or a script. If the program contains the name
// Deliver, which it may declare, the guest's function is called through globalThis.
func (p parsed) module() *Program {
	deliver := Deliver
	if strings.Contains(p.text, Deliver) {
		deliver = "globalThis." + Deliver
	}
	f := &emitter{parsed: p, suffix: "))", noValue: deliver + "()", await: "await "}
	if p.script {
		f.await = "" // the guest's function awaits a promise
	}
	f.prefix = deliver + "(" + f.await + "("
	f.emit()
	return f.program(p.edit(f.edits))
}

// program returns the program with the code of a draft.
func (f *emitter) program(d draft) *Program {
	return &Program{Text: d.text, Script: f.script, Stages: d.stages, Explicit: f.explicit() && !f.exported, snippet: d.snippet}
}

func (f *emitter) emit() {
	s := lastStatement(f.tree.Kids)
	alone := s != nil && !slices.ContainsFunc(f.tree.Kids, func(n *Node) bool { return n != s && !n.valueless() })
	switch {
	case s == nil:
		f.appendExports()
	case s.Kind == Expression && s.Kids[0].exports() == exportsProperty:
		f.appendCode(f.noValue)
	case s.Kind == Expression:
		if f.wrapped {
			f.emitBody(s)
		}
		f.deliver(s)
	case s.Kind == ExportDefault:
		f.emitDefault(s)
	case s.declaration().isFunction() && alone && !f.cell:
		f.appendValue(s.name() + "()")
	case s.Kind == Block || s.Kind == Branch:
		f.emitBranches(s)
	default:
		f.appendExports()
	}
}

// appendExports appends the value of code that ends without one: an object with its exported
// variables and lists. Functions, classes and exports of other modules are not data.
func (f *emitter) appendExports() {
	var members, variables []string
	for _, s := range f.tree.Kids {
		for _, exported := range s.Kids {
			switch {
			case s.Kind == ExportList && exported.Kind != ImportFrom:
				members = append(members, exported.Key.Name+": "+exported.Name)
			case s.Kind == Export && exported.Kind == Declaration:
				variables = append(variables, exported.bound()...)
			}
		}
	}
	members = append(members, variables...)
	if len(members) == 0 {
		f.appendCode(f.noValue)
		return
	}
	f.exported = true
	f.appendValue("{ " + strings.Join(members, ", ") + " }")
}

// deliver makes the expression of a statement the value. A function is called: functions cannot be encoded as JSON.
func (f *emitter) deliver(s *Node) { f.enclose(s.value(), f.prefix, ")"+s.call()+f.suffix[1:]) }

// emitDefault makes an export default at the end the value.
func (f *emitter) emitDefault(s *Node) {
	if s.name() != "" {
		f.appendValue(s.name() + s.call())
		return
	}
	words := span{s.Start, s.At}
	f.edits = append(f.edits, replace(words, lineEnds(f.text[words.start:words.end])))
	f.deliver(s)
	f.insert(s.End, ";")
}

// emitBranches makes the last expression that a branching statement evaluates the value.
func (f *emitter) emitBranches(s *Node) {
	ends := s.results()
	switch {
	case len(ends) == 0:
		f.appendExports()
	case f.cell:
		for _, value := range ends {
			f.enclose(value.value(), "await (", ")")
		}
	default:
		name := f.assign(ends)
		f.appendCode("var " + name)
		f.appendValue(name)
	}
}

// assign stores the value of each of the expressions in one variable.
func (f *emitter) assign(ends []*Node) (name string) {
	name = "__value"
	for strings.Contains(f.text, name) {
		name += "_"
	}
	for _, value := range ends {
		f.enclose(value.value(), name+" = "+f.await+"(", ")")
	}
	return name
}

// emitBody makes the function that wraps the code return the value.
func (f *emitter) emitBody(s *Node) {
	body := s.Kids[0].Value()
	last := lastStatement(body.Kids)
	if last == nil {
		return
	}
	switch last.Kind {
	case Expression:
		if last.Kids[0].exports() != exportsProperty {
			f.enclose(last.value(), "return await (", ")"+last.call())
		}
	case Block, Branch:
		if ends := last.results(); len(ends) > 0 {
			name := f.assign(ends)
			f.insert(body.End-1, ";var "+name+";return "+name+";")
		}
	}
}
