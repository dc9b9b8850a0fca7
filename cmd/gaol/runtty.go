package main

import (
	"context"
	"io"
	"os"

	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/terminal"
	"gaol/runtime"
)

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
	proc, err := spawn(ctx, sb, p, o)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, proc.Kill)() // for Spawn, ctx bounds the start only
	restore, err := tty.MakeRaw()
	if err != nil {
		proc.Kill()
		return nil, err
	}
	defer restore()
	defer tty.Watch(func(rows, cols uint16) {
		_ = proc.Resize(rows, cols) // fails if the program has ended
	}, restore)()
	go func() { // not waited for: the user may press no more keys
		_, _ = io.Copy(proc.Stdin, tty)
		_ = proc.Stdin.Close()
	}()
	if _, err := io.Copy(a.stdout, proc.Stdout); err != nil {
		proc.Kill()
		return nil, report.NewOutputError("standard output", err)
	}
	return proc.Wait(context.WithoutCancel(ctx)) // the program has ended, or closed its terminal
}

func spawn(ctx context.Context, sb sandbox, p *program, o runtime.SpawnOptions) (*runtime.Process, error) {
	if p.command == "" {
		o.Name, o.Format, o.Args = p.Name, p.Format, p.args
		return sb.SpawnCode(ctx, p.Code, o)
	}
	proc, err := sb.Spawn(ctx, p.command, p.args, o)
	return proc, adviseCommand(err)
}
