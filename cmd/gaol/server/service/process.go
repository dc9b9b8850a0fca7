package service

import (
	"cmp"
	"context"
	"errors"
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
	ID string

	sandbox *Sandbox
	process *runtime.Process
	info    resultjson.ProcessInfo // what does not change
	ring    *ring
	stdin   *stdin

	ended   chan struct{} // closed when the following are set
	at      time.Time
	usage   runtime.Usage
	exit    *runtime.Result
	result  *resultjson.Run
	failure string
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
	release, leave, err := sb.start(ctx, "start a process", func() (err error) {
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
	p := newProcess(sb, started, r)
	insert(&sb.longLived, &sb.longLived.processes, p.ID, p)
	go p.follow(release, leave)
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

func newProcess(sb *Sandbox, started *runtime.Process, r requestjson.ProcessRequest) *Process {
	p := &Process{ID: newID("p-"), sandbox: sb, process: started, ring: newRing(r.WhenFull == "wait"), ended: make(chan struct{})}
	p.stdin = newStdin(started)
	p.info = resultjson.ProcessInfo{
		ID: p.ID, PID: started.PID(), Program: cmp.Or(r.Command, r.Name, "code"), Args: []string{},
		Started: time.Now(), Terminal: r.Terminal != nil,
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

// follow moves the process's events to the ring until it has ended. It calls release before clients
// can see the end.
func (p *Process) follow(release, leave func()) {
	defer leave()
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
			release()
			p.finish(exit)
		}
	}
}

// finish records how the process has ended.
func (p *Process) finish(exit runtime.ExitEvent) {
	p.at = time.Now()
	size := p.ring.bytes() + eventSize
	last := Event{Name: EventError}
	if exit.Result != nil {
		p.usage, p.exit = exit.Result.Usage, exit.Result
		p.sandbox.service.metrics.Run(KindProcess, exit.Result.Cause, exit.Result.Duration)
		p.result = resultjson.NewRun(exit.Result)
		size += len(p.result.Value)
		last = Event{Name: EventResult, Data: p.result}
	} else {
		err := p.sandbox.fail("end a process", exit.Err)
		p.failure, last.Data = err.Error(), err
	}
	p.ring.add(last, true)
	p.sandbox.retain(p.ID, size)
	close(p.ended)
}

// Process returns a process of the sandbox.
func (sb *Sandbox) Process(id string) (*Process, error) {
	return find(&sb.longLived, &sb.longLived.processes, "process", id)
}

// SpawnedProcesses describes the processes that the sandbox has, the oldest first. They include
// ended processes that are retained, but not other runs.
func (sb *Sandbox) SpawnedProcesses() []*resultjson.ProcessInfo {
	list := []*resultjson.ProcessInfo{}
	for _, p := range byAge(&sb.longLived, &sb.longLived.processes, func(p *Process) time.Time { return p.info.Started }) {
		list = append(list, p.Info())
	}
	return list
}

// Info describes the process.
func (p *Process) Info() *resultjson.ProcessInfo {
	info := p.info
	info.LastEventID, _ = p.ring.lastID()
	if !p.hasEnded() {
		info.State = resultjson.Running
		usage, _ := p.process.Usage() // zero if it has just ended
		info.Usage = processUsage(usage)
		return &info
	}
	info.State, info.Usage = resultjson.Ended, processUsage(p.usage)
	info.Ended, info.Result, info.Failure = &p.at, p.result, p.failure
	return &info
}

func processUsage(u runtime.Usage) resultjson.ProcessUsage {
	return resultjson.ProcessUsage{Usage: resultjson.NewUsage(u), Memory: u.Memory}
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
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
	return p.done("send a signal", send(s))
}

// Resize changes the size of the process's terminal.
func (p *Process) Resize(rows, cols uint16) error {
	err := p.process.Resize(rows, cols)
	if errors.Is(err, runtime.ErrNoTerminal) {
		return &Error{Code: Conflict, Err: runtime.ErrNoTerminal}
	}
	return p.done("resize a terminal", err)
}

// errEnded is the error of a request that needs an active process.
var errEnded = &Error{Code: Closed, Err: errors.New("the process has ended")}

// done converts an error of an operation on the process.
func (p *Process) done(doing string, err error) error {
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, unix.ESRCH) {
		return errEnded
	}
	return p.sandbox.fail(doing, err)
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
	p.sandbox.service.retained.remove(p.sandbox, p.ID)
	return nil
}

// HasMore reports whether the process has events after a number, or may have some later. A number
// of an event that does not exist yet is an error.
func (p *Process) HasMore(after uint64) (bool, error) {
	last, ended := p.ring.lastID()
	if after > last {
		return false, Refuse(Invalid, "event %d: the last one is %d", after, last)
	}
	return after < last || !ended, nil
}

// Follow passes the process's events after a number to a sink, until the last event, the sink's
// error or the end of ctx. It does not slow down the process unless that waits for readers.
func (p *Process) Follow(ctx context.Context, after uint64, to Sink) error {
	p.ring.confirm(after)
	for {
		events, changed := p.ring.read(after)
		for _, e := range events {
			if err := to(e); err != nil {
				return err
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

// Attend connects the process with a client until it has ended, and forgets it. The end of ctx kills the
// process.
func (p *Process) Attend(ctx context.Context, s Streams) (*resultjson.ProcessInfo, error) {
	defer context.AfterFunc(ctx, p.process.Kill)()
	err := s.To(Event{Name: EventStarted, Data: p.Info()})
	if err == nil {
		err = p.Attach(context.WithoutCancel(ctx), 0, s)
	}
	if err != nil { // the client does not want the rest
		p.process.Kill()
	}
	<-p.ended
	audit.Of(ctx).SetResult(p.exit)
	p.sandbox.service.retained.remove(p.sandbox, p.ID)
	return p.Info(), context.Cause(ctx)
}

// Attach passes the process's events after a number to a client, without the last one, and the client's
// input to the process, until the process or ctx ends. An error is the client's, or the cause of ctx.
func (p *Process) Attach(ctx context.Context, after uint64, s Streams) error {
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
	return p.Follow(ctx, after, func(e Event) error {
		if e.Name == EventResult || e.Name == EventError {
			return nil
		}
		return s.To(e)
	})
}
