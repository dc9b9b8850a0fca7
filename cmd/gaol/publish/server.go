package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	maxConnections = 256 // of one port
	patience       = 10 * time.Second
	drainTime      = 2 * time.Second
)

// Guest is the part of a runtime that a Server uses.
type Guest interface {
	Dial(ctx context.Context, network string, port uint16) (net.Conn, error)
	WaitForListener(ctx context.Context, port uint16) error
}

// Server listens on ports of the host.
type Server struct {
	open, passing context.Context // end when Close begins, and when connections are reset
	close, reset  context.CancelFunc
	listeners     []listener
	work          sync.WaitGroup
}

type listener struct {
	*net.TCPListener
	guest uint16
}

// Listen listens on ports of the host. Connections wait for Serve. The end of ctx resets
// them.
func Listen(ctx context.Context, ports []Port) (*Server, error) {
	s := &Server{}
	s.passing, s.reset = context.WithCancel(ctx)
	s.open, s.close = context.WithCancel(s.passing)
	var config net.ListenConfig
	config.SetMultipathTCP(false) // whose connections cannot be spliced
	for _, p := range ports {
		l, err := config.Listen(ctx, "tcp", p.Host.String())
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("publish %s: %w", p, err)
		}
		s.listeners = append(s.listeners, listener{l.(*net.TCPListener), p.Guest})
	}
	return s, nil
}

// Addresses returns the addresses on which the server listens, in the order of its ports.
func (s *Server) Addresses() (list []net.Addr) {
	for _, l := range s.listeners {
		list = append(list, l.Addr())
	}
	return list
}

// Serve begins to pass connections on to g, until Close.
func (s *Server) Serve(g Guest) {
	for _, l := range s.listeners {
		s.work.Go(func() { s.serve(l, g) })
	}
}

// Close stops listening. The guest has ended: its pending output still reaches clients that
// read it within 2 seconds.
func (s *Server) Close() {
	s.close()
	for _, l := range s.listeners {
		_ = l.Close()
	}
	defer time.AfterFunc(drainTime, s.reset).Stop()
	s.work.Wait()
	s.reset()
}

func (s *Server) serve(l listener, g Guest) {
	places := semaphore.NewWeighted(maxConnections)
	for {
		if places.Acquire(s.open, 1) != nil {
			return
		}
		client, err := l.AcceptTCP()
		if err == nil {
			s.work.Go(func() {
				s.pass(client, g, l.guest)
				places.Release(1)
			})
			continue
		}
		places.Release(1)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select { // the process is out of descriptors
		case <-time.After(100 * time.Millisecond):
		case <-s.open.Done():
		}
	}
}

// pass passes one connection on. It closes it.
func (s *Server) pass(client *net.TCPConn, g Guest, port uint16) {
	server, err := s.dial(g, port)
	if err != nil {
		reset(client)
		return
	}
	defer func() { _, _ = client.Close(), server.Close() }()
	defer context.AfterFunc(s.passing, func() {
		reset(client)
		reset(server)
	})()
	var sending sync.WaitGroup
	sending.Go(func() { pump(server, client) })
	pump(client, server)
	defer context.AfterFunc(s.open, func() { _ = client.SetReadDeadline(time.Unix(1, 0)) })() // fails if it is closed
	sending.Wait()
}

// dial dials the guest's server, and waits for it if it does not listen yet.
func (s *Server) dial(g Guest, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.open, patience)
	defer cancel()
	c, err := g.Dial(ctx, "tcp", port)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return c, err
	}
	if err := g.WaitForListener(ctx, port); err != nil {
		return nil, err
	}
	return g.Dial(ctx, "tcp", port)
}

// pump copies until the end, and then ends the other connection's sending side. If it fails,
// both connections are reset, unless Close has set a deadline.
func pump(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		reset(to)
		reset(from)
	}
}

// reset closes a connection so that the other side gets ECONNRESET.
func reset(c net.Conn) {
	if t, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = t.SetLinger(0) // the connection is closed in any case
	}
	_ = c.Close()
}

// Port is a port of the host that leads to one of the guest.
type Port struct {
	Host  netip.AddrPort // port 0: any that is free
	Guest uint16
}

var errPort = errors.New("want ADDRESS:PORT:PORT, an address and a port of the host and a port of the program, or PORT:PORT for 127.0.0.1; IPv6 in brackets")

// ParsePort parses ADDRESS:PORT:PORT, or PORT:PORT, which means 127.0.0.1. An IPv6 address is in
// brackets.
func ParsePort(s string) (Port, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return Port{}, errPort
	}
	host := s[:i]
	if !strings.Contains(host, ":") {
		host = "127.0.0.1:" + host
	}
	at, err1 := netip.ParseAddrPort(host)
	guest, err2 := strconv.ParseUint(s[i+1:], 10, 16)
	if errors.Join(err1, err2) != nil || guest == 0 {
		return Port{}, errPort
	}
	return Port{at, uint16(guest)}, nil
}

// String returns the text that ParsePort parses.
func (p Port) String() string { return fmt.Sprintf("%s:%d", p.Host, p.Guest) }
