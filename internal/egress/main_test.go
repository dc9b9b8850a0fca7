package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gaol/internal/egress/relay"
	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/policy"
	"gaol/test/internettest"
)

// The tests run on a private internet. The guest is in another network namespace, in
// which all addresses lead to the server.
func TestMain(m *testing.M) {
	os.Exit(internettest.Main(func() int {
		var err error
		if guestSpace, err = openSpace(); err == nil {
			err = inGuest(configure)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		state, err := os.MkdirTemp("", "egress")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(state)
		relays = relay.Place{StateDir: state, CgroupParent: "/gaol-test-egress"}
		code := m.Run()
		if err := cgroup.Remove(context.Background(), relays.CgroupParent); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}))
}

// relays is where the relays of the tests run.
var relays relay.Place

// guestSpace is the guest's network namespace.
var guestSpace *os.File

// openSpace makes a network namespace.
func openSpace() (f *os.File, err error) {
	err = kernfile.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		f, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
	return f, err
}

// inGuest calls f in the guest's network namespace.
func inGuest(f func() error) error { return kernfile.InNetwork(guestSpace, f) }

// configure assigns all addresses to lo, in the thread's network namespace.
func configure() error {
	for _, line := range []string{
		"link set lo up",
		"addr add 192.0.2.10/32 dev lo",
		"route add local 0.0.0.0/0 dev lo src 192.0.2.10",
		"-6 route add local ::/0 dev lo",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

// The internet of the tests.
var (
	publicV4 = netip.MustParseAddr("93.184.215.14")
	publicV6 = netip.MustParseAddr("2606:2800:220:1::14")
	otherV4  = netip.MustParseAddr("151.101.1.6")
	private  = netip.MustParseAddr("10.1.2.3")
	metadata = netip.MustParseAddr("169.254.169.254")
)

// world is a server with one client, and the servers around it.
type world struct {
	*testing.T
	server *Server
	names  *internettest.Names

	mu     sync.Mutex
	client *Client
	events []Event
}

const messagesPerSec = 2000

// newWorld serves a guest with the permissions of the rules. Ports are those that a guest in
// the test connects to.
func newWorld(t *testing.T, rules string, l Limits, ports ...int) *world {
	t.Helper()
	return newWorldWith(t, Config{}, rules, l, ports...)
}

func newWorldWith(t *testing.T, c Config, rules string, l Limits, ports ...int) *world {
	t.Helper()
	p, err := policy.Parse([]byte(`{"network":` + rules + `}`))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, names: internettest.ServeNames(t, map[string][]netip.Addr{
		"api.example.com": {publicV4, publicV6},
		"v4.example.com":  {publicV4},
		"other.test":      {otherV4},
		"private.test":    {private},
		"metadata.test":   {metadata},
		"mixed.test":      {private, publicV4},
		"loopback.test":   {netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()},
	})}
	w.client = NewClient(policy.NewEgress(p.Network), l, nil, Observer{Event: func(e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}})
	c.Identify = func(string, netip.AddrPort, netip.AddrPort) *Client {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.client
	}
	c.MessagesPerSec, c.Connections = messagesPerSec, 1024
	if c.Relay == (relay.Place{}) {
		c.Relay, c.Failed = relays, func(err error) { t.Error(err) }
	}
	w.server = NewServer(c)
	t.Cleanup(w.server.Close)
	var listeners []net.Listener
	for _, port := range ports {
		listeners = append(listeners, listenInGuest(t, port))
	}
	if len(listeners) > 0 {
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := w.server.ServeTCP(listeners...); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			w.server.Close()
			for _, l := range listeners {
				l.Close()
			}
			serving.Wait()
		})
	}
	w.serveDNS()
	return w
}

func listenInGuest(t *testing.T, port int) (l *net.TCPListener) {
	t.Helper()
	err := inGuest(func() error {
		var lc net.ListenConfig
		lc.SetMultipathTCP(false)
		listener, err := lc.Listen(t.Context(), "tcp", fmt.Sprintf("[::]:%d", port))
		if err == nil {
			l = listener.(*net.TCPListener)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *world) serveDNS() {
	udp, err := net.ListenPacket("udp", "127.0.0.53:53")
	if err != nil {
		w.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.53:53")
	if err != nil {
		w.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := w.server.ServeDNS(udp, tcp); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(func() { udp.Close(); tcp.Close(); serving.Wait() })
}

// ask sends the guest's question.
func (w *world) ask(name string, qtype uint16) *dns.Msg {
	w.Helper()
	reply, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype), "127.0.0.53:53")
	if err != nil {
		w.Fatal(err)
	}
	return reply
}

// address returns the synthetic IPv4 address of a name.
func (w *world) address(name string) string {
	w.Helper()
	reply := w.ask(name, dns.TypeA)
	if len(reply.Answer) != 1 {
		w.Fatalf("%s: %v", name, reply)
	}
	return reply.Answer[0].(*dns.A).A.String()
}

// dial connects as the guest to a name or an address.
func (w *world) dial(host string, port int) net.Conn {
	w.Helper()
	c, err := w.tryDial(host, port)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return c
}

func (w *world) tryDial(host string, port int) (c net.Conn, err error) {
	w.Helper()
	if _, err := netip.ParseAddr(host); err != nil {
		host = w.address(host)
	}
	err = inGuest(func() error {
		c, err = net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), uint16(port))))
		return err
	})
	if err == nil {
		err = c.SetDeadline(time.Now().Add(time.Minute))
	}
	return c, err
}

// tryExchange connects as the guest, sends text and returns all that comes back.
func (w *world) tryExchange(address string, port int, text string) (string, error) {
	w.Helper()
	c, err := w.tryDial(address, port)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return exchange(c, text)
}

// exchange sends text and returns all that comes back.
func exchange(c net.Conn, text string) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// waitEvent returns the first event for which match returns true.
func (w *world) waitEvent(match func(Event) bool) Event {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		for _, e := range w.events {
			if match(e) {
				w.mu.Unlock()
				return e
			}
		}
		w.mu.Unlock()
	}
	w.Fatalf("no such event: %+v", w.events)
	return Event{}
}

func (w *world) listen(a netip.Addr, port uint16, serve func(net.Conn)) {
	w.Helper()
	internettest.Listen(w, a, port, serve)
}

// echo sends a greeting, and then echoes.
func echo(greeting string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := io.WriteString(c, greeting); err == nil {
			_, _ = io.Copy(c, c)
		}
	}
}
