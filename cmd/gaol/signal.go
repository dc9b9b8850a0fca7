package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalError is the cause of a context that a signal to gaol ended.
type signalError struct{ sig syscall.Signal }

func (e signalError) Error() string { return e.sig.String() }

// withSignals gives a context that SIGINT, SIGTERM and SIGHUP end. A second
// signal kills gaol at once: the next start clears what is then left behind.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)

	// Without a handler, Go lets a write to a closed standard output kill the
	// process before it could take the jail down. Ignoring the signal would be
	// passed on to every child; a handler isn't, and makes the write fail.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			if sig, ok := s.(syscall.Signal); ok {
				cancel(signalError{sig})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}
