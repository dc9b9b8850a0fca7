package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gaol/internal/egress/relay"
	"gaol/jail/kernfile"
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
func (s *Server) ServeTCP(listeners ...*net.TCPListener) error {
	s.tasks.Add(1) // Close waits for this loop, too: it starts tasks
	defer s.tasks.Done()
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
	return s.newSession(process).run()
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
			to := addrPort(c.LocalAddr())
			client := s.config.Identify("tcp", addrPort(c.RemoteAddr()), to)
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

func (s *Server) newSession(p *relay.Process) *session {
	n := &session{server: s, process: p, gone: make(chan struct{}), open: map[uint32]*connection{}}
	n.ctx, n.cancel = context.WithCancel(s.ctx)
	return n
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

// outOfMemory reports whether the relay has been killed at its memory limit.
func (s *session) outOfMemory() bool { return errors.Is(s.err, subprocess.ErrMemory) }

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
	c.client.wait()
	c.client.disconnect(c, c.serve())
}

// send sends a message. A relay that does not read is killed.
func (s *session) send(m relay.Message) {
	if err := s.process.Send(m); err != nil {
		s.process.Kill()
	}
}
