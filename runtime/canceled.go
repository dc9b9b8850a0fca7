package runtime

import (
	"context"
	"errors"
	"fmt"
)

// contextError is the error of a run whose context ended: ctx.Err, and the cause of ctx
// where that is another error.
//
// Preconditions: ctx is done.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// cancellation is the error beside the result of a run that was ended from outside. It is nil
// for a run that [NodeRuntime.Kill] or [Process.Kill] ended: that is what its caller asked for.
func (rt *NodeRuntime) cancellation(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && endCause(ctx) == CauseCanceled:
		return contextError(ctx)
	case isClosed(rt.closing):
		return ErrClosed
	}
	return nil
}
