package main

import (
	"context"
	"io"
	"os"
	"syscall"

	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/terminal"
	"gaol/runtime"
)

// terminalProcess is a process with a terminal, of this process or of a server.
type terminalProcess struct {
	control interface {
		Kill()
		Signal(s syscall.Signal) error
		Done() <-chan struct{}
		Resize(rows, cols uint16) error
		Wait(ctx context.Context) (*runtime.Result, error)
	}
	stdin  io.WriteCloser
	stdout io.Reader
}

// runOnTerminal runs p on a terminal of its own, connected to the user's.
func (a *app) runOnTerminal(ctx context.Context, sb sandbox, p *program, f *runFlags) (*runtime.Result, error) {
	tty, err := terminal.Open(a.stdin)
	if err != nil {
		return nil, err
	}
	o := runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: os.Getenv("TERM")}}
	if f.Set.Changed("timeout") { // the default would end a session while the user types
		o.Timeout = max(f.Timeout(), 0) // for Spawn, 0 is no limit
	}
	o.Terminal.Rows, o.Terminal.Cols = tty.Size()
	proc, err := sb.spawn(ctx, p, o)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, proc.control.Kill)() // for Spawn, ctx bounds the start only
	signals, done := a.signals.forProgram()
	defer done()
	go func() {
		select {
		case s := <-signals:
			_ = proc.control.Signal(s) // fails if the program has ended
		case <-proc.control.Done():
		}
	}()
	restore, err := tty.MakeRaw()
	if err != nil {
		proc.control.Kill()
		return nil, err
	}
	defer restore()
	defer tty.Watch(func(rows, cols uint16) {
		_ = proc.control.Resize(rows, cols) // fails if the program has ended
	}, restore)()
	go func() { // not waited for: the user may press no more keys
		_, _ = io.Copy(proc.stdin, tty)
		_ = proc.stdin.Close()
	}()
	if _, err := io.Copy(a.stdout, proc.stdout); err != nil {
		proc.control.Kill()
		return nil, report.NewOutputError("standard output", err)
	}
	return proc.control.Wait(context.WithoutCancel(ctx)) // the program has ended, or closed its terminal
}
