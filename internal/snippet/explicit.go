package snippet

// explicit reports whether the code names its value.
func (p parsed) explicit() bool {
	s := lastOf(p.list)
	if s == nil || p.wrapped {
		return p.wrapped
	}
	return s.kind != expression && s.kind != block && s.kind != branching || s.callable
}
