package internettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// inside says that the process is in the tests' namespaces.
const inside = "GAOL_TEST_INTERNET"

// T is what this package needs of testing.TB. It lets commands use the package, too.
type T interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
	TempDir() string
}

// Inside reports whether the process is in the tests' namespaces: Main has started it.
func Inside() bool { return os.Getenv(inside) != "" }

// NameServer answers questions about the names of the tests.
var NameServer = netip.MustParseAddr("192.0.2.53")

// Main runs the tests in network and separate mount namespaces, in which
// /etc/resolv.conf names the tests' name server. It returns the exit status.
func Main(run func() int) int {
	if Inside() {
		return run()
	}
	dir, err := os.MkdirTemp("", "gaol-internet-")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	conf := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "nameserver %s\n", NameServer), 0o644); err != nil {
		return fail(err)
	}
	const setUp = `ip link set lo up && ip addr add 192.0.2.1/32 dev lo && ip route add local 0.0.0.0/0 dev lo src 192.0.2.1 && ip -6 route add local ::/0 dev lo &&
		echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind &&
		mount --bind "$0" /etc/resolv.conf && exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", setUp, conf, "/proc/self/exe"}, os.Args[1:]...)...)
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	cmd.Args[4] = self
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isProxy), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return exit.ExitCode()
	} else if err != nil {
		return fail(err)
	}
	return 0
}

// isProxy reports whether a variable sets a proxy, which the tests would use.
func isProxy(variable string) bool {
	name, _, _ := strings.Cut(strings.ToLower(variable), "=")
	return strings.HasSuffix(name, "_proxy")
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// Names is the name server of one test.
type Names struct {
	mu      sync.Mutex
	names   map[string][]netip.Addr
	aliases map[string]string
	asked   map[string]int
	mute    string
}

// ServeNames starts the name server, with names and their addresses.
func ServeNames(t T, names map[string][]netip.Addr) *Names {
	t.Helper()
	n := &Names{names: names, aliases: map[string]string{}, asked: map[string]int{}}
	address := netip.AddrPortFrom(NameServer, 53).String()
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = (&dns.Server{PacketConn: udp, Handler: n}).ActivateAndServe() })
	serving.Go(func() { _ = (&dns.Server{Listener: tcp, Handler: n}).ActivateAndServe() })
	t.Cleanup(func() { _, _ = udp.Close(), tcp.Close(); serving.Wait() })
	return n
}

// Set changes the addresses of a name.
func (n *Names) Set(name string, list ...netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = list
}

// Alias makes a name an alias of another one, by a CNAME record.
func (n *Names) Alias(name, target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.aliases[name] = target
}

// Mute stops replies to questions about names below a domain.
func (n *Names) Mute(domain string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = domain
}

// Asked returns how many questions about a name have arrived.
func (n *Names) Asked(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[name]
}

// ServeDNS answers a question.
func (n *Names) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	question := q.Question[0]
	name := strings.ToLower(strings.TrimSuffix(question.Name, "."))
	n.asked[name]++
	if n.mute != "" && strings.HasSuffix(name, "."+n.mute) {
		return
	}
	reply := new(dns.Msg).SetReply(q)
	name = n.follow(name, reply)
	list, ok := n.names[name]
	switch {
	case n.aliases[name] != "":
		reply.Rcode = dns.RcodeServerFailure // a loop
	case !ok:
		reply.Rcode = dns.RcodeNameError
	}
	header := header(name, question.Qtype)
	for _, a := range list {
		switch {
		case question.Qtype == dns.TypeA && a.Is4():
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: a.AsSlice()})
		case question.Qtype == dns.TypeAAAA && a.Is6():
			reply.Answer = append(reply.Answer, &dns.AAAA{Hdr: header, AAAA: a.AsSlice()})
		}
	}
	if question.Qtype == dns.TypeTXT && ok {
		reply.Answer = append(reply.Answer, &dns.TXT{Hdr: header, Txt: []string{"text"}})
	}
	_ = w.WriteMsg(reply)
}

// maxAliases bounds a chain of aliases.
const maxAliases = 16

// follow adds the aliases of a name to a reply, as a resolver does, and returns the last
// name. That is an alias, too, if there are too many.
func (n *Names) follow(name string, reply *dns.Msg) string {
	for range maxAliases {
		target, ok := n.aliases[name]
		if !ok {
			break
		}
		reply.Answer = append(reply.Answer, &dns.CNAME{Hdr: header(name, dns.TypeCNAME), Target: dns.Fqdn(target)})
		name = target
	}
	return name
}

func header(name string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: dns.Fqdn(name), Rrtype: rrtype, Class: dns.ClassINET, Ttl: 1}
}

// Listen serves connections to an address, until the test ends.
func Listen(t T, a netip.Addr, port uint16, serve func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(a, port).String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				defer stop()
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); cancel(); serving.Wait() })
}
