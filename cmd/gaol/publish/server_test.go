package publish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeGuest is a server on a port of this machine.
type fakeGuest struct {
	listens  chan struct{} // closed when it listens; nil: it does from the start
	listener net.Listener
	dials    atomic.Int32
}

func (g *fakeGuest) Dial(ctx context.Context, _ string, port uint16) (net.Conn, error) {
	g.dials.Add(1)
	if port != 3000 {
		return nil, io.ErrNoProgress
	}
	if g.listens != nil {
		select {
		case <-g.listens:
		default:
			return nil, syscall.ECONNREFUSED
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", g.listener.Addr().String())
}

func (g *fakeGuest) WaitForListener(ctx context.Context, _ uint16) error {
	select {
	case <-g.listens:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newGuest returns a guest whose server calls f for each connection.
func newGuest(t *testing.T, f func(*net.TCPConn)) *fakeGuest {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				f(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return &fakeGuest{listener: l}
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

// listen publishes a port of the guest.
func listen(ctx context.Context, t *testing.T, guest uint16) *Server {
	t.Helper()
	s, err := Listen(ctx, []Port{{netip.MustParseAddrPort("127.0.0.1:0"), guest}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect connects to the published port.
func connect(t *testing.T, s *Server) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addresses()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn)
}

// Bytes pass in both directions, and so do the ends.
func TestPass(t *testing.T) {
	s := listen(t.Context(), t, 3000)
	c := connect(t, s) // before it is served
	s.Serve(newGuest(t, echo))
	text := bytes.Repeat([]byte("text"), 1<<18)
	go func() {
		_, _ = c.Write(text)
		_ = c.CloseWrite()
	}()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A connection waits for the guest to listen.
func TestWait(t *testing.T) {
	g := newGuest(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "hello") })
	g.listens = make(chan struct{})
	s := listen(t.Context(), t, 3000)
	s.Serve(g)
	c := connect(t, s)
	for g.dials.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(g.listens)
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// Clients of a guest that cannot be dialed, and clients that wait when the run ends, are reset.
func TestReset(t *testing.T) {
	for name, port := range map[string]uint16{"no server": 1, "it never listens": 3000} {
		t.Run(name, func(t *testing.T) {
			g := newGuest(t, echo)
			g.listens = make(chan struct{})
			s := listen(t.Context(), t, port)
			c := connect(t, s) // before it can be reset
			s.Serve(g)
			for g.dials.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			s.Close()
			if got, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Data that a guest sent before it ended reaches a client that keeps its own side open.
func TestCloseDrains(t *testing.T) {
	text := bytes.Repeat([]byte("text"), 1<<16)
	s := listen(t.Context(), t, 3000)
	sent := make(chan struct{})
	s.Serve(newGuest(t, func(c *net.TCPConn) {
		_, _ = c.Write(text)
		close(sent)
	}))
	c := connect(t, s)
	got := make([]byte, 1, len(text))
	if _, err := io.ReadFull(c, got); err != nil { // Close would cancel a dial
		t.Fatal(err)
	}
	go func() {
		<-sent
		s.Close()
	}()
	rest, err := io.ReadAll(c)
	if got = append(got, rest...); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// The end of the context resets connections immediately, and so does Close those whose guest has
// not ended.
func TestClose(t *testing.T) {
	for _, canceled := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		s := listen(ctx, t, 3000)
		s.Serve(newGuest(t, echo))
		c := connect(t, s)
		_, _ = c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if canceled {
			cancel()
		} else {
			s.Close()
		}
		if n, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("canceled %t: %d bytes, %v", canceled, n, err)
		}
		cancel()
		s.Close() // again
	}
}

// crowd counts connections.
type crowd struct {
	mu        sync.Mutex
	now, most int
}

// change reports whether there are as many as possible for the first time.
func (c *crowd) change(by int) (full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += by
	full = c.now == maxConnections && c.most < c.now
	c.most = max(c.most, c.now)
	return full
}

// More clients than a port may have wait for others.
func TestManyClients(t *testing.T) {
	var now crowd
	full := make(chan struct{})
	s := listen(t.Context(), t, 3000)
	s.Serve(newGuest(t, func(c *net.TCPConn) {
		if now.change(1) {
			close(full)
		}
		<-full
		_, _ = io.WriteString(c, "hello")
		now.change(-1)
	}))
	var clients sync.WaitGroup
	for range maxConnections + 50 {
		c := connect(t, s)
		clients.Go(func() {
			defer c.Close()
			if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	clients.Wait()
	now.mu.Lock()
	defer now.mu.Unlock()
	if now.most != maxConnections {
		t.Errorf("%d connections at once", now.most)
	}
}

func TestListenFails(t *testing.T) {
	s := listen(t.Context(), t, 3000)
	taken := s.Addresses()[0].(*net.TCPAddr).AddrPort()
	_, err := Listen(t.Context(), []Port{{netip.MustParseAddrPort("127.0.0.1:0"), 1}, {taken, 3000}})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}
