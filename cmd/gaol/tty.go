package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"gaol/runtime"
)

// checkTerminal refuses what makes no sense on a terminal.
func (f *runFlags) checkTerminal(stdin io.Reader) error {
	if !f.tty {
		return nil
	}
	for _, name := range []string{"json", "stdin", "max-output"} {
		if f.set.Changed(name) {
			return errors.New("--tty and --" + name + " exclude each other")
		}
	}
	if file, ok := stdin.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return errors.New("--tty: standard input is no terminal")
	}
	return nil
}

// interact has the program run on a terminal of its own, which the user's stands for.
func (a *app) interact(ctx context.Context, p *program, f *runFlags, sb sandbox) (*runtime.Result, error) {
	own, err := takeTerminal(a.stdin)
	if err != nil {
		return nil, err
	}
	o := runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: os.Getenv("TERM")}}
	if f.set.Changed("timeout") {
		o.Timeout = time.Duration(f.timeout)
	}
	o.Terminal.Rows, o.Terminal.Cols = own.size()
	proc, err := p.spawn(ctx, sb, o)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, proc.Kill)()
	if err := own.makeRaw(); err != nil {
		proc.Kill()
		return nil, err
	}
	defer own.restore()
	defer own.follow(func(rows, cols uint16) {
		_ = proc.Resize(rows, cols) // fails for one that has ended
	})()
	go func() { // not waited for: the user may press no key any more
		_, _ = io.Copy(proc.Stdin, own.file)
		_ = proc.Stdin.Close()
	}()
	if _, err := io.Copy(a.stdout, proc.Stdout); err != nil {
		proc.Kill()
		return nil, newOutputError("standard output", err)
	}
	return proc.Wait(context.WithoutCancel(ctx)) // its end has come, or is near
}

// spawn is run on a terminal.
func (p *program) spawn(ctx context.Context, sb sandbox, o runtime.SpawnOptions) (*runtime.Process, error) {
	if p.command == "" {
		o.Name, o.Format, o.Args = p.name, p.format, p.args
		return sb.SpawnCode(ctx, p.code, o)
	}
	proc, err := sb.Spawn(ctx, p.command, p.args, o)
	return proc, adviseProgram(err)
}

// ownTerminal is the user's.
type ownTerminal struct {
	file *os.File

	mu  sync.Mutex
	was *term.State // nil: it is as it was
}

func takeTerminal(stdin io.Reader) (*ownTerminal, error) {
	file, ok := stdin.(*os.File)
	if !ok {
		return nil, errors.New("standard input is no terminal")
	}
	return &ownTerminal{file: file}, nil
}

// size is the window's, or zero where it has none.
func (t *ownTerminal) size() (rows, cols uint16) {
	width, height, err := term.GetSize(int(t.file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return uint16(height), uint16(width)
}

// makeRaw has all keys passed on.
func (t *ownTerminal) makeRaw() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.was, err = term.MakeRaw(int(t.file.Fd()))
	return err
}

// restore undoes makeRaw. A second time it does nothing.
func (t *ownTerminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.was != nil {
		_ = term.Restore(int(t.file.Fd()), t.was) // it fails for a terminal that is gone
		t.was = nil
	}
}

// follow tells the window's size, now and whenever it changes, and has a second signal,
// which ends gaol at once, leave the terminal as it was.
func (t *ownTerminal) follow(tell func(rows, cols uint16)) (stop func()) {
	changes, ends := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(changes, syscall.SIGWINCH)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for first := true; ; {
			select {
			case <-done:
				return
			case <-changes:
				t.tell(tell)
			case <-ends:
				if !first {
					t.restore()
					os.Exit(exitFailure)
				}
				first = false // withSignals has it end the program
			}
		}
	}()
	t.tell(tell) // it may have changed before
	return func() {
		signal.Stop(changes)
		signal.Stop(ends)
		close(done)
	}
}

func (t *ownTerminal) tell(size func(rows, cols uint16)) {
	if rows, cols := t.size(); rows > 0 {
		size(rows, cols)
	}
}
