package relay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// httpProxy passes on the HTTP/1 requests of a connection whose host is the target's name.
type httpProxy struct {
	*connection
	proxy *httputil.ReverseProxy
}

// serveHTTP serves a connection whose guest has sent head so far. If the server closes upstream between two requests,
// another connection is dialed.
func (c *connection) serveHTTP(head []byte, upstream net.Conn) {
	ctx, closed := context.WithCancel(c.ctx)
	transport := c.transport(upstream)
	defer transport.CloseIdleConnections()
	server := &http.Server{MaxHeaderBytes: maxHead, Handler: &httpProxy{c, &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, c.target) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}}
	_ = server.Serve(&oneConnListener{&guestConn{prefixConn{c.guest, head}, closed}})
	<-ctx.Done()
	_ = server.Close() // the connection is closed
}

// requestBuffer holds a piece of a request's body as net/http copies it, 32 KiB, with the length
// before it. With a smaller one, writing each piece takes three system calls.
const requestBuffer = 36 << 10

// idleTimeout is how long the connection to a server is kept after a response, which is Node's own
// default for servers. It takes most of the memory of an idle connection of the guest. The
// guest's side stays open: the next request dials again.
const idleTimeout = 5 * time.Second

// transport returns a transport that uses the connection first, and then dials.
func (c *connection) transport(first net.Conn) *http.Transport {
	conns := make(chan net.Conn, 1)
	conns <- first
	close(conns)
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if first, ok := <-conns; ok {
				return &countedConn{first, c}, nil
			}
			again, err := c.dial(Message{Kind: Redial})
			if err != nil {
				return nil, err
			}
			return &countedConn{again, c}, nil
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
	if code == http.StatusContinue { // net/http sends it when the transport reads the body, with or without the server's
		return
	}
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
	r.Out.Host = cmp.Or(r.In.Host, t.name)
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
		return nil, io.EOF
	}
	c := l.conn
	l.conn = nil
	return c, nil
}

func (l *oneConnListener) Close() error   { return nil }
func (l *oneConnListener) Addr() net.Addr { return &net.TCPAddr{} }

// guestConn is the guest's side of HTTP/1. An upgraded connection no longer belongs to the server.
type guestConn struct {
	prefixConn
	closed func() // is called by Close
}

// Close closes the connection.
func (g *guestConn) Close() error {
	g.closed()
	return g.Conn.Close()
}
