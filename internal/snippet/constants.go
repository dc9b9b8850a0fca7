package snippet

import "maps"

// guardConstants makes assignments to constants throw, as V8 does for const: they become assignments
// to members of the guest's object.
func (f *emitter) guardConstants(object string) {
	constants := map[string]bool{}
	for _, of := range []map[string]Declared{f.declared, f.declares} {
		for name, d := range of {
			constants[name] = d&Constant != 0
		}
	}
	maps.DeleteFunc(constants, func(_ string, is bool) bool { return !is })
	if len(constants) == 0 || object == "" {
		return
	}
	top := f.tree.Scope
	for v := range f.tree.all() {
		if !v.written || !constants[v.Name] {
			continue
		}
		if d := v.Scope.Find(v.Name); d != nil && d != top.names[v.Name] {
			continue
		}
		with := object + "." + v.Name
		if v.shorthand {
			with = v.Name + ": " + with
		}
		f.edits = append(f.edits, replace(v.span(), with))
	}
}

// assignsGlobals reports whether a program assigns to variables that it does not declare.
func (p parsed) assignsGlobals() bool {
	for v := range p.tree.all() {
		if v.written && v.IsGlobal() && !isCommonJS(v.Name) {
			return true
		}
	}
	return false
}
