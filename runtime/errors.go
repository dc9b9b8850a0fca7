package runtime

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by errors that say that this machine cannot run a sandbox, or
// not with these options.
var ErrUnsupported = errors.ErrUnsupported

// OptionError reports an option whose value is invalid. It names the option's field.
type OptionError struct {
	Option string
	Err    error
}

// Error is "option Cwd: ...".
func (e *OptionError) Error() string { return "option " + e.Option + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

// wrap adds the name of the method that failed to its error. Use it with defer.
func wrap(err *error, method string) {
	if *err != nil {
		*err = fmt.Errorf("gaol: %s: %w", method, *err)
	}
}

// contextError returns the error of a run whose context ended: ctx.Err, and the cause of ctx
// if it is another error.
//
// Preconditions: ctx is done.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// cancellation returns the error beside the result of a canceled run. It is nil for a run
// that [NodeRuntime.Kill] or [Process.Kill] ended, because its caller asked for that.
func (rt *NodeRuntime) cancellation(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && endCause(ctx) == CauseCanceled:
		return contextError(ctx)
	case isClosed(rt.closing):
		return ErrClosed
	}
	return nil
}
