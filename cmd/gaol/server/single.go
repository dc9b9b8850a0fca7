package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/session"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/jail/kernfile"
	"gaol/runtime/client"
)

// SingleOptions are the options of [ServeSingle].
type SingleOptions struct {
	Store        string
	Cache        string // see service.Options
	Version      string
	Log          *slog.Logger
	CgroupParent string // of jails; empty: the SDK's
}

// ServeSingle serves one connection of a unix socket until its other end is closed, or ctx ends. It
// then ends everything immediately. The peer must be root, and is trusted to be: it may mount any
// folder, and no quota bounds it. There is the API and the session, but no MCP, metrics or audit log.
func ServeSingle(ctx context.Context, c *net.UnixConn, o SingleOptions) error {
	peer, err := tenant.OfConn(c)
	if err != nil {
		return err
	}
	if peer.Peer.UID != 0 {
		return fmt.Errorf("the connection belongs to user %d, and not to root", peer.Peer.UID)
	}
	s := service.New(service.Options{Settings: settings.Trusted(), Store: o.Store, Cache: o.Cache, Log: o.Log, CgroupParent: o.CgroupParent})
	sessions := session.New(s, o.Log)
	return serveConn(ctx, c, &http.Server{
		Handler: asTenant(peer, api.WithPorts(s, newMux(s, sessions, o.Version))), MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(httpLog{o.Log}, "", 0),
	}, func() error {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		err := s.Close(now)
		sessions.Close()
		return err
	})
}

// serveConn serves one connection until its other end is closed or ctx ends, calls end, and closes the
// connection.
func serveConn(ctx context.Context, c *net.UnixConn, h *http.Server, end func() error) error {
	l := newListener()
	l.conns <- &singleConn{c, l.end}
	stop, err := watchHangup(c, l.end)
	if err != nil {
		return errors.Join(err, end())
	}
	defer stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = h.Serve(l) // returns when l is closed
	}()
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	err = end()
	_ = h.Close() // the other end may be closed
	<-served
	return err
}

// asTenant serves requests of one tenant.
func asTenant(t *tenant.Tenant, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), t)))
	})
}

// Local serves h to this process until stop is called. It returns a client of h.
func Local(h http.Handler) (c *client.HTTP, stop func() error) {
	l := newListener()
	s := &http.Server{Handler: h, ReadHeaderTimeout: defaultTimes.header}
	go func() { _ = s.Serve(l) }() // returns when l is closed
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		own, other := net.Pipe()
		select {
		case l.conns <- other:
			return own, nil
		case <-l.ended:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &client.HTTP{URL: "http://gaol", Client: &http.Client{Transport: &http.Transport{DialContext: dial}}}, s.Close
}

// connListener accepts the connections that it receives from this process, until it is closed.
type connListener struct {
	conns chan net.Conn
	ended chan struct{}
	end   func() // closes ended
}

func newListener() *connListener {
	l := &connListener{conns: make(chan net.Conn, 1), ended: make(chan struct{})}
	l.end = sync.OnceFunc(func() { close(l.ended) })
	return l
}

// Accept implements [net.Listener].
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, io.EOF
	}
}

// Close implements [net.Listener].
func (l *connListener) Close() error {
	l.end()
	return nil
}

// Addr implements [net.Listener].
func (l *connListener) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// singleConn calls end when it is closed.
type singleConn struct {
	*net.UnixConn
	end func()
}

// Close implements [net.Conn].
func (c *singleConn) Close() error {
	defer c.end()
	return c.UnixConn.Close()
}

// watchHangup calls end when the other end of a connection is closed, even if nothing reads from it
// because of an unread request body. The caller calls stop, which ends the connection.
func watchHangup(c *net.UnixConn, end func()) (stop func(), err error) {
	own, err := kernfile.Duplicate(c) // the descriptor of c may be closed, and its number used again
	if err != nil {
		return nil, err
	}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for err := error(unix.EINTR); err == unix.EINTR; {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(own)}}, -1) // hang-ups are always reported
		}
		end()
	}()
	return func() {
		_ = unix.Shutdown(own, unix.SHUT_RDWR) // which is a hang-up
		<-watching
		_ = unix.Close(own)
	}, nil
}
