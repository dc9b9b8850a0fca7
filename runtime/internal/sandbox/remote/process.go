package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/mux"
	"gaol/jail/kernel"
	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
)

// process is a process of the sandbox.
type process struct {
	sandbox *Sandbox
	stream  *mux.Stream
	number  uint64
	pid     int
	command *sandbox.Command
	done    chan struct{}
	kill    sync.Once
	files   []*mux.Stream
	outputs []*output

	exit  sandbox.Exit // after done, as the following
	usage sandbox.Usage
	err   error
}

// Start implements sandbox.Sandbox.
func (s *Sandbox) Start(ctx context.Context, c *sandbox.Command) (_ sandbox.Process, err error) {
	p := &process{sandbox: s, number: s.last.Add(1), command: c, done: make(chan struct{})}
	in := agent.Start{
		Process: p.number, Command: *c, Args: agent.Texts(c.Args), Env: agent.Texts(c.Env),
		Denied: c.Denied != nil, Connect: c.Connect != nil, OnOwner: c.OnOwner != nil, OnCommand: c.OnCommand != nil,
	}
	in.Command.Args, in.Command.Env = nil, nil
	defer func() {
		if err != nil {
			for _, stream := range p.files {
				stream.Reset()
			}
		}
	}()
	for i, f := range c.Files {
		described, err := p.sendFile(i, f)
		if err != nil {
			return nil, err
		}
		in.Files = append(in.Files, described)
	}
	stream, err := s.send("start", in)
	if err != nil {
		return nil, err
	}
	p.stream = stream
	stop := context.AfterFunc(ctx, stream.Reset)
	pid, err := p.awaitStart()
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		stream.Reset()
		return nil, err
	}
	p.pid = pid
	go p.follow()
	return p, nil
}

// message is a message of the agent about a process: a call or, among them, the reply to start.
type message struct {
	agent.Call
	agent.Reply
}

// awaitStart answers calls until the process has started.
func (p *process) awaitStart() (pid int, err error) {
	for {
		var m message
		if err := agent.Read(p.stream, agent.MaxCall, &m); err != nil {
			return 0, closed(err)
		}
		switch {
		case m.Error != nil:
			return 0, m.Error.Decode()
		case m.Out != nil:
			var started agent.Started
			err := json.Unmarshal(m.Out, &started)
			return started.PID, err
		default:
			if err := p.answer(&m.Call); err != nil {
				return 0, err
			}
		}
	}
}

// follow answers calls until the process has ended.
func (p *process) follow() {
	defer close(p.done)
	defer func() { _ = p.stream.Close() }() // the session may have ended
	for {
		var c agent.Call
		err := agent.Read(p.stream, agent.MaxCall, &c)
		if err == nil && c.Exit != nil {
			p.exit, p.usage, p.err = possible(c.Exit.Exit), atLeastZero(c.Exit.Usage), c.Exit.Error.Decode()
			time.AfterFunc(outputTime, p.endOutputs)
			return
		}
		if err == nil {
			err = p.answer(&c)
		}
		if err != nil {
			if p.exit.Signal = syscall.SIGKILL; !p.sandbox.closing.Load() {
				p.err = closed(err)
			}
			return
		}
	}
}

// possible returns an exit as the kernel reports it.
func possible(e sandbox.Exit) sandbox.Exit {
	if e.Signal < 0 || e.Signal > maxSignal || e.Code < 0 || e.Code > 255 {
		e.Code, e.Signal = 0, syscall.SIGKILL
	}
	e.Usage = atLeastZero(e.Usage)
	return e
}

// maxSignal is the largest number of a signal.
const maxSignal = 64

// atLeastZero returns a usage without negative numbers.
func atLeastZero(u sandbox.Usage) sandbox.Usage {
	return sandbox.Usage{
		CPU: max(0, u.CPU), Memory: max(0, u.Memory), PeakMemory: max(0, u.PeakMemory), PeakPids: max(0, u.PeakPids),
		OOMKills: max(0, u.OOMKills), PidsRefused: max(0, u.PidsRefused), FileMemory: max(0, u.FileMemory),
	}
}

// outputTime is how long the agent may take to send the rest of the output of a process that has ended.
const outputTime = 10 * time.Second

// endOutputs ends the outputs.
func (p *process) endOutputs() {
	for _, o := range p.outputs {
		o.stream.Reset()
	}
}

// output is an output of a process.
type output struct {
	stream *mux.Stream
	own    *os.File

	mu    sync.Mutex
	moved sync.Cond
	bytes int64
	ended bool
}

func newOutput(stream *mux.Stream, own *os.File) *output {
	o := &output{stream: stream, own: own}
	o.moved.L = &o.mu
	return o
}

// pump copies bytes until either end has ended, and closes both.
func (o *output) pump() {
	agent.Pump(o, o.stream, o.own, o.stream)
	o.stop()
}

// stop ends await.
func (o *output) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.moved.Broadcast()
}

// Write implements [io.Writer].
func (o *output) Write(b []byte) (int, error) {
	n, err := o.own.Write(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += int64(n)
	o.moved.Broadcast()
	return n, err
}

// await waits until so many bytes have been copied, or the output has ended.
func (o *output) await(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes < bytes && !o.ended {
		o.moved.Wait()
	}
}

// Flush implements sandbox.Flusher.
func (p *process) Flush() {
	_ = p.sandbox.do("flush", agent.Number{Number: p.number}) // the process or the sandbox may have ended
	for _, o := range p.outputs {
		o.await(o.stream.Received())
	}
}

// answer answers a call.
func (p *process) answer(c *agent.Call) error {
	switch {
	case c.Denied != nil && p.command.Denied != nil:
		p.command.Denied(*c.Denied)
		return agent.Write(p.stream, agent.Answer{})
	case c.Connect != nil && p.command.Connect != nil:
		return agent.Write(p.stream, agent.Answer{Allowed: p.command.Connect(*c.Connect)})
	case c.Owner != nil && p.command.OnOwner != nil:
		p.command.OnOwner(*c.Owner)
		return agent.Write(p.stream, agent.Answer{})
	case c.Command != nil && p.command.OnCommand != nil:
		call := &commandCall{sandbox: p.sandbox, Number: agent.Number{Number: c.Command.Call}}
		call.open, call.close = context.WithCancelCause(context.Background())
		err := p.command.OnCommand(c.Command.Name, call)
		if err != nil {
			call.close(net.ErrClosed)
		}
		return agent.Write(p.stream, agent.Answer{Error: agent.Encode(err)})
	}
	return errors.New("remote: a call that was not asked for")
}

// sendFile describes a file of the command, and begins to carry its bytes.
func (p *process) sendFile(index int, f io.ReadWriteCloser) (agent.File, error) {
	if t, ok := f.(guestEnd); ok {
		return agent.File{Kind: agent.Terminal, Terminal: t.number}, nil
	}
	file, ok := f.(*os.File)
	if !ok {
		return agent.File{}, fmt.Errorf("remote: a file of type %T", f)
	}
	own, kind, err := duplicate(file)
	if err != nil || kind == agent.Null {
		return agent.File{Kind: kind}, err
	}
	stream, err := p.sandbox.send("file", agent.FileOf{Process: p.number, Index: index})
	if err != nil {
		return agent.File{}, errors.Join(err, own.Close())
	}
	p.files = append(p.files, stream)
	switch kind {
	case agent.Out:
		o := newOutput(stream, own)
		p.outputs = append(p.outputs, o)
		go closeWith(own, stream)
		go o.pump()
	case agent.Both:
		c, err := net.FileConn(own)
		if err = errors.Join(err, own.Close()); err != nil {
			stream.Reset()
			return agent.File{}, err
		}
		go agent.Carry(stream, c)
	case agent.Memory:
		go upload(stream, io.NewSectionReader(own, 0, maxMemory), own)
	default:
		go upload(stream, own, own)
	}
	return agent.File{Kind: kind}, nil
}

// maxMemory bounds the bytes of a file in memory.
const maxMemory = agent.MaxRequest

// duplicate returns a copy of a file that the caller closes, and its kind.
func duplicate(f *os.File) (own *os.File, kind agent.Kind, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, "", err
	}
	var info unix.Stat_t
	fd, flags := -1, 0
	failed := conn.Control(func(n uintptr) {
		if err = unix.Fstat(int(n), &info); err == nil {
			flags, err = unix.FcntlInt(n, unix.F_GETFL, 0)
		}
		if err == nil {
			fd, err = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0)
		}
	})
	if err = errors.Join(failed, err); err != nil {
		return nil, "", err
	}
	switch access := flags & unix.O_ACCMODE; info.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		kind = agent.In
		if access == unix.O_WRONLY {
			kind = agent.Out
		}
	case unix.S_IFSOCK:
		kind = agent.Both
	case unix.S_IFREG:
		kind = agent.Memory
	default:
		return nil, agent.Null, unix.Close(fd)
	}
	if kind != agent.Memory {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, "", errors.Join(err, unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), f.Name()), kind, nil
}

// closeWith closes the stream of an output when its reader has closed the pipe, so that the guest's next write fails.
func closeWith(own *os.File, stream *mux.Stream) {
	conn, err := own.SyscallConn()
	if err != nil {
		return
	}
	closed := false
	_ = conn.Read(func(fd uintptr) bool { // it ends with own
		fds := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor
		_, err := unix.Poll(fds, 0)
		closed = err == nil && fds[0].Revents&unix.POLLERR != 0
		return closed
	})
	if closed {
		_ = stream.Close() // nothing was written
	}
}

// upload sends bytes, and closes the stream when the agent has taken them.
func upload(stream *mux.Stream, from io.Reader, own io.Closer) {
	_, _ = io.Copy(stream, from)
	_, _ = own.Close(), stream.CloseWrite() // the process may have ended
	<-stream.Stopped()
	_ = stream.Close()
}

// GuestPID implements sandbox.Process.
func (p *process) GuestPID() int { return p.pid }

// Signal implements sandbox.Process.
func (p *process) Signal(signal syscall.Signal, group bool) error {
	err := p.sandbox.do("signal", agent.Signal{Number: agent.Number{Number: p.number}, Signal: signal, Group: group})
	if errors.Is(err, sandbox.ErrClosed) {
		return os.ErrProcessDone
	}
	return err
}

// Kill implements sandbox.Process. If the agent does not end the process, the sandbox ends.
func (p *process) Kill() {
	p.kill.Do(func() {
		late := time.AfterFunc(kernel.Timeout(killTime), p.sandbox.fail)
		go func() {
			<-p.done
			late.Stop()
		}()
	})
	go func() { _ = p.sandbox.do("kill", agent.Number{Number: p.number}) }() // it may have ended
}

// killTime is how long an agent on a busy machine may take to end a process.
var killTime = time.Minute

// Done implements sandbox.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Wait implements sandbox.Process.
func (p *process) Wait() (sandbox.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Usage implements sandbox.Process.
func (p *process) Usage() (sandbox.Usage, error) {
	select {
	case <-p.done:
		return p.usage, nil
	default:
	}
	usage, err := soon[sandbox.Usage](p.sandbox, "usage", agent.Number{Number: p.number})
	if errors.Is(err, sandbox.ErrClosed) {
		select {
		case <-p.done: // the agent has sent it before
			return p.usage, nil
		case <-time.After(kernel.Timeout(answerTime)):
		}
	}
	return atLeastZero(usage), err
}
