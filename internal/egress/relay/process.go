package relay

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/kernfile"
	"gaol/jail/seccomp"
	"gaol/jail/subprocess"
)

const (
	// idleTime is how long a relay without connections lives.
	idleTime = 30 * time.Second

	// maxMemory bounds a relay with the buffers of its sockets; cgroup v1 accounts these separately,
	// with the same limit.
	maxMemory = 96 << 20

	maxTasks = 64
	maxCPUs  = 2
)

var role = subprocess.Register(subprocess.Role{
	Name: "egress", Calls: seccomp.Egress, HostNetwork: true, Packets: true,
	Serve: func(conn *os.File) error {
		defer goruntime.KeepAlive(conn) // or the garbage collector closes it
		log.SetOutput(io.Discard)       // net/http logs data that servers send without a request
		return ignoreGone(serve(int(conn.Fd()), idleTime))
	},
})

// ignoreGone returns nil if the host has ended the relay, which it does by closing the socket.
func ignoreGone(err error) error {
	if errors.Is(err, errHostGone) {
		return nil
	}
	return err
}

// Process is a started relay, or its half in this process.
type Process struct {
	Counters *Counters
	conn     *net.UnixConn
	process  *subprocess.Process // nil in this process
	done     chan struct{}
}

// Place is where relays run. The zero Place is this process, for tests: nothing confines it.
type Place struct {
	StateDir, CgroupParent string // as in [subprocess.Spec]
}

// Start starts a relay for at most n connections at a time. It accepts them from listeners, of
// which it gets copies. The caller closes it.
func Start(ctx context.Context, at Place, n int, listeners []*net.TCPListener) (*Process, error) {
	p := &Process{}
	counters, fd, err := newCounters(n)
	if err != nil {
		return nil, err
	}
	fds := []int{fd}
	defer func() { CloseAll(fds) }()
	for _, l := range listeners {
		own, err := kernfile.Duplicate(l)
		if err != nil {
			return nil, errors.Join(err, counters.close())
		}
		fds = append(fds, own)
	}
	p.Counters = counters
	if err := p.start(ctx, at, n); err != nil {
		return nil, errors.Join(err, counters.close())
	}
	if err := p.Send(Message{Kind: Setup, ID: uint32(n), FDs: fds}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Process) start(ctx context.Context, at Place, n int) error {
	if at == (Place{}) {
		return p.startHere()
	}
	var err error
	p.process, err = role.Start(ctx, subprocess.Spec{
		StateDir: at.StateDir, CgroupParent: at.CgroupParent,
		Limits: cgroup.Limits{Memory: maxMemory, CPUs: maxCPUs, Pids: maxTasks},
		// The ends of a connection, and copies while they are made; pipes that Go keeps for a while.
		OpenFiles: uint64(3*n + 8*maxSplices + maxFiles + 64),
	})
	if err != nil {
		return err
	}
	p.conn = p.process.Conn()
	return nil
}

func (p *Process) startHere() error {
	conn, other, err := enter.SocketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return err
	}
	p.conn, p.done = conn, make(chan struct{})
	go func() {
		defer close(p.done)
		defer other.Close()
		_ = serve(int(other.Fd()), idleTime) // the host notices the end of the socket
	}()
	return nil
}

// sendTimeout bounds how long a relay does not read its messages.
const sendTimeout = 10 * time.Second

// Send sends a message to the relay. The descriptors remain the caller's.
func (p *Process) Send(m Message) error {
	var oob []byte
	if len(m.FDs) > 0 {
		oob = unix.UnixRights(m.FDs...)
	}
	if err := p.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, _, err := p.conn.WriteMsgUnix(m.encode(), oob, nil)
	return err
}

// Receive returns the next message. Its descriptors are the caller's: one of a Socket, and at most one of
// Opened and Redial.
func (p *Process) Receive() (Message, error) {
	b, oob := make([]byte, fixed+maxText+1), make([]byte, unix.CmsgSpace(4))
	n, oobn, flags, _, err := p.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return Message{}, err
	}
	fds, lost := received(oob[:oobn], flags)
	m, err := decode(b[:n])
	mayHave, must := m.Kind == Socket || m.Kind == Opened || m.Kind == Redial, m.Kind == Socket
	if err == nil && lost == nil && (len(fds) > 0 && !mayHave || len(fds) == 0 && must) {
		err = errFiles
	}
	if err != nil {
		CloseAll(fds)
		return m, err
	}
	m.FDs = fds // none if this process has too many descriptors
	return m, nil
}

// Err waits until the relay has ended and returns why, nil for a regular end.
func (p *Process) Err() error {
	if p.process == nil {
		<-p.done
		return nil
	}
	if e := p.process.Err(); e.Code != 0 || e.Signal != 0 {
		return e
	}
	return nil
}

// Kill ends the relay. Close must still be called.
func (p *Process) Kill() {
	if p.process != nil {
		p.process.Kill()
		return
	}
	_ = p.conn.CloseWrite()
}

// Close ends the relay. Nothing may use Counters afterwards.
func (p *Process) Close() error {
	var err error
	if p.process != nil {
		err = p.process.Close()
	} else {
		err = p.conn.Close()
		<-p.done
	}
	return errors.Join(err, p.Counters.close())
}
