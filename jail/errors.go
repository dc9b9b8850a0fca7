package jail

import (
	"errors"

	"gaol/jail/step"
)

// ErrClosed is returned by the methods of a closed jail.
var ErrClosed = errors.New("the jail is closed")

// StepError reports which step of creating or entering a jail failed.
type StepError = step.Error
