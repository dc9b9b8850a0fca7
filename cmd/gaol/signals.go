package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// signalError is the cause of a context that a signal to gaol canceled.
type signalError struct{ sig syscall.Signal }

func (e signalError) Error() string { return e.sig.String() }

// signals cancels the context of a command when gaol gets SIGINT, SIGTERM or SIGHUP. While a
// program runs, the first SIGINT or SIGTERM goes to it instead, and cancels the context only
// after signalGrace. A signal after the cancellation kills gaol: the next start removes what that
// leaves behind.
type signals struct {
	received chan os.Signal
	cancel   context.CancelCauseFunc

	mu      sync.Mutex
	program chan<- syscall.Signal // nil: no program runs, or it had its signal
	grace   *time.Timer           // nil: no signal went to a program
}

// signalGrace is the time that a program has to end after SIGINT or SIGTERM.
const signalGrace = 5 * time.Second

// withSignals returns a context that signals cancel.
func withSignals(parent context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(parent)
	s := &signals{received: make(chan os.Signal, 1), cancel: cancel}

	// Without a handler, Go lets a write to a closed standard output kill the process
	// before it can remove the jail. With a handler, the write fails. Ignoring the
	// signal would do the same, but every child would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	signal.Notify(s.received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go s.watch(ctx)
	return ctx, s
}

func (s *signals) watch(ctx context.Context) {
	defer s.release()
	for {
		select {
		case received := <-s.received:
			if sig, ok := received.(syscall.Signal); ok && !s.pass(sig) {
				s.cancel(signalError{sig})
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// pass sends a signal to the program, and reports whether it did.
func (s *signals) pass(sig syscall.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program == nil || sig == syscall.SIGHUP {
		return false
	}
	s.program <- sig // has room for the only one
	s.program = nil
	s.grace = time.AfterFunc(signalGrace, func() { s.cancel(signalError{sig}) })
	return true
}

// forProgram returns a channel of the signal for a program that runs until done is called.
// Without signals, as in tests, it is nil.
func (s *signals) forProgram() (_ <-chan syscall.Signal, done func()) {
	if s == nil {
		return nil, func() {}
	}
	program := make(chan syscall.Signal, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program = program
	return program, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.program = nil
		if s.grace != nil {
			s.grace.Stop()
		}
	}
}

// release lets a command handle signals itself.
func (s *signals) release() { signal.Stop(s.received) }
