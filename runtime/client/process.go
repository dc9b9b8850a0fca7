package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/session"
	"gaol/runtime"
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
	p.Permissions, p.Env, p.Cwd = permissionsOf(o.Permissions), o.Env, o.Cwd
	p.Args, p.TimeoutMs = o.Args, milliseconds(o.Timeout)
	if t := o.Terminal; t != nil {
		p.Terminal = &requestjson.Terminal{Rows: t.Rows, Cols: t.Cols, Term: t.Term}
	}
	in := requestjson.SpawnIn{InSandbox: sb.in(), ProcessRequest: p}
	var info resultjson.ProcessInfo
	r, end, err := sb.c.open(ctx, message{session.Request{Method: "spawn", Stdin: true, Events: true}, in}, &info)
	if err != nil {
		return nil, wrap("spawn", err)
	}
	proc := &Process{sandbox: sb, request: r, id: info.ID, pid: info.PID, done: make(chan struct{})}
	stdout, stderr := r.buffer(session.Stdout), r.buffer(session.Stderr)
	running, ended := context.WithCancel(sb.c.ctx)
	proc.Stdin, proc.Stdout, proc.Stderr = &input{r, running}, stdout, stderr
	sb.c.work.Go(func() {
		defer end()
		defer close(proc.done)
		defer ended()
		proc.attend(stdout, stderr)
	})
	return proc, nil
}

// buffer returns a buffer for a stream of the process.
func (r *request) buffer(s session.Stream) *session.Buffer {
	return session.NewBuffer(func(n uint32) {
		_ = r.c.send(r.c.ctx, session.AppendCredit(nil, r.id, s, n)) // fails if the connection has ended
	})
}

// open sends a request that lasts, and waits for its start, whose data it decodes. The caller calls end.
func (c *Client) open(ctx context.Context, m message, data any) (r *request, end func(), err error) {
	if r, end, err = c.start(ctx, m); err != nil {
		return nil, nil, err
	}
	if err = r.started(ctx, data); err != nil {
		end()
	}
	return r, end, err
}

// started waits for the event of the start, and decodes its data. If ctx ends first, it cancels the request
// and waits for its end.
func (r *request) started(ctx context.Context, data any) error {
	waiting := ctx
	for {
		f, err := r.next(waiting)
		switch {
		case err != nil && (r.c.ctx.Err() != nil || waiting != ctx):
			return r.c.Err()
		case err != nil:
			r.cancel()
			waiting = r.c.ctx
		case f.Kind == session.KindError && waiting != ctx, f.Kind == session.KindResult:
			return context.Cause(ctx)
		case f.Kind == session.KindError:
			return asError(parseError(f.Body))
		case f.Kind == session.KindEvent && waiting == ctx:
			var e session.Event
			if err := json.Unmarshal(f.Body, &e); err != nil || e.Event != "started" {
				return fmt.Errorf("%w: event %q before the start", session.ErrFrame, e.Event)
			}
			return json.Unmarshal(e.Data, data)
		}
	}
}

func asError(e *Error) error {
	if e == nil {
		return fmt.Errorf("%w: an error without a code", session.ErrFrame)
	}
	return e
}

// attend stores the output of the process until it has ended.
func (p *Process) attend(stdout, stderr *session.Buffer) {
	text, err := p.request.collect(map[session.Kind]*session.Buffer{session.KindStdout: stdout, session.KindStderr: stderr}, nil)
	stdout.Close(nil)
	stderr.Close(nil)
	var info resultjson.ProcessInfo
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	switch {
	case err != nil:
	case info.Result != nil:
		p.result = info.Result
	default:
		err = errors.New(info.Failure)
	}
	p.err = wrap("wait", err)
}

// collect stores what arrives on streams until the result. Buffers return credit when they are read. Other frames are
// passed to handle, unless it is nil.
func (r *request) collect(buffers map[session.Kind]*session.Buffer, handle func(session.Frame)) (json.RawMessage, error) {
	return r.wait(r.c.ctx, func(f session.Frame) (buffered bool) {
		b := buffers[f.Kind]
		switch {
		case b == nil && handle != nil:
			handle(f)
		case b != nil:
			if err := b.Add(f.Body); err != nil {
				r.c.drop(err)
			}
		}
		return b != nil
	})
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
		return nil, canceled(ctx, "wait")
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

// passSignals sends signals to the run of the request until ctx ends.
func (r *request) passSignals(ctx context.Context, signals <-chan syscall.Signal) {
	for {
		select {
		case s, ok := <-signals:
			if !ok {
				return
			}
			_ = r.c.send(ctx, session.Append(nil, session.KindSignal, r.id, []byte(unix.SignalName(s)))) // fails if the connection has ended
		case <-ctx.Done():
			return
		}
	}
}

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
	err := p.sandbox.c.do(context.Background(), method, in, nil)
	if e, ok := errors.AsType[*Error](err); ok && (e.Code == "closed" || e.Code == "not_found") {
		err = os.ErrProcessDone
	}
	return wrap(doing, err)
}

// input is the standard input of a process. The context ends with the process.
type input struct {
	r   *request
	ctx context.Context
}

// Write waits until the server has room. After the process's end the error is io.ErrClosedPipe.
func (w *input) Write(data []byte) (n int, err error) {
	if w.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	for n < len(data) {
		piece := data[n:min(len(data), n+session.MaxChunk)]
		if w.r.write(w.ctx, piece) != nil {
			return n, io.ErrClosedPipe
		}
		n += len(piece)
	}
	return n, nil
}

// Close ends the input.
func (w *input) Close() error {
	_ = w.r.endInput(w.ctx) // fails if the process has ended
	return nil
}
