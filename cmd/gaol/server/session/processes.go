package session

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/runtime"
)

// spawnParams are those of spawn: code, or a command.
type spawnParams struct {
	SandboxParams
	service.Program
	Code     string             `json:"code,omitempty" maxLength:"4194304" doc:"A program, unless command is given."`
	Command  string             `json:"command,omitempty" maxLength:"4095" doc:"A program of the image, or the path of one in the sandbox."`
	Terminal *protocol.Terminal `json:"terminal,omitempty" doc:"Give the process a terminal."`
	Events   bool               `json:"events,omitempty" doc:"Send events, too."`
}

// startedEvent says that a process or a context has started.
type startedEvent struct {
	Type string `json:"type"`
	PID  int    `json:"pid,omitempty"`
}

// spawn starts a process, and returns its result when it has ended. Canceling the request kills it.
func spawn(t *task, p spawnParams) (any, error) {
	if (p.Code == "") == (p.Command == "") {
		return nil, service.Invalidf("params: want either code or command")
	}
	sb, err := t.service.Acquire(t.tenant, p.Sandbox)
	if err != nil {
		return nil, err
	}
	defer sb.Release()
	o, err := sb.ProcessOptions(p.Program)
	if err != nil {
		return nil, err
	}
	if p.Terminal != nil {
		o.Terminal = &runtime.Terminal{Rows: p.Terminal.Rows, Cols: p.Terminal.Cols, Term: p.Terminal.Term}
	}
	record := audit.Of(t.ctx)
	record.SetSandbox(p.Sandbox)
	record.SetPermissions(p.Permissions)
	if p.Command != "" {
		record.SetCommand(p.Command, p.Args)
	} else {
		record.SetCode(p.Code)
	}
	var res *runtime.Result
	err = sb.Work(t.ctx, "run a process", func(ctx context.Context) error {
		proc, err := start(ctx, sb, p, o)
		if err == nil {
			res, err = t.attend(ctx, proc, p.Events)
		} else {
			err = commandError(err)
		}
		sb.RecordRun(ctx, service.KindProcess, res, err)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.sendResult(res), nil
}

func start(ctx context.Context, sb *service.Sandbox, p spawnParams, o runtime.SpawnOptions) (*runtime.Process, error) {
	if p.Command == "" {
		return sb.SpawnCode(ctx, p.Code, o)
	}
	args := o.Args
	o.Args = nil
	return sb.NodeRuntime.Spawn(ctx, p.Command, args, o)
}

// attend connects a process to the client until it has ended.
func (t *task) attend(ctx context.Context, proc *runtime.Process, events bool) (*runtime.Result, error) {
	t.started.Lock()
	t.process = proc
	t.started.Unlock()
	defer context.AfterFunc(ctx, proc.Kill)()
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer t.stdin.Close(nil)
	if err := t.event(startedEvent{"started", proc.PID()}); err != nil {
		proc.Kill()
	}
	if events {
		pumps.Go(func() { t.pump(proc.Events()) })
	} else {
		pumps.Go(func() { t.copyOutput(protocol.KindStdout, proc.Stdout) })
		pumps.Go(func() { t.copyOutput(protocol.KindStderr, proc.Stderr) })
	}
	pumps.Go(func() {
		_, _ = io.Copy(proc.Stdin, t.stdin) // until the process, or its input, ends
		_ = proc.Stdin.Close()
	})
	return proc.Wait(context.WithoutCancel(ctx))
}

// copyOutput sends output until its end, or until the task is canceled.
func (t *task) copyOutput(kind protocol.Kind, from io.Reader) {
	buffer := make([]byte, protocol.MaxChunk/2)
	for {
		n, err := from.Read(buffer)
		if sent := t.output(kind, buffer[:n]); sent != nil || err != nil {
			return
		}
	}
}

// ProcessParams name a process by the request that has spawned it, or runs it.
type ProcessParams struct {
	Process uint32 `json:"process" minimum:"1"`
}

func (t *task) processOf(id uint32) (*runtime.Process, error) {
	if other := t.task(id); other != nil {
		other.started.Lock()
		defer other.started.Unlock()
		if other.process != nil {
			return other.process, nil
		}
	}
	return nil, service.NotFoundf("no process %d", id)
}

// signalParams are those of signal.
type signalParams struct {
	ProcessParams
	Signal string `json:"signal" maxLength:"16" doc:"Such as SIGTERM."`
	Group  bool   `json:"group,omitempty" doc:"Signal the process group that the process leads."`
}

// runSignals are the signals of a run, which has no process yet while it waits for its turn.
type runSignals struct {
	pending chan syscall.Signal
	ended   <-chan struct{}
}

// takeSignals lets other requests signal the run of this one.
func (t *task) takeSignals() <-chan syscall.Signal {
	t.started.Lock()
	defer t.started.Unlock()
	t.signals = &runSignals{make(chan syscall.Signal), t.ctx.Done()}
	return t.signals.pending
}

// send waits until the run has started.
func (r *runSignals) send(ctx context.Context, s syscall.Signal) error {
	select {
	case r.pending <- s:
		return nil
	case <-r.ended:
		return os.ErrProcessDone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *task) runOf(id uint32) *runSignals {
	other := t.task(id)
	if other == nil {
		return nil
	}
	other.started.Lock()
	defer other.started.Unlock()
	return other.signals
}

func signal(t *task, p signalParams) (any, error) {
	number := unix.SignalNum(p.Signal)
	if number == 0 {
		return nil, service.Invalidf("signal %q: want a name such as SIGTERM", p.Signal)
	}
	if run := t.runOf(p.Process); run != nil {
		if p.Group {
			return nil, service.Invalidf("group: only for processes of spawn")
		}
		return nil, processError(run.send(t.ctx, number))
	}
	proc, err := t.processOf(p.Process)
	if err != nil {
		return nil, err
	}
	send := proc.Signal
	if p.Group {
		send = proc.SignalGroup
	}
	return nil, processError(send(number))
}

// resizeParams are those of resize.
type resizeParams struct {
	ProcessParams
	Rows uint16 `json:"rows" minimum:"1"`
	Cols uint16 `json:"cols" minimum:"1"`
}

func resize(t *task, p resizeParams) (any, error) {
	proc, err := t.processOf(p.Process)
	if err != nil {
		return nil, err
	}
	return nil, processError(proc.Resize(p.Rows, p.Cols))
}

func processError(err error) error {
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return &service.Error{Code: service.Closed, Err: err}
	case errors.Is(err, runtime.ErrNoTerminal):
		return service.Invalidf("%w", err)
	}
	return err
}
