package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/internal/mux"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// process is a process that is being started or runs.
type process struct {
	*Agent
	stream *mux.Stream
	number uint64

	mu      sync.Mutex // of one message and its answer
	answers chan Answer
	ended   context.Context
	opened  []io.Closer // files of the command
	outputs []*output
}

// start starts a process, and reports on it until it ends.
func (a *Agent) start(s *mux.Stream, in *Start) (any, error) {
	p := &process{Agent: a, stream: s, number: in.Process, answers: make(chan Answer)}
	ctx, cancel := context.WithCancel(a.life)
	defer cancel()
	p.ended = ctx
	go func() {
		defer cancel()
		for {
			var answer Answer
			if Read(s, MaxRequest, &answer) != nil {
				return
			}
			select {
			case p.answers <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	c := &in.Command
	c.Args, c.Env = Strings(in.Args), Strings(in.Env)
	var err error
	c.Files, err = p.openFiles(ctx, in.Files)
	defer p.closeFiles()
	if err != nil {
		return nil, err
	}
	p.addCalls(c, in)
	started, err := a.opened().Start(ctx, c)
	p.closeFiles()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.processes[in.Process] = &running{started, p.outputs}
	a.mu.Unlock()
	defer a.forget(func() { delete(a.processes, in.Process) })
	defer context.AfterFunc(ctx, started.Kill)()
	p.mu.Lock()
	err = Write(s, reply(Started{started.GuestPID()}))
	p.mu.Unlock()
	exit, failed := started.Wait()
	usage, _ := started.Usage() // it is the same as Wait's error
	for _, o := range p.outputs {
		o.reader.End() // other processes may hold it open
	}
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = Write(s, Call{Exit: &Exit{exit, usage, Encode(failed)}}) // the session may have ended
	}
	return nil, errReplied
}

// addCalls adds the functions of a command.
func (p *process) addCalls(c *sandbox.Command, in *Start) {
	if in.Denied {
		// It is answered, so that remote knows of it before the process continues.
		c.Denied = func(d policy.Denial) { _, _ = p.call(Call{Denied: &d}) } // the session may have ended
	}
	if in.Connect {
		c.Connect = func(to netip.AddrPort) bool { a, err := p.call(Call{Connect: &to}); return err == nil && a.Allowed }
	}
	if in.OnOwner {
		c.OnOwner = func(owner uint64) { _, _ = p.call(Call{Owner: &owner}) } // otherwise its connections are refused
	}
	if in.OnCommand {
		c.OnCommand = func(name string, call sandbox.CommandCall) error {
			p.Agent.mu.Lock()
			p.lastCall++
			number := p.lastCall
			p.calls[number] = call
			p.Agent.mu.Unlock()
			answer, err := p.call(Call{Command: &CommandCall{name, number}})
			if err == nil {
				err = answer.Error.Decode()
			}
			if err != nil {
				p.forget(func() { delete(p.calls, number) })
			}
			return err
		}
	}
}

// call calls remote.
func (p *process) call(c Call) (Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := Write(p.stream, c); err != nil {
		return Answer{}, err
	}
	select {
	case answer := <-p.answers:
		return answer, nil
	case <-p.ended.Done():
		return Answer{}, context.Cause(p.ended)
	}
}

// closeFiles closes the agent's copies of the command's files.
func (p *process) closeFiles() {
	for _, f := range p.opened {
		_ = f.Close() // nothing was written
	}
	p.opened = nil
}

// openFiles opens the files of the command.
func (p *process) openFiles(ctx context.Context, files []File) ([]io.ReadWriteCloser, error) {
	var list []io.ReadWriteCloser
	for i, f := range files {
		if f.Kind == Terminal {
			t, err := find(p.Agent, p.terminals, Number{f.Terminal})
			if err != nil {
				return nil, err
			}
			p.opened = append(p.opened, t.Guest()) // otherwise the output would not end
			list = append(list, t.Guest())
			continue
		}
		opened, err := p.openFile(ctx, f.Kind, i)
		if err != nil {
			return nil, err
		}
		p.opened = append(p.opened, opened)
		list = append(list, opened)
	}
	return list, nil
}

// awaitFile returns the stream of a file.
func (p *process) awaitFile(ctx context.Context, index int) (*mux.Stream, error) {
	defer context.AfterFunc(ctx, p.wake)()
	p.Agent.mu.Lock()
	defer p.Agent.mu.Unlock()
	for key := (FileOf{p.number, index}); ; p.changed.Wait() {
		if s := p.streams[key]; s != nil {
			delete(p.streams, key)
			return s, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (p *process) openFile(ctx context.Context, kind Kind, index int) (*os.File, error) {
	if kind == Null {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	s, err := p.awaitFile(ctx, index)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Memory:
		data, err := io.ReadAll(io.LimitReader(s, MaxRequest))
		if err := errors.Join(err, s.Close()); err != nil {
			return nil, err
		}
		return kernfile.Seal("program", data)
	case In, Out:
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if kind == In {
			go Pump(w, s, s, w)
			return r, nil
		}
		o := &output{reader: stdio.NewReader(r), stream: s}
		p.outputs = append(p.outputs, o)
		go func() {
			<-s.Stopped()
			o.reader.Close() // the rest is not read
		}()
		go func() {
			o.reader.Pump(o)
			o.reader.Close()
			_ = s.Close() // it returns nil
		}()
		return w, nil
	case Both:
		c, theirs, err := kernfile.SocketPair(unix.SOCK_STREAM)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		go Carry(s, c)
		return theirs, nil
	}
	return nil, errors.Join(fmt.Errorf("agent: file of kind %q", kind), s.Close())
}

// output is the sink of an output of a process.
type output struct {
	reader *stdio.Reader
	stream *mux.Stream
	buffer [mux.MaxData]byte
}

// Buffer implements stdio.Sink. It is so small that the pipe is not enlarged: the stream's window comes on top.
func (o *output) Buffer(int) []byte { return o.buffer[:] }

// Write implements stdio.Sink. After an error the process gets EPIPE.
func (o *output) Write(b []byte) {
	if _, err := o.stream.Write(b); err != nil {
		o.reader.Close()
	}
}

// running is a process that has been started.
type running struct {
	sandbox.Process
	outputs []*output
}

// flush waits until all that the process has written so far was sent.
func (r *running) flush() {
	for _, o := range r.outputs {
		o.reader.Flush()
	}
}
