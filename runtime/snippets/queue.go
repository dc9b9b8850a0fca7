package snippets

import "context"

// queue is a semaphore that serves callers in order: a channel wakes senders in the order in
// which they began to wait.
type queue chan struct{}

// enter waits for a place, which the caller must leave. If ctx ends first, it returns its cause.
func (q queue) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case q <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q queue) leave() { <-q }
