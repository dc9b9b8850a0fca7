package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
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
	if e := p.Process.Err(); e.State != 0 {
		return e
	}
	return nil
}

// Close ends the relay. Nothing may use Counters afterwards.
func (p *Process) Close() error { return errors.Join(p.Process.Close(), p.Counters.close()) }

// Kind is the kind of a [Message].
type Kind byte

// The messages of a relay.
const (
	Opened Kind = iota + 1 // a connection of the guest has been accepted: From, To
	Socket                 // answers Need; the socket is in FDs
	Redial                 // another connection to the same server is needed
	Ended                  // a connection is over: Outcome; Text is why it was denied
)

// The messages of a host.
const (
	Setup     Kind = iota + 16 // the first one; FDs are the counters, for ID connections, and the listeners
	Need                       // send a socket to connect, for each address
	Connected                  // it is connected: To is the port of the target, Text its name if the relay must check it
	NoServer                   // Redial failed
	Linger                     // the guest has ended
	Closed                     // the connection is forgotten: reset it, and use the id again
)

// Outcome is how a connection ended, as a relay claims.
type Outcome byte

// The outcomes.
const (
	Regular Outcome = iota // both sides ended it
	Denied                 // the guest sent something that the rules deny
	Failed                 // anything else, such as a reset
)

// Message is a message between a relay and its host about the connection ID.
type Message struct {
	Kind     Kind
	ID       uint32
	Outcome  Outcome        `json:",omitzero"`
	From, To netip.AddrPort `json:",omitzero"`
	Text     string         `json:",omitzero"`
	FDs      []int          `json:"-"` // the receiver owns its copies
}

const (
	maxMessage = 4 << 10 // bytes
	maxText    = 512     // bytes; as JSON six times as many
	maxFiles   = 200     // less than SCM_MAX_FD
)

func (m *Message) encode() []byte {
	bounded := *m
	bounded.Text = m.Text[:min(len(m.Text), maxText)]
	b, err := json.Marshal(bounded)
	if err != nil {
		panic(err) // only numbers, addresses and text
	}
	return b
}

func decode(b []byte) (m Message, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return Message{}, fmt.Errorf("relay: message of %d bytes: %w", len(b), err)
	}
	m.From, m.To = plain(m.From), plain(m.To)
	return m, nil
}

// plain returns an address as the rules have it.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().WithZone("").Unmap(), a.Port())
}

// send sends a message. The descriptors remain the caller's.
func send(c *net.UnixConn, m Message) error {
	var oob []byte
	if len(m.FDs) > 0 {
		oob = unix.UnixRights(m.FDs...)
	}
	_, _, err := c.WriteMsgUnix(m.encode(), oob, nil)
	return err
}

// receive returns the next message, with at most some descriptors, which are the caller's. The error is io.EOF if
// the other process has closed its socket.
func receive(c *net.UnixConn, files int) (Message, error) {
	b, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*files))
	n, oobn, flags, _, err := c.ReadMsgUnix(b, oob)
	if errors.Is(err, unix.ECONNRESET) {
		err = io.EOF
	}
	if err != nil {
		return Message{}, err
	}
	fds := received(oob[:oobn], flags)
	m, err := decode(b[:n])
	if err != nil {
		CloseAll(fds)
	}
	m.FDs = fds
	return m, err
}

// received returns the descriptors of a control message, which are non-blocking. It keeps none if
// there is an error, such as too many descriptors in this process.
func received(oob []byte, flags int) (fds []int) {
	list, err := unix.ParseSocketControlMessage(oob)
	for _, c := range list {
		more, failed := unix.ParseUnixRights(&c)
		fds, err = append(fds, more...), errors.Join(err, failed)
	}
	for _, fd := range fds {
		err = errors.Join(err, unix.SetNonblock(fd, true)) // so that os.NewFile uses the poller
	}
	if err != nil || flags&unix.MSG_CTRUNC != 0 {
		CloseAll(fds)
		return nil
	}
	return fds
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
