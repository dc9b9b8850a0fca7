package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

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
