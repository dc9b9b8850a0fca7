package snippet

// guardConstants makes assignments to constants throw, as V8 does for const: they become assignments
// to members of the guest's object.
func (f *emitter) guardConstants() {
	for v := range f.tree.all() {
		form, known := f.declares[v.Name]
		if !known {
			form = f.declared[v.Name]
		}
		if !v.written || form&Constant == 0 {
			continue
		}
		if d := v.Scope.Find(v.Name); d != nil && d != f.tree.Scope.names[v.Name] {
			continue
		}
		with := constants + "." + v.Name
		if v.shorthand {
			with = v.Name + ": " + with
		}
		f.edits = append(f.edits, replace(v.span(), with))
	}
}
