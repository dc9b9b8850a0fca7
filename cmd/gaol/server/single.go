package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/batch"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/session"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/kernfile"
	"gaol/runtime/client"
)

// ServeSingle serves one connection of a unix socket until its other end is closed, or ctx ends. It
// then ends everything immediately. The peer must be root, and is trusted to be: it may mount any
// folder, and no quota bounds it. It serves the API and sessions, without MCP, metrics or an audit log. It uses only
// o.Version and the service options, and ignores o.Settings.
func ServeSingle(ctx context.Context, c *net.UnixConn, o Options) error {
	peer, err := tenant.OfConn(c)
	if err != nil {
		return err
	}
	if peer.Peer.UID != 0 {
		return fmt.Errorf("the connection belongs to user %d, and not to root", peer.Peer.UID)
	}
	l := newListener(ctx)
	defer l.end()
	l.conns <- &singleConn{c, l.end}
	stop, err := watchHangup(c, l.end)
	if err != nil {
		return err
	}
	defer stop()
	o.Settings = settings.Trusted()
	s := service.New(o.Options)
	s.Batch = batch.New(batch.Options{Service: s})
	sessions := session.New(s, nil)
	h := &http.Server{
		Handler: api.WithPorts(s, newMux(s, sessions, o.Version)), MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return tenant.NewContext(context.Background(), peer) },
		ErrorLog:    httpLog(s),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = h.Serve(l) }) // returns when l has ended
	<-l.ctx.Done()
	err = s.Close(l.ctx)
	sessions.Close()
	_ = h.Close() // the other end may be closed
	serving.Wait()
	return err
}

// Local serves h to this process until stop is called. It returns a client of h.
func Local(h http.Handler) (c *client.HTTP, stop func() error) {
	l := newListener(context.Background())
	s := &http.Server{Handler: h, ReadHeaderTimeout: defaultTimes.header}
	go func() { _ = s.Serve(l) }() // returns when l is closed
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		own, other := net.Pipe()
		select {
		case l.conns <- other:
			return own, nil
		case <-l.ctx.Done():
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &client.HTTP{URL: "http://gaol", Client: &http.Client{Transport: &http.Transport{DialContext: dial}}}, s.Close
}

// connListener accepts the connections that it receives from this process, until its context ends.
type connListener struct {
	conns chan net.Conn
	ctx   context.Context
	end   func() // ends ctx
}

func newListener(ctx context.Context) *connListener {
	ctx, end := context.WithCancel(ctx)
	return &connListener{make(chan net.Conn, 1), ctx, end}
}

// Accept implements [net.Listener].
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
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
		_, _ = kernfile.Poll(own, 0, -1) // hang-ups are always reported
		end()
	}()
	return func() {
		_ = unix.Shutdown(own, unix.SHUT_RDWR) // which is a hang-up
		<-watching
		_ = unix.Close(own)
	}, nil
}
