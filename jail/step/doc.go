// Package step defines the error of the packages below jail: it names the step of
// creating or entering a jail that failed.
package step

// Error reports which step of creating or entering a jail failed.
type Error struct {
	Step   string // the step, such as "mount" or "exec"
	Target string // its object; may be empty
	Err    error
}

// Error returns "step target: cause".
func (e *Error) Error() string {
	if e.Target == "" {
		return e.Step + ": " + e.Err.Error()
	}
	return e.Step + " " + e.Target + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap returns an [*Error], or nil if err is nil.
func Wrap(step, target string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{step, target, err}
}
