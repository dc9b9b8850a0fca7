package runtime

import "fmt"

// OptionError reports an option whose value is invalid. It names the option's field.
type OptionError struct {
	Option string
	Err    error
}

// Error is "option Cwd: ...".
func (e *OptionError) Error() string { return "option " + e.Option + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *OptionError) Unwrap() error { return e.Err }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}
