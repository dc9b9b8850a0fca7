package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	Outcome  Outcome
	From, To netip.AddrPort
	Text     string
	FDs      []int // the receiver owns its copies
}

const (
	headSize = 6
	addrSize = 18
	fixed    = headSize + 2*addrSize
	maxText  = 512
	maxFiles = 200 // less than SCM_MAX_FD
)

func (m *Message) encode() []byte {
	b := make([]byte, 0, fixed+maxText)
	b = append(b, byte(m.Kind), byte(m.Outcome))
	b = binary.BigEndian.AppendUint32(b, m.ID)
	for _, a := range []netip.AddrPort{m.From, m.To} {
		ip := netip.IPv6Unspecified().As16()
		if a.Addr().IsValid() {
			ip = a.Addr().As16()
		}
		b = binary.BigEndian.AppendUint16(append(b, ip[:]...), a.Port())
	}
	return append(b, m.Text[:min(len(m.Text), maxText)]...)
}

func decode(b []byte) (m Message, err error) {
	if len(b) < fixed || len(b) > fixed+maxText {
		return m, fmt.Errorf("relay: message of %d bytes", len(b))
	}
	m.Kind, m.Outcome, m.ID = Kind(b[0]), Outcome(b[1]), binary.BigEndian.Uint32(b[2:])
	for i, a := range []*netip.AddrPort{&m.From, &m.To} {
		at := b[headSize+i*addrSize:][:addrSize]
		*a = netip.AddrPortFrom(netip.AddrFrom16([16]byte(at)).Unmap(), binary.BigEndian.Uint16(at[16:]))
	}
	m.Text = string(b[fixed:])
	return m, nil
}

var errFiles = errors.New("relay: descriptors that do not belong to the message")

// received returns the descriptors of a control message, which are non-blocking. It keeps none if
// there is an error.
func received(oob []byte, flags int) (fds []int, err error) {
	list, err := unix.ParseSocketControlMessage(oob)
	for _, c := range list {
		more, failed := unix.ParseUnixRights(&c)
		fds, err = append(fds, more...), errors.Join(err, failed)
	}
	if flags&unix.MSG_CTRUNC != 0 { // this process has too many
		err = errors.Join(err, unix.EMFILE)
	}
	for _, fd := range fds {
		err = errors.Join(err, unix.SetNonblock(fd, true)) // so that os.NewFile uses the poller
	}
	if err != nil {
		CloseAll(fds)
		return nil, err
	}
	return fds, nil
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
