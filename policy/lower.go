package policy

// Lower says by what the kernel is to hold p, merged over [Default], in w. A rule
// that nothing can hold is a *[RuleError]; several are joined.
func Lower(p Permissions, w World) (*Plan, error) {
	return nil, nil
}
