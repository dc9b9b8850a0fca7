package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/egress/relay"
	"gaol/internal/kernfile"
	"gaol/jail/subprocess"
)

// session is one relay of a server, and the connections that it carries.
type session struct {
	server  *Server
	process *relay.Process
	gone    chan struct{} // closed when the relay has ended
	err     error         // why; valid then

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu   sync.Mutex
	open map[uint32]*connection
}

// spareConnections are accepted beyond the limit, to be refused.
const spareConnections = 64

// restartPause is the time to the next attempt to start a relay.
const restartPause = time.Second

// refusePause is how long a connection is awaited at each listener if no relay can be started.
const refusePause = 5 * time.Millisecond

// ServeTCP serves the guest's connections until the server is closed. The listeners are closed after
// that. The local address of each is where the guest wants to connect to. A relay is started for the first
// one, and another one when that has ended.
//
// Preconditions: they are TCP listeners of this kernel, of which the relay gets descriptors.
func (s *Server) ServeTCP(all ...net.Listener) error {
	s.tasks.Add(1) // Close waits for this loop, too: it starts tasks
	defer s.tasks.Done()
	var listeners []*net.TCPListener
	for _, l := range all {
		listeners = append(listeners, l.(*net.TCPListener))
	}
	ready, err := readinessOf(listeners)
	if err != nil {
		if s.ctx.Err() != nil { // the listeners may be closed
			return nil
		}
		return err
	}
	defer func() { _ = ready.Close() }()
	defer context.AfterFunc(s.ctx, func() { _ = ready.Close() })()
	for {
		if err := ready.Wait(0); err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			return err
		}
		err := s.carry(listeners)
		switch {
		case errors.Is(err, errNotStarted):
			s.refuse(listeners)
		case err != nil:
			select {
			case <-time.After(restartPause):
			case <-s.ctx.Done():
			}
		}
	}
}

var errNotStarted = errors.New("egress: start a relay")

// carry serves connections by one relay. Until the next one, connections wait.
func (s *Server) carry(listeners []*net.TCPListener) error {
	process, err := relay.Start(s.ctx, s.config.Relay, s.config.Connections+spareConnections, listeners)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotStarted, err)
		if s.config.Failed != nil && s.ctx.Err() == nil {
			s.config.Failed(err)
		}
		return err
	}
	n := &session{server: s, process: process, gone: make(chan struct{}), open: map[uint32]*connection{}}
	n.ctx, n.cancel = context.WithCancel(s.ctx)
	return n.run()
}

// refuse resets and reports the connections that come until the next attempt to start a relay.
func (s *Server) refuse(listeners []*net.TCPListener) {
	for until := time.Now().Add(restartPause); time.Now().Before(until) && s.ctx.Err() == nil; {
		for _, l := range listeners {
			_ = l.SetDeadline(time.Now().Add(refusePause)) // it fails if l is closed
			c, err := l.AcceptTCP()
			if err != nil { // no client connects, or this process has too many descriptors, and the connection still waits
				time.Sleep(refusePause)
				continue
			}
			to := relay.AddrPort(c.LocalAddr())
			client := s.config.Identify("tcp", relay.AddrPort(c.RemoteAddr()), to)
			t, _ := s.decide(client.rules, to)
			// Before the guest sees it, because its run may end then.
			client.deny(Event{Operation: "connect", Host: t.name, Address: to, Port: t.port, Rule: -1, Limit: "egressProcess", Outcome: Denied})
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	}
}

func readinessOf(listeners []*net.TCPListener) (*relay.Readiness, error) {
	ready, err := relay.NewReadiness()
	if err != nil {
		return nil, err
	}
	for _, l := range listeners {
		if err := kernfile.Control(l, ready.Add); err != nil {
			return nil, errors.Join(err, ready.Close())
		}
	}
	return ready, nil
}

// run serves the relay until it ends.
func (s *session) run() error {
	defer context.AfterFunc(s.ctx, s.process.Kill)()
	err := s.read()
	if err != nil {
		s.process.Kill()
	}
	time.AfterFunc(restartPause, s.process.Kill) // if it has only closed the socket
	s.err = s.process.Err()
	close(s.gone)
	s.cancel()
	s.tasks.Wait()
	if s.server.ctx.Err() != nil {
		s.err = nil
	}
	return errors.Join(err, s.err, s.process.Close())
}

// read handles the relay's messages. It never waits for anything else.
func (s *session) read() error {
	for {
		m, err := s.process.Receive()
		if errors.Is(err, io.EOF) {
			return nil // the relay has ended
		}
		if err != nil {
			return err
		}
		if err := s.handle(m); err != nil {
			return err
		}
	}
}

// handle returns an error if a relay of ours would not have sent the message.
func (s *session) handle(m relay.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.open[m.ID]
	switch {
	case m.Kind == relay.Opened && c == nil && int(m.ID) < s.server.config.Connections+spareConnections:
		s.start(m)
		return nil
	case m.Kind == relay.Ended && c != nil:
		c.cancel() // a dial
	case m.Kind == relay.Socket && c != nil, m.Kind == relay.Redial && c != nil:
	default:
		relay.CloseAll(m.FDs)
		return fmt.Errorf("egress: unexpected message %d of the relay", m.Kind)
	}
	select {
	case c.messages <- m:
		return nil
	default:
		relay.CloseAll(m.FDs)
		return fmt.Errorf("egress: too many messages %d of the relay", m.Kind)
	}
}

// start serves one connection.
//
// Preconditions: s.mu is held.
func (s *session) start(m relay.Message) {
	s.process.Counters.Reset(m.ID)
	c := &connection{session: s, id: m.ID, began: time.Now(), messages: make(chan relay.Message, maxMessages)}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.address.Store(&m.To)
	s.open[m.ID] = c
	s.tasks.Go(func() {
		defer c.cancel()
		s.serve(c, m.From, m.To)
		s.mu.Lock()
		delete(s.open, m.ID)
		s.mu.Unlock()
		for len(c.messages) > 0 {
			relay.CloseAll((<-c.messages).FDs)
		}
		c.send(relay.Message{Kind: relay.Closed})
	})
}

func (s *session) serve(c *connection, from, to netip.AddrPort) {
	stop, err := s.server.work.acquire(c.ctx)
	if err != nil {
		return // the guest or the relay has ended it
	}
	c.client = s.server.config.Identify("tcp", from, to)
	t, d := s.server.decide(c.client.rules, to)
	stop()
	c.target, c.allowed, c.rule = t, d.Allowed, d.Rule
	if limit := c.client.connect(c); limit != "" {
		c.client.deny(c.limited(limit)) // before the guest sees it, because its run may end then
		return
	}
	if wait := c.client.observe.Wait; wait != nil {
		wait() // until there is room for the connection's event
	}
	c.client.disconnect(c, c.serve())
}

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
			if errors.Is(c.session.err, subprocess.ErrMemory) {
				return c.limited("egressMemory")
			}
			return c.event(Failed)
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
	if err := c.session.process.Send(m); err != nil {
		c.session.process.Kill()
	}
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
