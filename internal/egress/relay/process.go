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

// Process is a started relay.
type Process struct {
	*subprocess.Process
	Counters *Counters
}

// Place is where relays run.
type Place struct {
	StateDir, CgroupParent string // as in [subprocess.Spec]
}

// Start starts a relay for at most n connections at a time. It accepts them from listeners, of
// which it gets copies. The caller closes it.
func Start(ctx context.Context, at Place, n int, listeners []*net.TCPListener) (*Process, error) {
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
	process, err := role.Start(ctx, subprocess.Spec{
		StateDir: at.StateDir, CgroupParent: at.CgroupParent,
		Limits: cgroup.Limits{Memory: maxMemory, CPUs: maxCPUs, Pids: maxTasks},
		// The ends of a connection, and copies while they are made; pipes that Go keeps for a while.
		OpenFiles: uint64(3*n + 8*maxSplices + maxFiles + 64),
	})
	if err != nil {
		return nil, errors.Join(err, counters.close())
	}
	p := &Process{process, counters}
	if err := p.Send(Message{Kind: Setup, ID: uint32(n), FDs: fds}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// sendTimeout bounds how long a relay does not read its messages.
const sendTimeout = 10 * time.Second

// Send sends a message to the relay. The descriptors remain the caller's.
func (p *Process) Send(m Message) error {
	var oob []byte
	if len(m.FDs) > 0 {
		oob = unix.UnixRights(m.FDs...)
	}
	if err := p.Conn().SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, _, err := p.Conn().WriteMsgUnix(m.encode(), oob, nil)
	return err
}

// Receive returns the next message. The descriptor of a Socket is the caller's.
func (p *Process) Receive() (Message, error) {
	b, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, oobn, flags, _, err := p.Conn().ReadMsgUnix(b, oob)
	if err != nil {
		return Message{}, err
	}
	fds, lost := received(oob[:oobn], flags)
	m, err := decode(b[:n])
	if err == nil && lost == nil && (len(fds) > 0) != (m.Kind == Socket) {
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
	if e := p.Process.Err(); e.Code != 0 || e.Signal != 0 {
		return e
	}
	return nil
}

// Close ends the relay. Nothing may use Counters afterwards.
func (p *Process) Close() error { return errors.Join(p.Process.Close(), p.Counters.close()) }
