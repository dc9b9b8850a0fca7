package terminal

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"gaol/cmd/gaol/report"
)

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Terminal is the user's terminal.
type Terminal struct {
	*os.File

	mu    sync.Mutex
	saved *term.State // nil unless the terminal is in raw mode
}

// Open returns the terminal that stdin is. It does not change it.
func Open(stdin any) (*Terminal, error) {
	if !Is(stdin) {
		return nil, errors.New("standard input is no terminal")
	}
	return &Terminal{File: stdin.(*os.File)}, nil
}

// Size returns the size of the window, or zeros if it is not known.
func (t *Terminal) Size() (rows, cols uint16) {
	width, height, err := term.GetSize(int(t.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return uint16(height), uint16(width)
}

// MakeRaw makes the terminal deliver each key as it is pressed, without echo.
func (t *Terminal) MakeRaw() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved, err = term.MakeRaw(int(t.Fd()))
	return err
}

// Restore undoes MakeRaw. It is idempotent.
func (t *Terminal) Restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil {
		_ = term.Restore(int(t.Fd()), t.saved) // fails if the terminal is gone
		t.saved = nil
	}
}

// Watch calls onResize with the current size of the window and after each change.
// It also restores the terminal and exits on a second signal: the first one cancels
// the command's context, the second would kill gaol with the terminal in raw mode.
// Stop ends both.
func (t *Terminal) Watch(onResize func(rows, cols uint16)) (stop func()) {
	resizes, signals := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(resizes, syscall.SIGWINCH)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	resized := func() {
		if rows, cols := t.Size(); rows > 0 {
			onResize(rows, cols)
		}
	}
	done := make(chan struct{})
	go func() {
		for received := 0; ; {
			select {
			case <-done:
				return
			case <-resizes:
				resized()
			case <-signals:
				if received++; received == 2 {
					t.Restore()
					os.Exit(report.ExitFailure)
				}
			}
		}
	}()
	resized() // the size may have changed before Notify
	return func() {
		signal.Stop(resizes)
		signal.Stop(signals)
		close(done)
	}
}
