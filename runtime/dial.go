package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gaol/policy"
	"gaol/runtime/internal/sandbox"
)

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// localhost lists the addresses that Dial tries, by network.
var localhost = map[string][]netip.Addr{"tcp": {loopback4, loopback6}, "tcp4": {loopback4}, "tcp6": {loopback6}}

var errDied = errors.New("the sandbox has died: its first process was killed")

// Dial connects to a TCP server of the guest that listens on localhost or on all addresses.
// network is tcp4 for 127.0.0.1, tcp6 for [::1], or tcp, which tries both in this order. To
// the server the client's address is on localhost, too. Nothing else can be dialed: not the
// host, and no other runtime.
//
// The runtime's Permissions must allow the guest to listen on the port, or the error wraps
// fs.ErrPermission. The host needs no other permission. If nothing listens, the error wraps
// ECONNREFUSED: see [NodeRuntime.WaitForListener]. Dial waits for the end of ctx if the guest
// listens and accepts nothing, or if the run's permissions deny localhost.
//
// The connection also implements CloseWrite, as *net.TCPConn does. The kernel holds at most 256 KiB
// that the guest sends and the caller does not read, less if many connections are open. The caller
// closes the connection; Close of the runtime resets open connections.
func (rt *NodeRuntime) Dial(ctx context.Context, network string, port uint16) (_ net.Conn, err error) {
	defer wrap(&err, "dial")
	addresses, ok := localhost[network]
	if !ok {
		return nil, net.UnknownNetworkError(network)
	}
	ctx, done, err := rt.reachServer(ctx, port)
	if err != nil {
		return nil, err
	}
	defer done()
	c, buffer := rt.dialed.reserve()
	for _, a := range addresses {
		var tcp sandbox.Conn
		if tcp, err = rt.sandbox.Dial(ctx, netip.AddrPortFrom(a, port), buffer); err == nil {
			return c.open(tcp)
		}
		if ctx.Err() != nil || !isNotListening(err) {
			break
		}
	}
	c.forget()
	return nil, rt.orEnded(fmt.Errorf("localhost:%d: %w", port, err))
}

// orEnded returns err, or the reason if err is not nil and the sandbox is being closed or has died.
func (rt *NodeRuntime) orEnded(err error) error {
	switch {
	case err == nil:
		return nil
	case rt.alive.Err() != nil: // the guest's listeners end with it, so a dial can be refused
		return ErrClosed
	case errors.Is(err, syscall.ESRCH) || !rt.sandbox.Alive(): // its first process ends, or has ended
		return errDied
	}
	return err
}

// isNotListening reports whether err means that the address has no listener.
func isNotListening(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// Listeners returns the TCP addresses in the sandbox on which guests listen, in order. At
// most 1,024 are returned. Dial reaches those on localhost and on all addresses.
func (rt *NodeRuntime) Listeners(ctx context.Context) (_ []netip.AddrPort, err error) {
	defer wrap(&err, "listeners")
	if !rt.opts.plan.Net.Inet {
		return nil, nil
	}
	_, done, err := rt.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := rt.sandbox.Listeners(0)
	return list, rt.orEnded(err)
}

// The pauses of WaitForListener.
const (
	firstLook = time.Millisecond
	lastLook  = 32 * time.Millisecond
)

// WaitForListener waits until a guest listens on a port so that Dial can connect. It makes no
// connection: it looks at the list of sockets, after a millisecond first, and then up to
// every 32 ms. The error is ctx's error, ErrClosed, or reports that the sandbox has died or that
// no guest may listen on the port, see [NodeRuntime.Dial].
func (rt *NodeRuntime) WaitForListener(ctx context.Context, port uint16) (err error) {
	defer wrap(&err, "wait for listener")
	ctx, done, err := rt.reachServer(ctx, port)
	if err != nil {
		return err
	}
	defer done()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if list, err := rt.sandbox.Listeners(port); err != nil || slices.ContainsFunc(list, canDial) {
			return rt.orEnded(err)
		}
		if !rt.sandbox.Alive() {
			return errDied
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// canDial reports whether Dial reaches a socket that listens on an address.
func canDial(a netip.AddrPort) bool {
	return a.Addr().IsUnspecified() || a.Addr() == loopback4 || a.Addr() == loopback6
}

// reachServer checks that a port may be dialed and begins a call. The caller must call done. The context ends when Close begins.
func (rt *NodeRuntime) reachServer(ctx context.Context, port uint16) (_ context.Context, done func(), err error) {
	if !rt.opts.Permissions.Decide(policy.Network, "listen", fmt.Sprintf("tcp://localhost:%d", port)).Allowed {
		return nil, nil, fmt.Errorf("network permissions deny listening on localhost:%d: %w", port, fs.ErrPermission)
	}
	if slices.Contains(rt.opts.hostPorts, port) {
		return nil, nil, fmt.Errorf("localhost:%d is a port of the host by HostPorts: %w", port, fs.ErrPermission)
	}
	return rt.beginCall(ctx)
}

// beginCall begins a use of the sandbox, for which Close waits. The caller must call done. The context ends
// when Close begins.
func (rt *NodeRuntime) beginCall(ctx context.Context) (_ context.Context, done func(), err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if !rt.begin() {
		return nil, nil, ErrClosed
	}
	ctx, cancel := until(ctx, rt.alive, ErrClosed)
	return ctx, func() { cancel(nil); rt.calls.Done() }, nil
}

// dialed tracks the host's connections to a runtime's guests. The zero value is ready.
type dialed struct {
	mu          sync.Mutex
	closed      bool
	connections map[*guestConn]struct{} // open or being dialed; nil before the first
}

// Buffers of the host's connections to guests are charged to no sandbox. A few connections have large ones;
// a thousand that are full in one direction hold some 20 MiB, because the kernel doubles the size.
const (
	minBuffer    = 4 << 10
	maxBuffer    = 128 << 10
	totalBuffers = 2 << 20
)

// reserve adds a connection that is being dialed, and returns the size of its buffers.
func (d *dialed) reserve() (c *guestConn, buffer int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.connections == nil {
		d.connections = map[*guestConn]struct{}{}
	}
	c = &guestConn{of: d}
	d.connections[c] = struct{}{}
	return c, min(max(totalBuffers/len(d.connections), minBuffer), maxBuffer)
}

// close resets all connections. Those that are being dialed are closed by open.
func (d *dialed) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.connections {
		if c.Conn != nil {
			_ = c.SetLinger(0) // data that no guest reads would keep the network namespace
			_ = c.Conn.Close()
		}
	}
	d.connections = nil
}

// guestConn is a connection to a guest's server.
type guestConn struct {
	sandbox.Conn // nil while it is being dialed
	of           *dialed
}

// open makes it an open connection, or closes tcp if the runtime is closed.
func (c *guestConn) open(tcp sandbox.Conn) (net.Conn, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.closed {
		_ = tcp.Close()
		return nil, ErrClosed
	}
	c.Conn = tcp
	return c, nil
}

// forget removes it.
func (c *guestConn) forget() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.connections, c)
}

// Close closes the connection.
func (c *guestConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// ReadFrom implements io.ReaderFrom: as WriteTo, it lets the kernel copy if the connection can.
func (c *guestConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// WriteTo implements io.WriterTo.
func (c *guestConn) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, c.Conn) }

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
