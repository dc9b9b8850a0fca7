package egress

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/egress/relay"
	"gaol/jail/kernfile"
)

// connection is one of the guest's.
type connection struct {
	session *session
	id      uint32
	client  *Client
	target  target
	began   time.Time

	allowed bool // by the rules about its name and port
	rule    int

	address  atomic.Pointer[netip.AddrPort] // the guest's destination, then the server's
	messages chan relay.Message             // of the relay
	release  func()                         // its quota; may be nil

	ctx    context.Context
	cancel context.CancelFunc
}

// maxMessages is how many messages a relay has sent about a connection before they are handled.
const maxMessages = 4

// bytes returns how much has been passed on.
func (c *connection) bytes() (in, out int64) { return c.session.process.Counters.Bytes(c.id) }

// event describes the connection so far.
func (c *connection) event(o Outcome) Event {
	e := Event{
		Operation: "connect", Host: c.target.name, Address: *c.address.Load(), Port: c.target.port, Rule: c.rule,
		Duration: time.Since(c.began), Outcome: o,
	}
	e.BytesIn, e.BytesOut = c.bytes()
	return e
}

// limited describes a connection that a limit has refused.
func (c *connection) limited(limit string) Event {
	e := c.event(Denied)
	e.Limit, e.Rule = limit, -1
	return e
}

// serve connects to the server and waits for the end. It returns how that went.
func (c *connection) serve() Event {
	if !c.allowed {
		return c.event(Denied)
	}
	if err := c.dial(); err != nil {
		return c.notDialed(err)
	}
	for {
		select {
		case m := <-c.messages:
			switch {
			case m.Kind == relay.Ended:
				return c.ended(m)
			case m.Kind != relay.Redial:
				relay.CloseAll(m.FDs)
				c.session.process.Kill()
			default:
				if c.dial() != nil {
					c.send(relay.Message{Kind: relay.NoServer})
				}
			}
		case <-c.session.gone:
			return c.lost()
		}
	}
}

// ended returns the event for the outcome that the relay claims.
func (c *connection) ended(m relay.Message) Event {
	switch m.Outcome {
	case relay.Regular:
		return c.event(Closed)
	case relay.Denied:
		e := c.event(Denied)
		e.Why = m.Text
		return e
	}
	return c.event(Failed)
}

// lost returns the event of a connection that has ended with its relay.
func (c *connection) lost() Event {
	if c.session.outOfMemory() {
		return c.limited("egressMemory")
	}
	return c.event(Failed)
}

// notDialed describes a connection whose server could not be reached, or may not.
func (c *connection) notDialed(err error) Event {
	if denied, ok := errors.AsType[*deniedError](err); ok {
		e := c.event(Denied)
		e.Address, e.Rule, e.Resolved = denied.addr, denied.rule, c.target.name != ""
		return e
	}
	if limit := quotaOf(err); limit != "" {
		return c.limited(limit)
	}
	return c.event(outcomeOf(err))
}

func (c *connection) send(m relay.Message) {
	m.ID = c.id
	c.session.send(m)
}

// linger informs the relay that the guest has ended. It does not block.
func (c *connection) linger() { go c.send(relay.Message{Kind: relay.Linger}) }

// dial connects a socket of the relay to the target, if the rules allow its address, and informs
// the relay.
func (c *connection) dial() error {
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout)
	defer cancel()
	release, err := c.client.dials.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	address, err := c.session.server.dial(ctx, c)
	if err != nil {
		return err
	}
	c.address.Store(&address)
	m := relay.Message{Kind: relay.Connected, To: netip.AddrPortFrom(netip.IPv6Unspecified(), c.target.port)}
	if c.client.rules.DistinguishesNames(c.target.port) && !c.target.isHost() {
		m.Text = c.target.name
	}
	c.send(m)
	return nil
}

var errNoSocket = errors.New("egress: no socket of the relay")

// socket asks the relay for a socket. The caller closes its copy.
func (c *connection) socket(ctx context.Context) (*os.File, error) {
	c.send(relay.Message{Kind: relay.Need})
	select {
	case m := <-c.messages:
		if m.Kind == relay.Ended {
			c.messages <- m // for serve; a relay sends nothing after it
			return nil, context.Canceled
		}
		if m.Kind != relay.Socket || len(m.FDs) != 1 {
			relay.CloseAll(m.FDs)
			return nil, errNoSocket
		}
		return os.NewFile(uintptr(m.FDs[0]), "connection to a server"), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// prepareSocket refuses anything but a new TCP socket, and sets the size of its buffers, in bytes;
// the kernel doubles it.
func prepareSocket(f *os.File, size int) error {
	return kernfile.Control(f, func(fd int) error {
		protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		info, noInfo := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		if err := errors.Join(err, noInfo); err != nil {
			return err
		}
		if protocol != unix.IPPROTO_TCP || info.State != unix.BPF_TCP_CLOSE {
			return errNoSocket
		}
		return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size))
	})
}
