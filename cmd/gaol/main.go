package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
)

func main() {
	ctx, stop, release := withSignals(context.Background())
	a := &app{takeSignals: release, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, create: createRuntime, measure: measure, server: flags.FindServer()}
	code := a.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// signalError is the cause of a context that a signal to gaol canceled.
type signalError struct{ sig syscall.Signal }

func (e signalError) Error() string { return e.sig.String() }

// withSignals returns a context that SIGINT, SIGTERM and SIGHUP cancel. A second
// signal kills gaol at once: the next start removes what that leaves behind. After release,
// signals do not cancel the context.
func withSignals(parent context.Context) (_ context.Context, stop, release func()) {
	ctx, cancel := context.WithCancelCause(parent)

	// Without a handler, Go lets a write to a closed standard output kill the process
	// before it can remove the jail. With a handler, the write fails. Ignoring the
	// signal would do the same, but every child would inherit that.
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
	release = func() { signal.Stop(ch) }
	return ctx, func() { release(); cancel(nil) }, release
}

// silentStatus returns the exit status of a command that ended without a message:
// because of a signal, with the status that a shell gives to a program that the
// signal killed, or because the reader of its output closed the pipe.
func silentStatus(ctx context.Context, err error) (int, bool) {
	if errors.Is(err, errStopped) {
		return 0, true
	}
	if sig, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		return report.ExitSignal + int(sig.sig), true
	}
	// Only for gaol's own output: an EPIPE from elsewhere is a failure.
	if out, ok := errors.AsType[*report.OutputError](err); ok && errors.Is(out, syscall.EPIPE) {
		return report.ExitSignal + int(syscall.SIGPIPE), true
	}
	return 0, false
}
