package snippets

// Validate returns an [*InputError] for an input that breaks a rule of [Input].
func (in Input) Validate() error {
	_, _, err := in.check()
	return err
}
