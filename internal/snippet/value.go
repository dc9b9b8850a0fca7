package snippet

import "strings"

// A finisher writes what hands over a program's value.
type finisher struct {
	parsed
	// open and shut stand around the expression that is the value; after and none are
	// what is written at the end, for a value that is named and for none.
	open, shut string
	after      func(value string) string
	none       string
	// completes: the value of a branch is the program's, without help.
	completes bool
	// defines: a function's declaration is there to be declared.
	defines bool
	// load is the function that imports modules, named the one that checks the names
	// which are imported, if there is one.
	load, named string

	edits []edit
}

func (f *finisher) insert(at int, text string) { f.edits = append(f.edits, insert(at, text)) }

// before inserts what evaluates an expression. To V8 it's where much of what goes wrong in
// the expression happens, a name that isn't there first of all.
func (f *finisher) before(value span, text string) {
	f.edits = append(f.edits, edit{span{value.start, value.start}, text, true, value.start})
}

func (f *finisher) end(text string) { f.insert(len(f.text), "\n;"+text) }

// module is the program as an ES module. Where it has a name like Deliver, which may be one
// of its own, the guest's function is asked for by way of globalThis.
func (p parsed) module() draft {
	deliver := Deliver
	if strings.Contains(p.text, Deliver) {
		deliver = "globalThis." + Deliver
	}
	f := &finisher{
		parsed: p,
		open:   deliver + "(await (",
		shut:   "))",
		after:  func(value string) string { return deliver + "(await " + value + ")" },
		none:   deliver + "()",
	}
	f.finish()
	return p.edit(f.edits)
}

func (f *finisher) finish() {
	s := lastOf(f.list)
	alone := s != nil
	for i := range f.list {
		alone = alone && (&f.list[i] == s || f.list[i].valueless())
	}
	switch {
	case s == nil:
		f.end(f.none)
	case s.kind == expression && s.callable:
		if f.wrapped {
			f.finishBody(s)
		}
		f.call(s.value)
	case s.kind == expression:
		f.takeOrExport(s.value)
	case (s.kind == function || s.declares == function && s.kind == exporting) && alone && !f.defines:
		f.end(f.after(s.name + "()"))
	case s.kind == defaulting:
		f.finishDefault(s)
	case s.kind == block || s.kind == branching:
		f.finishBranches(s)
	default:
		f.end(f.none)
	}
}

// take makes an expression the value.
func (f *finisher) take(value span) {
	f.before(value, f.open)
	f.insert(value.end, f.shut)
}

// takeOrExport does so unless the expression sets a property of exports: the guest then takes
// all of them for the value. A function that becomes module.exports is called, as that of
// export default is.
func (f *finisher) takeOrExport(value span) {
	switch f.exports(value) {
	case exportsProperty:
		f.end(f.none)
	case exportsFunction:
		f.call(value)
	default:
		f.take(value)
	}
}

// call makes what a function gives the value: it could be no value itself.
func (f *finisher) call(value span) {
	f.before(value, f.open)
	f.insert(value.end, ")()"+f.shut[1:])
}

// finishDefault does so for an export default at the end. A function is there to be
// called.
func (f *finisher) finishDefault(s *statement) {
	call := ""
	if s.callable {
		call = "()"
	}
	if s.name != "" {
		f.end(f.after(s.name + call))
		return
	}
	words := span{s.start, s.value.start}
	f.edits = append(f.edits, replace(words, lineEnds(f.text[words.start:words.end])))
	if s.callable {
		f.call(s.value)
	} else {
		f.take(s.value)
	}
	f.insert(s.value.end, ";")
}

// finishBranches does so for a statement with several ends.
func (f *finisher) finishBranches(s *statement) {
	ends := s.ends()
	switch {
	case len(ends) == 0:
		f.end(f.none)
	case f.completes:
		for _, value := range ends {
			f.before(value, "await (")
			f.insert(value.end, ")")
		}
	default:
		name := f.assign(ends)
		f.end("var " + name + ";" + f.after(name))
	}
}

// assign keeps the values of several ends in a variable.
func (f *finisher) assign(ends []span) (name string) {
	name = "__value"
	for strings.Contains(f.text, name) {
		name += "_"
	}
	for _, value := range ends {
		f.before(value, name+" = await (")
		f.insert(value.end, ")")
	}
	return name
}

// finishBody lets the function that the code was wrapped in return its value.
func (f *finisher) finishBody(s *statement) {
	last := lastOf(s.body)
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
		f.before(last.value, "return await (")
		f.insert(last.value.end, shut)
	case block, branching:
		if ends := last.ends(); len(ends) > 0 {
			name := f.assign(ends)
			brace := strings.LastIndexByte(f.text[:s.value.end], '}')
			f.insert(brace, ";var "+name+";return "+name+";")
		}
	}
}
