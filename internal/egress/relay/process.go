package relay

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"time"

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
		log.SetOutput(io.Discard) // net/http logs data that servers send without a request
		host, err := hostConn(conn)
		if err != nil {
			return err
		}
		if err := serve(host, idleTime); !errors.Is(err, io.EOF) { // the host ends a relay by closing the socket
			return err
		}
		return nil
	},
})

// hostConn returns the connection of a socket, with the same descriptor: the filter allows no other one for
// messages. net.FileConn copies a descriptor to the lowest free one.
func hostConn(f *os.File) (*net.UnixConn, error) {
	other, err := kernfile.Duplicate(f)
	if err != nil {
		return nil, err
	}
	temporary := os.NewFile(uintptr(other), "host")
	defer temporary.Close()
	if err := f.Close(); err != nil {
		return nil, err
	}
	c, err := net.FileConn(temporary)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
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
	if err := p.Conn().SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	return send(p.Conn(), m)
}

// Receive returns the next message. The descriptor of a Socket is the caller's; it is missing if this process has
// too many. The error is io.EOF if the relay has ended.
func (p *Process) Receive() (Message, error) {
	m, err := receive(p.Conn(), 1)
	if err == nil && len(m.FDs) > 0 && m.Kind != Socket {
		CloseAll(m.FDs)
		return m, errors.New("relay: descriptors that do not belong to the message")
	}
	return m, err
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
