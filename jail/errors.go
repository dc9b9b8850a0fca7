package jail

import "errors"

// ErrClosed is what a jail that was closed answers.
var ErrClosed = errors.New("the jail is closed")

// StepError says which step of making or entering a jail failed.
type StepError struct {
	Step   string // what was being done, such as "mount" or "exec"
	Target string // what it was done to; may be empty
	Err    error
}

// Error reads "step target: cause".
func (e *StepError) Error() string {
	if e.Target == "" {
		return e.Step + ": " + e.Err.Error()
	}
	return e.Step + " " + e.Target + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

func stepError(step, target string, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{step, target, err}
}
