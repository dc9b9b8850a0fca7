package network

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"gaol/test/harness"
	"gaol/test/internettest"
)

// internet has servers for HTTP and HTTPS on every address, which record the addresses that are
// reached and the bytes that arrive.
type internet struct {
	*internettest.Names

	mu      sync.Mutex
	reached map[netip.Addr]int // connections
	said    bytes.Buffer       // the guests' data in all of them
}

// serveInternet starts the servers. They end with the test.
func serveInternet(t testing.TB) *internet {
	t.Helper()
	in := &internet{Names: serveNames(t), reached: map[netip.Addr]int{}}
	cert := internettest.Certificate(t, "api.example.com", "www.example.com", "other.test", "xn--bcher-kva.test")
	for _, config := range []*tls.Config{nil, {Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}} {
		port := 80
		if config != nil {
			port = 443
		}
		l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		serveOn(t, &recordingListener{l, in}, in, config)
	}
	return in
}

// ServeHTTP names the request's host and the server's address. It redirects a request with
// the parameter to, and changes the address of a name for one with the parameter rebind.
func (in *internet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if to := query.Get("to"); to != "" {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	if name := query.Get("rebind"); name != "" {
		in.Set(name, netip.MustParseAddr(query.Get("address")))
	}
	local := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	fmt.Fprintf(w, "served %s by %s", r.Host, local)
}

// forget starts a new record.
func (in *internet) forget() {
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.reached)
	in.said.Reset()
}

// checkReached fails the test if other addresses were reached.
func (in *internet) checkReached(t *testing.T, allowed ...netip.Addr) {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	for a, n := range in.reached {
		if !slices.Contains(allowed, a) {
			t.Errorf("%d connections reached %s", n, a)
		}
	}
}

// checkSaid fails the test if a guest's text has reached a server.
func (in *internet) checkSaid(t *testing.T, texts ...string) {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	said := strings.ToLower(in.said.String())
	for _, text := range texts {
		if i := strings.Index(said, text); i >= 0 {
			t.Errorf("%q reached a server: %q", text, said[max(0, i-200):min(len(said), i+100)])
		}
	}
}

// dials is how many TCP connections this process has begun on the internet: the way out
// dials, and the tests' servers do not.
func dials(t *testing.T) int {
	t.Helper()
	return int(snmp(t, "Tcp:", "ActiveOpens"))
}

// snmp reads a counter of this network namespace.
func snmp(t *testing.T, protocol, name string) (n int64) {
	t.Helper()
	var names []string
	for _, line := range harness.Lines("/proc/thread-self/net/snmp") {
		fields := strings.Fields(line)
		if fields[0] != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		if _, err := fmt.Sscan(fields[slices.Index(names, name)], &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// recordingListener records the connections that it accepts.
type recordingListener struct {
	net.Listener
	in *internet
}

func (l *recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	l.in.reached[c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()]++
	return &recordedConn{c, l.in}, nil
}

type recordedConn struct {
	net.Conn
	in *internet
}

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.said.Write(p[:n])
	return n, err
}

// refused are the results with which the way out refuses a connection: the errno of the
// connect, or of the first read or write.
var refused = []string{"EACCES", "ECONNRESET", "EPIPE"}

// isResult reports whether an attempt ended as wanted: with one of refused if want is
// "refused", by a reset in gVisor, otherwise with want itself. A connect may always fail with EACCES.
func isResult(got, want string) bool {
	switch want {
	case "refused":
		return slices.Contains(refused, got) || harness.InGVisor() && got == "ECONNRESET"
	case "served":
		return isServed(got + " ")
	}
	return got == want || strings.HasPrefix(want, "E") && got == "EACCES"
}

// check compares the results of attempts.
func check(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !isResult(got[name], want[name]) {
			t.Errorf("%s: %q, want %s", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d results for %d attempts", len(got), len(want))
	}
}
