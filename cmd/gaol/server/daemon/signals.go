package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signals are the signals to the server.
type signals struct {
	term    context.Context // ends with the first SIGTERM or SIGINT
	now     context.Context // ends with the second one; the third one ends the process
	hangups chan struct{}   // receives a value after SIGHUP

	received chan os.Signal
	done     chan struct{}
	cancel   context.CancelFunc
}

// newSignals handles signals until stop. The end of ctx is like a SIGTERM.
func newSignals(ctx context.Context) *signals {
	s := &signals{hangups: make(chan struct{}, 1), received: make(chan os.Signal, 8), done: make(chan struct{})}
	now, cancelNow := context.WithCancel(context.WithoutCancel(ctx))
	term, cancelTerm := context.WithCancel(now)
	s.now, s.term, s.cancel = now, term, cancelNow
	if ctx.Done() != nil {
		context.AfterFunc(ctx, cancelTerm)
	}
	signal.Notify(s.received, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	go s.handle(cancelTerm, cancelNow)
	return s
}

func (s *signals) handle(first, second context.CancelFunc) {
	for {
		var sig os.Signal
		select {
		case <-s.done:
			return
		case sig = <-s.received:
		}
		switch {
		case sig == syscall.SIGHUP:
			select {
			case s.hangups <- struct{}{}:
			default: // a reload is pending, which reads the files of now
			}
		case s.term.Err() == nil:
			first()
		default:
			second()
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
		}
	}
}

// stop ends the handling.
func (s *signals) stop() {
	signal.Stop(s.received)
	close(s.done)
	s.cancel()
}
