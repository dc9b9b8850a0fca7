package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/internal/work"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Process is a spawned process with all its descendants, as [runtime.Process] is. It ends with
// its sandbox and with the connection.
type Process struct {
	// Stdin is the process's standard input. A Write blocks while the process does not read.
	Stdin io.WriteCloser

	// Stdout and Stderr are the process's output. If the caller does not read, the process
	// blocks.
	Stdout, Stderr io.Reader

	sandbox *Sandbox
	request *request
	id      string
	pid     int
	done    chan struct{}
	result  *runtime.Result
	err     error
}

// Spawn starts a program of the image, as [runtime.NodeRuntime.Spawn] does. The default of Timeout is
// the longest that the server allows.
func (sb *Sandbox) Spawn(ctx context.Context, name string, args []string, o runtime.SpawnOptions) (*Process, error) {
	if len(o.Args) > 0 {
		return nil, wrap("spawn", &runtime.OptionError{Option: "Args", Err: errors.New("Spawn has them as a parameter")})
	}
	o.Args = args
	return sb.spawn(ctx, requestjson.ProcessRequest{Command: name}, o)
}

// SpawnCode starts a Node program, as [runtime.NodeRuntime.SpawnCode] does.
func (sb *Sandbox) SpawnCode(ctx context.Context, code string, o runtime.SpawnOptions) (*Process, error) {
	return sb.spawn(ctx, requestjson.ProcessRequest{Code: code, Name: o.Name, Format: o.Format.String()}, o)
}

func (sb *Sandbox) spawn(ctx context.Context, p requestjson.ProcessRequest, o runtime.SpawnOptions) (*Process, error) {
	p.Permissions, p.Env, p.Cwd = o.Permissions, o.Env, o.Cwd
	p.Args, p.TimeoutMs = o.Args, milliseconds(o.Timeout)
	p.Terminal = o.Terminal
	stdout, stderr := session.NewBuffer(), session.NewBuffer()
	r, info, end, err := open[resultjson.ProcessInfo](ctx, sb.c, message{
		Request: session.Request{Method: "spawn", Stdin: true}, doing: "spawn", in: requestjson.SpawnIn{InSandbox: sb.in(), ProcessRequest: p},
		buffers: map[session.Kind]*session.Buffer{session.KindStdout: stdout, session.KindStderr: stderr},
	})
	if err != nil {
		return nil, err
	}
	stdin, typed := io.Pipe()
	proc := &Process{
		Stdin: typed, Stdout: stdout, Stderr: stderr,
		sandbox: sb, request: r, id: info.ID, pid: info.PID, done: make(chan struct{}),
	}
	sb.c.work.Go(func() {
		defer end()
		defer close(proc.done)
		running, ended := context.WithCancel(sb.c.ctx)
		defer ended()
		go func() { _ = r.feed(running, stdin) }() // fails if the process has ended
		info, err := outcome[resultjson.ProcessInfo](r)
		if err == nil && info.Result == nil {
			err = errors.New(info.Failure)
		}
		proc.result, proc.err = info.Result, wrap("wait", err)
		_ = stdin.Close() // which ends feed, and writes to Stdin
		stdout.Close(nil)
		stderr.Close(nil)
	})
	return proc, nil
}

// outcome waits for the end of what open has started, which it describes.
func outcome[R any](r *request) (info R, err error) {
	text, err := r.wait(r.c.ctx, func(session.Frame) (done bool) { return false })
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	return info, err
}

// PID returns the process's ID, as the guest sees it.
func (p *Process) PID() int { return p.pid }

// Done returns a channel that is closed when nothing is left of the process.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns the result of the process, without output. If ctx ends first, the
// process continues.
func (p *Process) Wait(ctx context.Context) (*runtime.Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, wrap("wait", work.ContextError(ctx))
	}
}

// Kill ends the process and its descendants. It does not wait.
func (p *Process) Kill() {
	select {
	case <-p.done:
	default:
		p.request.cancel()
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) error { return p.signal(s, false) }

// SignalGroup sends a signal to the process group that the process leads.
func (p *Process) SignalGroup(s syscall.Signal) error { return p.signal(s, true) }

func (p *Process) signal(s syscall.Signal, group bool) error {
	return p.control("signal", "signalProcess", requestjson.SignalIn{InProcess: p.in(), Signal: unix.SignalName(s), Group: group})
}

// in names the process in requests.
func (p *Process) in() requestjson.InProcess {
	return requestjson.InProcess{InSandbox: p.sandbox.in(), Process: p.id}
}

// Resize changes the size of the process's terminal, in characters.
func (p *Process) Resize(rows, cols uint16) error {
	return p.control("resize", "resizeProcess", requestjson.ResizeIn{InProcess: p.in(), Rows: rows, Cols: cols})
}

// control sends a request about the process. The error wraps [os.ErrProcessDone] once it has ended.
func (p *Process) control(doing, method string, in any) error {
	err := p.sandbox.c.do(context.Background(), method, doing, in)
	if isGone(err) {
		return wrap(doing, os.ErrProcessDone)
	}
	return err
}

// isGone reports whether a process or a context has ended.
func isGone(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == "closed" || e.Code == "not_found")
}
