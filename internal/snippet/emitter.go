package snippet

import "strings"

// A emitter writes what hands over a program's value.
type emitter struct {
	parsed
	// prefix and suffix enclose the expression that is the value; deliverNamed and
	// deliverNothing are appended for a value that has a name, and for none.
	prefix, suffix string
	deliverNamed   func(value string) string
	deliverNothing string
	// hasCompletion: the value of a branch is the script's without changes.
	hasCompletion bool
	// keepsDeclarations: a function's declaration is not called.
	keepsDeclarations bool
	// importName is the function that imports modules, checkName the one that checks
	// the imported names, if there is one.
	importName, checkName string

	edits []edit
}

func (f *emitter) insert(at int, text string) { f.edits = append(f.edits, insert(at, text)) }

// before inserts what evaluates an expression. To V8 it's where much of what goes wrong in
// the expression happens, a name that isn't there first of all.
func (f *emitter) insertBefore(value span, text string) {
	f.edits = append(f.edits, edit{span{value.start, value.start}, text, true, value.start})
}

func (f *emitter) appendCode(text string) { f.insert(len(f.text), "\n;"+text) }

// module is the program as an ES module. Where it has a name like Deliver, which may be one
// of its own, the guest's function is asked for by way of globalThis.
func (p parsed) module() draft {
	deliver := Deliver
	if strings.Contains(p.text, Deliver) {
		deliver = "globalThis." + Deliver
	}
	f := &emitter{
		parsed:         p,
		prefix:         deliver + "(await (",
		suffix:         "))",
		deliverNamed:   func(value string) string { return deliver + "(await " + value + ")" },
		deliverNothing: deliver + "()",
	}
	f.emit()
	return p.edit(f.edits)
}

func (f *emitter) emit() {
	s := lastStatement(f.list)
	alone := s != nil
	for i := range f.list {
		alone = alone && (&f.list[i] == s || f.list[i].valueless())
	}
	switch {
	case s == nil:
		f.appendCode(f.deliverNothing)
	case s.kind == expression && s.callable:
		if f.wrapped {
			f.emitBody(s)
		}
		f.deliverCall(s.value)
	case s.kind == expression:
		f.deliverOrExport(s.value)
	case (s.kind == function || s.declares == function && s.kind == exporting) && alone && !f.keepsDeclarations:
		f.appendCode(f.deliverNamed(s.name + "()"))
	case s.kind == defaulting:
		f.emitDefault(s)
	case s.kind == block || s.kind == branching:
		f.emitBranches(s)
	default:
		f.appendCode(f.deliverNothing)
	}
}

// take makes an expression the value.
func (f *emitter) deliver(value span) {
	f.insertBefore(value, f.prefix)
	f.insert(value.end, f.suffix)
}

// takeOrExport does so unless the expression sets a property of exports: the guest then takes
// all of them for the value. A function that becomes module.exports is called, as that of
// export default is.
func (f *emitter) deliverOrExport(value span) {
	switch f.exports(value) {
	case exportsProperty:
		f.appendCode(f.deliverNothing)
	case exportsFunction:
		f.deliverCall(value)
	default:
		f.deliver(value)
	}
}

// call makes what a function gives the value: it could be no value itself.
func (f *emitter) deliverCall(value span) {
	f.insertBefore(value, f.prefix)
	f.insert(value.end, ")()"+f.suffix[1:])
}

// finishDefault does so for an export default at the end. A function is there to be
// called.
func (f *emitter) emitDefault(s *statement) {
	call := ""
	if s.callable {
		call = "()"
	}
	if s.name != "" {
		f.appendCode(f.deliverNamed(s.name + call))
		return
	}
	words := span{s.start, s.value.start}
	f.edits = append(f.edits, replace(words, lineEnds(f.text[words.start:words.end])))
	if s.callable {
		f.deliverCall(s.value)
	} else {
		f.deliver(s.value)
	}
	f.insert(s.value.end, ";")
}

// finishBranches does so for a statement with several ends.
func (f *emitter) emitBranches(s *statement) {
	ends := s.results()
	switch {
	case len(ends) == 0:
		f.appendCode(f.deliverNothing)
	case f.hasCompletion:
		for _, value := range ends {
			f.insertBefore(value, "await (")
			f.insert(value.end, ")")
		}
	default:
		name := f.assign(ends)
		f.appendCode("var " + name + ";" + f.deliverNamed(name))
	}
}

// assign keeps the values of several ends in a variable.
func (f *emitter) assign(ends []span) (name string) {
	name = "__value"
	for strings.Contains(f.text, name) {
		name += "_"
	}
	for _, value := range ends {
		f.insertBefore(value, name+" = await (")
		f.insert(value.end, ")")
	}
	return name
}

// finishBody lets the function that the code was wrapped in return its value.
func (f *emitter) emitBody(s *statement) {
	last := lastStatement(s.body)
	if last == nil {
		return
	}
	switch last.kind {
	case expression:
		shut := ")"
		switch f.exports(last.value) {
		case exportsProperty:
			return
		case exportsFunction:
			shut = ")()"
		}
		if last.callable {
			shut = ")()"
		}
		f.insertBefore(last.value, "return await (")
		f.insert(last.value.end, shut)
	case block, branching:
		if ends := last.results(); len(ends) > 0 {
			name := f.assign(ends)
			brace := strings.LastIndexByte(f.text[:s.value.end], '}')
			f.insert(brace, ";var "+name+";return "+name+";")
		}
	}
}
