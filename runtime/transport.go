package runtime

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxResponseHeader = 64 << 10

	// http.Transport does not cancel the dial of a canceled request: it leaves it to a later
	// one.
	serverDialTimeout = 10 * time.Second
)

// NewTransport returns a transport for HTTP requests to the guest's servers, by [NodeRuntime.Dial].
// The host of a URL must be localhost, 127.0.0.1 or [::1], so that no redirect leads elsewhere:
//
//	client := http.Client{Transport: rt.NewTransport()}
//	resp, err := client.Get("http://localhost:3000/")
//
// Event streams work, and so do upgrades to WebSocket: the body of a response with status 101
// is an io.ReadWriteCloser, unless the client has a Timeout.
//
// A server is hostile. It must accept a connection within 10 seconds. Response headers may have
// 64 KiB, including headers of informational responses. Bodies are not decompressed. Each request
// opens a new connection, which takes some 0.3 ms, because http.Transport would log a hostile
// server's data on an idle connection. The context of a request bounds everything else, such as
// a server that never answers, and the caller limits how much of a body it reads.
//
// Each call returns a new transport. The caller may change its fields before using it, for
// example TLSClientConfig.
func (rt *NodeRuntime) NewTransport() *http.Transport {
	return &http.Transport{
		DialContext:            rt.dialHost,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
		DisableKeepAlives:      true,
	}
}

// dialHost dials the guest's server that a URL names.
func (rt *NodeRuntime) dialHost(ctx context.Context, _, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	network := ""
	switch ip, _ := netip.ParseAddr(host); {
	case strings.EqualFold(host, "localhost"):
		network = "tcp"
	case ip == loopback4:
		network = "tcp4"
	case ip == loopback6:
		network = "tcp6"
	default:
		return nil, fmt.Errorf("gaol: dial %s: only localhost, 127.0.0.1 and [::1] are the guest's", address)
	}
	ctx, cancel := context.WithTimeout(ctx, serverDialTimeout)
	defer cancel()
	c, err := rt.Dial(ctx, network, uint16(port))
	if err != nil {
		return nil, err
	}
	return &requestConn{Conn: c, asked: make(chan struct{})}, nil
}

// requestConn reads nothing before a request: http.Transport would print it.
type requestConn struct {
	net.Conn
	once  sync.Once
	asked chan struct{} // closed by the first Write, and by Close
}

func (c *requestConn) Read(p []byte) (int, error) {
	<-c.asked
	return c.Conn.Read(p)
}

func (c *requestConn) Write(p []byte) (int, error) {
	c.ask()
	return c.Conn.Write(p)
}

// Close closes the connection.
func (c *requestConn) Close() error {
	c.ask()
	return c.Conn.Close()
}

func (c *requestConn) ask() { c.once.Do(func() { close(c.asked) }) }
