package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gaol/internal/mux"
	"gaol/jail/kernel"
	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
)

// Sandbox is a sandbox of an agent.
type Sandbox struct {
	mux       *mux.Session
	missing   []string
	last      atomic.Uint64 // number of a process or a terminal
	end       func() error  // ends the agent; once
	hostPorts []uint16      // of the plan
	closing   atomic.Bool   // Close was called
	slow      float64
}

// Machine is where an agent runs.
type Machine struct {
	Conn  net.Conn                      // to the agent
	Place func(fs.File) (string, error) // returns the path by which the agent opens a file of the host
	End   func() error                  // ends the agent after the connection, and waits for its end
	Slow  float64                       // factor of the time that answers may take; 0: as kernel.Slow
}

// New makes a sandbox on a machine, which ends with it.
func New(ctx context.Context, m *Machine, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	s := &Sandbox{mux: mux.Client(m.Conn), end: sync.OnceValue(m.End), hostPorts: spec.Plan.Net.Host, slow: m.Slow}
	if s.slow == 0 {
		s.slow, _ = kernel.Slow() // 1 after an error, which gaol doctor reports
	}
	create := agent.Create{Spec: *spec}
	for _, mount := range spec.Mounts {
		source, err := m.Place(mount.Source)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		create.Mounts = append(create.Mounts, agent.Mount{Source: source, Mount: mount})
	}
	created, err := call[agent.Created](ctx, s, "create", create)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.missing = created.Missing
	return s, nil
}

// Close implements sandbox.Sandbox.
func (s *Sandbox) Close() error {
	s.closing.Store(true)
	return errors.Join(s.mux.Close(), s.end())
}

// fail ends the sandbox, whose agent ignores a request.
func (s *Sandbox) fail() {
	_ = s.mux.Close() // it returns nil
	_ = s.end()       // Close returns the error
}

// open begins an operation, and reads its reply. The caller closes the stream.
func open[Out any](ctx context.Context, s *Sandbox, op string, in any) (stream *mux.Stream, out Out, err error) {
	if stream, err = s.send(op, in); err != nil {
		return nil, out, err
	}
	if out, err = receive[Out](ctx, stream); err != nil {
		stream.Reset()
		return nil, out, err
	}
	return stream, out, nil
}

// send begins an operation. The caller closes the stream.
func (s *Sandbox) send(op string, in any) (*mux.Stream, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	stream, err := s.mux.Open()
	if err != nil {
		return nil, closed(err)
	}
	if err := agent.Write(stream, agent.Request{Op: op, In: text}); err != nil {
		stream.Reset()
		return nil, closed(err)
	}
	return stream, nil
}

// receive reads the reply of an operation. When ctx ends, the stream is of no use any more.
func receive[Out any](ctx context.Context, stream *mux.Stream) (out Out, err error) {
	stop := context.AfterFunc(ctx, stream.Reset)
	var reply agent.Reply
	if err = agent.Read(stream, agent.MaxReply, &reply); err == nil {
		if err = reply.Error.Decode(); err == nil && len(reply.Out) > 0 {
			err = json.Unmarshal(reply.Out, &out)
		}
	} else {
		err = closed(err)
	}
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// call performs an operation that is over with its reply.
func call[Out any](ctx context.Context, s *Sandbox, op string, in any) (Out, error) {
	stream, out, err := open[Out](ctx, s, op, in)
	if err == nil {
		_ = stream.Close() // the reply has arrived
	}
	return out, err
}

// soon performs an operation that waits for nothing in the guest.
func soon[Out any](s *Sandbox, op string, in any) (Out, error) {
	ctx, cancel := s.late()
	defer cancel()
	return call[Out](ctx, s, op, in)
}

// late returns a context that ends when the agent is late.
func (s *Sandbox) late() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), time.Duration(s.slow*float64(answerTime)), errLate)
}

// answerTime is how long an agent on a busy machine may take to answer.
const answerTime = 30 * time.Second

// errLate is the error of an agent that does not answer, and errAgent of an answer that is not valid.
var (
	errLate  = fmt.Errorf("remote: the agent has not answered: %w", os.ErrDeadlineExceeded)
	errAgent = errors.New("remote: an answer of the agent is not valid")
)

// do performs an operation without an output, as soon.
func (s *Sandbox) do(op string, in any) error {
	_, err := soon[json.RawMessage](s, op, in)
	return err
}

// bytes performs an operation whose output is at most some bytes.
func (s *Sandbox) bytes(ctx context.Context, op string, in any, most int64) ([]byte, error) {
	stream, _, err := open[struct{}](ctx, s, op, in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // nothing was written
	defer context.AfterFunc(ctx, stream.Reset)()
	return readBytes(stream, most)
}

// readBytes reads the bytes of an output.
func readBytes(stream *mux.Stream, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(&agent.ChunkReader{R: stream}, most+1))
	if err != nil {
		return nil, closed(err)
	}
	if int64(len(data)) > most {
		return nil, errAgent
	}
	return data, nil
}

// closed returns the error of an operation on a sandbox that has ended.
func closed(err error) error {
	if errors.Is(err, mux.ErrEnded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.Join(sandbox.ErrClosed, err)
	}
	return err
}

// Missing implements sandbox.Sandbox.
func (s *Sandbox) Missing() []string { return s.missing }

// Alive implements sandbox.Sandbox.
func (s *Sandbox) Alive() bool {
	alive, err := soon[bool](s, "alive", nil)
	return err == nil && alive
}

// Warm implements sandbox.Sandbox.
func (s *Sandbox) Warm(ctx context.Context, park bool) error {
	_, err := call[json.RawMessage](ctx, s, "warm", park)
	return err
}

// SetPaused implements sandbox.Sandbox.
func (s *Sandbox) SetPaused(ctx context.Context, paused bool) error {
	_, err := call[json.RawMessage](ctx, s, "setPaused", paused)
	return err
}

// AddCommand implements sandbox.Sandbox.
func (s *Sandbox) AddCommand(name string) error { return s.do("addCommand", name) }

// Listeners implements sandbox.Sandbox.
func (s *Sandbox) Listeners(port uint16) ([]netip.AddrPort, error) {
	return soon[[]netip.AddrPort](s, "listeners", port)
}

// Resources implements sandbox.Sandbox.
func (s *Sandbox) Resources(ctx context.Context) (sandbox.Resources, error) {
	return call[sandbox.Resources](ctx, s, "resources", nil)
}

// Free implements sandbox.Sandbox.
func (s *Sandbox) Free() (disk, files int64, err error) {
	room, err := soon[agent.Room](s, "free", nil)
	return max(0, room.Disk), max(0, room.Files), err
}

// conn is a connection of the guest.
type conn struct {
	*mux.Stream
	local, remote netip.AddrPort
	reset         atomic.Bool
}

// LocalAddr returns the address in the sandbox.
func (c *conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local) }

// RemoteAddr returns the address of the other side in the sandbox.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// SyscallConn implements [syscall.Conn]: there is no descriptor.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return nil, errors.ErrUnsupported }

// SetLinger implements sandbox.Conn.
func (c *conn) SetLinger(seconds int) error {
	c.reset.Store(seconds == 0)
	return nil
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	if c.reset.Load() {
		c.Reset()
		return nil
	}
	return c.Stream.Close()
}

// Dial implements sandbox.Sandbox.
func (s *Sandbox) Dial(ctx context.Context, to netip.AddrPort, buffer int) (sandbox.Conn, error) {
	stream, _, err := open[json.RawMessage](ctx, s, "dial", agent.Dial{To: to, Buffer: buffer})
	if err != nil {
		return nil, err
	}
	return &conn{Stream: stream, remote: to}, nil
}
