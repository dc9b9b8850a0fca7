package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// httpProxy passes on the HTTP/1 requests of one connection whose host is the target's name.
type httpProxy struct {
	target target
	proxy  *httputil.ReverseProxy

	mu      sync.Mutex
	refused string // why the last refused request was
}

// serveHTTP serves a connection. Upstream is the connection that is open already; if the
// server closes it between two requests, redial opens another. It returns the reason if it
// refused a request.
func serveHTTP(ctx context.Context, guest, upstream net.Conn, t target, redial func(context.Context) (net.Conn, error)) (refused string) {
	transport := newTransport(upstream, redial)
	defer transport.CloseIdleConnections()
	quiet := log.New(io.Discard, "", 0)
	h := &httpProxy{target: t, proxy: &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, t) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      quiet,
	}}
	served := newGuestConn(guest)
	server := &http.Server{
		Handler:        h,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnState:      served.setState,
		MaxHeaderBytes: maxHead,
		ErrorLog:       quiet,
	}
	_ = server.Serve(&oneConnListener{conn: served})
	select {
	case <-served.closed:
	case <-ctx.Done():
	}
	_ = server.Close() // the connection is closed
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// newTransport returns one that uses the connection first, and then dials.
func newTransport(first net.Conn, redial func(context.Context) (net.Conn, error)) *http.Transport {
	conns := make(chan net.Conn, 1)
	conns <- first
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			default:
				return redial(ctx)
			}
		},
		DisableCompression: true,
		MaxConnsPerHost:    1,
		IdleConnTimeout:    time.Minute,
	}
}

// ServeHTTP passes a request on, or refuses it and closes the connection.
func (h *httpProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := wrongRequest(r, h.target); why != "" {
		h.mu.Lock()
		h.refused = why
		h.mu.Unlock()
		w.Header().Set("Connection", "close")
		http.Error(w, "the sandbox's network rules deny this request: "+why, http.StatusForbidden)
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // always possible with HTTP/1
	h.proxy.ServeHTTP(w, r)
}

// wrongRequest returns why a request to t is refused, or "".
func wrongRequest(r *http.Request, t target) string {
	switch {
	case r.Method == http.MethodConnect:
		return "CONNECT"
	case r.ProtoMajor != 1:
		return "HTTP/2 without TLS"
	case r.URL.Scheme != "" && r.URL.Scheme != "http":
		return "scheme " + strconv.Quote(r.URL.Scheme)
	case r.Host == "": // HTTP/1.0: the server gets t's name
		return ""
	}
	host, port := r.Host, "80"
	if h, p, err := net.SplitHostPort(r.Host); err == nil {
		host, port = h, p
	} else if strings.Contains(r.Host, ":") {
		return "host " + strconv.Quote(r.Host)
	}
	if !sameName(host, t.name) || port != fmt.Sprint(t.port) && port != "80" {
		return "host " + strconv.Quote(r.Host)
	}
	return ""
}

// rewrite addresses a request to t. It keeps the header fields that ReverseProxy removes,
// as a guest's own, except an upgrade to HTTP/2.
func rewrite(r *httputil.ProxyRequest, t target) {
	r.Out.URL = &url.URL{Scheme: "http", Host: net.JoinHostPort(t.name, fmt.Sprint(t.port)), Path: r.In.URL.Path, RawPath: r.In.URL.RawPath, RawQuery: r.In.URL.RawQuery, ForceQuery: r.In.URL.ForceQuery}
	if r.Out.Host = r.In.Host; r.Out.Host == "" {
		r.Out.Host = t.name
	}
	for _, key := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Te", "Trailer"} {
		if v, ok := r.In.Header[key]; ok {
			r.Out.Header[key] = v
		}
	}
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header["User-Agent"] = nil // the transport would add its own
	}
	if httpguts.HeaderValuesContainsToken(r.In.Header["Upgrade"], "h2c") {
		for _, key := range []string{"Connection", "Upgrade", "Http2-Settings"} {
			r.Out.Header.Del(key)
		}
	}
}

// oneConnListener accepts one connection.
type oneConnListener struct{ conn net.Conn }

func (l *oneConnListener) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, errNoMore
	}
	c := l.conn
	l.conn = nil
	return c, nil
}

var errNoMore = errors.New("egress: one connection only")

func (l *oneConnListener) Close() error   { return nil }
func (l *oneConnListener) Addr() net.Addr { return &net.TCPAddr{} }

// guestConn is the guest's side of HTTP/1.
type guestConn struct {
	net.Conn
	closed chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	state   http.ConnState
	aborted bool // by a read deadline in the past
}

func newGuestConn(c net.Conn) *guestConn {
	g := &guestConn{Conn: c, closed: make(chan struct{})}
	g.changed.L = &g.mu
	return g
}

// Read does not return io.EOF while a request is served. A guest may shut down its side
// after a request and wait for the response, but http.Server takes the end for a close,
// and cancels the request.
func (g *guestConn) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if err != io.EOF {
		return n, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.state == http.StateActive && !g.aborted {
		g.changed.Wait()
	}
	if g.aborted {
		return n, os.ErrDeadlineExceeded
	}
	return n, err
}

// SetReadDeadline also ends a Read that waits for the end of a request: http.Server sets
// a time in the past before it reads the next one.
func (g *guestConn) SetReadDeadline(t time.Time) error {
	g.update(func() { g.aborted = !t.IsZero() && t.Before(time.Now()) })
	return g.Conn.SetReadDeadline(t)
}

func (g *guestConn) setState(_ net.Conn, s http.ConnState) { g.update(func() { g.state = s }) }

// Close also closes the channel: an upgraded connection no longer belongs to the server.
func (g *guestConn) Close() error {
	g.update(func() {
		if g.state = http.StateClosed; !isClosed(g.closed) {
			close(g.closed)
		}
	})
	return g.Conn.Close()
}

func (g *guestConn) update(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.changed.Broadcast()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
