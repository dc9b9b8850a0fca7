package relay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// httpProxy passes on the HTTP/1 requests of one connection whose host is the target's name.
type httpProxy struct {
	ctx    context.Context // of the connection
	target target
	guest  *guestConn
	proxy  *httputil.ReverseProxy

	deny func(why string) // reports a refused request
}

// serveHTTP serves a connection. Upstream is the connection that is open already; if the
// server closes it between two requests, redial opens another.
func serveHTTP(ctx context.Context, guest, upstream net.Conn, t target, deny func(why string), redial func() (net.Conn, error)) {
	served := &guestConn{Conn: guest, closed: make(chan struct{})}
	transport := newTransport(&upstreamConn{upstream, served}, func() (net.Conn, error) {
		again, err := redial()
		if err != nil {
			return nil, err
		}
		return &upstreamConn{again, served}, nil
	})
	defer transport.CloseIdleConnections()
	quiet := log.New(io.Discard, "", 0)
	h := &httpProxy{ctx: ctx, target: t, guest: served, deny: deny, proxy: &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, t) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      quiet,
	}}
	server := &http.Server{
		Handler:        h,
		MaxHeaderBytes: maxHead,
		ErrorLog:       quiet,
	}
	_ = server.Serve(&oneConnListener{conn: served})
	select {
	case <-served.closed:
	case <-ctx.Done():
	}
	_ = server.Close() // the connection is closed
}

// requestBuffer holds a piece of a request's body as net/http copies it, 32 KiB, with the length
// before it. With a smaller one, writing each piece takes three system calls.
const requestBuffer = 36 << 10

// idleTimeout is how long the connection to a server is kept after a response, which is Node's own
// default for servers. It takes most of the memory of an idle connection of the guest. The
// guest's side stays open: the next request dials again.
const idleTimeout = 5 * time.Second

// newTransport returns a transport that uses the connection first, and then dials.
func newTransport(first net.Conn, redial func() (net.Conn, error)) *http.Transport {
	conns := make(chan net.Conn, 1)
	conns <- first
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			default:
				return redial()
			}
		},
		DisableCompression:     true,
		MaxConnsPerHost:        1,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHead,
		WriteBufferSize:        requestBuffer,
		ExpectContinueTimeout:  time.Second, // as in curl, for servers that do not know Expect
	}
}

// ServeHTTP passes a request on, or refuses it and closes the connection.
func (h *httpProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := wrongRequest(r, h.target); why != "" {
		h.deny(why) // before the guest sees it, because its run may end then
		w.Header().Set("Connection", "close")
		http.Error(w, "the sandbox's network rules deny this request: "+why, http.StatusForbidden)
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // always possible with HTTP/1
	h.guest.serving.Store(true)
	defer h.guest.serving.Store(false)
	// A guest may shut down its side after a request and wait for the response, but http.Server takes that for the
	// end of the guest, and ends the request.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	defer context.AfterFunc(r.Context(), func() { time.AfterFunc(lingerTimeout, cancel) })()
	h.proxy.ServeHTTP(&unchangedWriter{w}, r.WithContext(ctx))
}

// unchangedWriter passes on responses as the server sends them.
type unchangedWriter struct{ http.ResponseWriter }

func (w *unchangedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *unchangedWriter) WriteHeader(code int) {
	for _, key := range []string{"Date", "Content-Type"} {
		if header := w.Header(); code >= http.StatusOK && header[key] == nil {
			header[key] = nil // net/http adds a missing field, but not a nil one
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

// Hijack returns a connection that begins with what has been read. ReverseProxy reads the
// connection alone, and a guest may send more before the server agrees to an upgrade.
func (w *unchangedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	head, err := rw.Peek(rw.Reader.Buffered())
	return &prefixConn{c, bytes.Clone(head)}, rw, err
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
// as a guest's own, except an upgrade to a protocol that could name another host.
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
	r.Out.Trailer = r.In.Trailer // ReverseProxy's copy stays empty
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header["User-Agent"] = nil // the transport would add its own
	}
	if namesHosts(r.In.Header["Upgrade"]) {
		for _, key := range []string{"Connection", "Upgrade", "Http2-Settings"} {
			r.Out.Header.Del(key)
		}
	}
}

// namesHosts reports whether an upgrade offers HTTP or TLS (RFC 2817).
func namesHosts(upgrade []string) bool {
	offers := strings.ToLower(strings.Join(upgrade, ","))
	return strings.Contains(offers, "h2c") || strings.Contains(offers, "http/") || strings.Contains(offers, "tls/")
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

var (
	errNoMore      = errors.New("relay: one connection only")
	errUnsolicited = errors.New("relay: a response without a request")
)

func (l *oneConnListener) Close() error   { return nil }
func (l *oneConnListener) Addr() net.Addr { return &net.TCPAddr{} }

// guestConn is the guest's side of HTTP/1.
type guestConn struct {
	net.Conn
	serving atomic.Bool // a request
	closing sync.Once
	closed  chan struct{} // an upgraded connection no longer belongs to the server
}

// Close closes the channel, too.
func (g *guestConn) Close() error {
	g.closing.Do(func() { close(g.closed) })
	return g.Conn.Close()
}

// CloseWrite is for upgraded connections.
func (g *guestConn) CloseWrite() error { return closeWrite(g.Conn) }

// upstreamConn is a connection to the server.
type upstreamConn struct {
	net.Conn
	guest *guestConn
}

// Read fails if the server sends something between two requests: net/http would log it.
func (c *upstreamConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.guest.serving.Load() {
		return 0, errUnsolicited
	}
	return n, err
}

// CloseWrite is for upgraded connections.
func (c *upstreamConn) CloseWrite() error { return closeWrite(c.Conn) }
