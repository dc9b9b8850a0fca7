package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/audit"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Process is a process that a sandbox has, with all its descendants.
type Process struct {
	program
	process *runtime.Process
	info    resultjson.ProcessInfo // of the active process, without usage
	ring    *ring
	stdin   *stdin

	// Of the process that has ended, set before ended is closed.
	final resultjson.ProcessInfo
	exit  *runtime.Result
}

// Spawn starts a process. It lives until it exits, is killed or exceeds a limit, or its
// sandbox ends.
func (sb *Sandbox) Spawn(ctx context.Context, r requestjson.ProcessRequest) (*Process, error) {
	o, err := sb.spawnOptions(r)
	if err != nil {
		return nil, err
	}
	if r.Command != "" {
		recordCommand(ctx, r.Command, r.Args, r.Permissions)
	} else {
		recordCode(ctx, r.Code, r.Permissions)
	}
	var started *runtime.Process
	common, err := sb.start(ctx, "p-", func(ctx context.Context) (err error) {
		if r.Command != "" {
			started, err = sb.runtime.Spawn(ctx, r.Command, r.Args, o)
			return err
		}
		o.Args = r.Args
		started, err = sb.runtime.SpawnCode(ctx, r.Code, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := newProcess(common, started, r)
	sb.longLived.add(p)
	go p.collect()
	return p, nil
}

// spawnOptions checks a request and returns the SDK's options, except for arguments.
func (sb *Sandbox) spawnOptions(r requestjson.ProcessRequest) (o runtime.SpawnOptions, err error) {
	switch {
	case (r.Code == "") == (r.Command == ""):
		return o, Refuse(Invalid, "want either code or command")
	case r.Command != "" && (r.Name != "" || r.Format != ""):
		return o, Refuse(Invalid, "name and format are for code")
	}
	o = runtime.SpawnOptions{Env: r.Env, Cwd: r.Cwd, Name: r.Name, Format: formats[r.Format]}
	if o.Permissions, err = parsePermissions(r.Permissions); err != nil {
		return o, err
	}
	if t := r.Terminal; t != nil {
		if (t.Rows == 0) != (t.Cols == 0) {
			return o, Refuse(Invalid, "terminal: rows and cols need each other")
		}
		o.Terminal = &runtime.Terminal{Rows: t.Rows, Cols: t.Cols, Term: t.Term}
	}
	if r.TimeoutMs > 0 { // otherwise the lifetime of the sandbox bounds it
		o.Timeout, err = bounded("timeoutMs", r.TimeoutMs, sb.service.settings.Load().LifetimeMs)
	}
	return o, err
}

// maxArgs bounds the arguments that are kept for descriptions of a process, in bytes.
const maxArgs = 4 << 10

func newProcess(common program, started *runtime.Process, r requestjson.ProcessRequest) *Process {
	p := &Process{program: common, process: started, ring: newRing(r.WhenFull == "wait"), stdin: newStdin(started)}
	p.info = resultjson.ProcessInfo{
		ID: p.ID, PID: started.PID(), State: resultjson.Running, Program: cmp.Or(r.Command, r.Name, "code"), Args: []string{},
		Started: p.started, Terminal: r.Terminal != nil,
	}
	size := 0
	for _, arg := range r.Args {
		size += len(arg)
	}
	if size <= maxArgs && len(r.Args) > 0 {
		p.info.Args = r.Args
	}
	return p
}

// collect moves the process's events to the ring until it has ended.
func (p *Process) collect() {
	go func() {
		<-p.process.Done()
		p.ring.release()
	}()
	var t translator
	for e := range p.process.Events() {
		for _, event := range t.events(e) {
			p.ring.add(event, false)
		}
		if exit, ok := e.(runtime.ExitEvent); ok {
			p.release() // before clients can see the end
			p.finish(exit)
		}
	}
}

// finish records how the process has ended.
func (p *Process) finish(exit runtime.ExitEvent) {
	p.final, p.final.Ended = p.info, new(time.Now())
	p.final.State = resultjson.Ended
	size := p.ring.bytes() + eventSize
	last := Event{Name: EventError}
	if p.exit = exit.Result; p.exit != nil {
		p.sandbox.service.metrics.Run(KindProcess, p.exit.Cause, p.exit.Duration)
		p.final.Usage, p.final.Result = resultjson.NewProcessUsage(p.exit.Usage), p.exit
		size += len(p.final.Result.Value)
		last = Event{Name: EventResult, Data: p.final.Result}
	} else {
		err := p.sandbox.service.Convert("end a process", p.sandbox.tenant(), exit.Err)
		p.final.Failure, last.Data = err.Error(), err
	}
	p.ring.add(last, true)
	p.final.LastEventID, _ = p.ring.lastID()
	p.retain(size)
}

// Process returns a process of the sandbox.
func (sb *Sandbox) Process(id string) (*Process, error) { return find[*Process](sb, "process", id) }

// SpawnedProcesses describes the processes that the sandbox has, the oldest first. They include
// ended processes that are retained, but not other runs.
func (sb *Sandbox) SpawnedProcesses() []*resultjson.ProcessInfo { return describe(sb, (*Process).Info) }

// Info describes the process.
func (p *Process) Info() *resultjson.ProcessInfo {
	select {
	case <-p.ended:
		return new(p.final)
	default:
	}
	info := p.info
	info.LastEventID, _ = p.ring.lastID()
	usage, _ := p.process.Usage() // zero if it has just ended
	info.Usage = resultjson.NewProcessUsage(usage)
	return &info
}

// Signal sends a signal, such as SIGTERM, to the process, or to the process group that it leads.
// SIGKILL ends it with all its descendants.
func (p *Process) Signal(name string, group bool) error {
	s := unix.SignalNum(name)
	if s == 0 {
		return Refuse(Invalid, "signal %q: want a name such as SIGTERM", name)
	}
	send := p.process.Signal
	if group {
		send = p.process.SignalGroup
	}
	return ended(send(s))
}

// Resize changes the size of the process's terminal.
func (p *Process) Resize(rows, cols uint16) error {
	err := p.process.Resize(rows, cols)
	if errors.Is(err, runtime.ErrNoTerminal) {
		return &Error{Code: Conflict, Err: runtime.ErrNoTerminal}
	}
	return ended(err)
}

// errEnded is the error of a request that needs an active process.
var errEnded = Refuse(Closed, "the process has ended")

// ended converts an error of an operation on a process.
func ended(err error) error {
	if isAny(err, os.ErrProcessDone, unix.ESRCH) {
		return errEnded
	}
	return err
}

// Wait waits until the process has ended or ctx ends, and describes it.
func (p *Process) Wait(ctx context.Context) *resultjson.ProcessInfo {
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	return p.Info()
}

// Delete kills the process if it is active, waits for its end, and forgets it.
func (p *Process) Delete(ctx context.Context) error {
	p.process.Kill()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.forget()
	return nil
}

// Attend connects the process with a client until it has ended, and forgets it. The end of ctx kills the
// process.
func (p *Process) Attend(ctx context.Context, s Streams) (*resultjson.ProcessInfo, error) {
	defer context.AfterFunc(ctx, p.process.Kill)()
	err := s.To(Event{Name: EventStarted, Data: p.Info()})
	if err == nil {
		err = p.Follow(context.WithoutCancel(ctx), 0, s)
	}
	if err != nil { // the client does not want the rest
		p.process.Kill()
	}
	<-p.ended
	audit.Of(ctx).SetResult(p.exit)
	p.forget()
	return p.Info(), context.Cause(ctx)
}

// Follow passes the process's events after a number to a client, and the client's input to the process, until the last
// event, the client's error or the end of ctx. The event must exist. A slow client slows down the process only if that waits for readers.
func (p *Process) Follow(ctx context.Context, after uint64, s Streams) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.Stdin != nil {
		go p.stdin.copyFrom(ctx, s.Stdin) // which the caller closes afterwards
	}
	go func() {
		for {
			select {
			case signal := <-s.Signals:
				_ = p.process.Signal(signal) // fails if the process has ended
			case <-ctx.Done():
				return
			}
		}
	}()
	p.ring.confirm(after)
	for {
		events, changed := p.ring.read(after)
		for _, e := range events {
			if err := s.To(e); err != nil {
				return fmt.Errorf("%w: %w", context.Canceled, err)
			}
			after = e.ID
			p.ring.confirm(after)
		}
		switch {
		case len(events) > 0:
			continue
		case changed == nil:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
