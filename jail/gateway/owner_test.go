package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gaol/jail/sockdiag"

	"golang.org/x/sys/unix"
)

// A copy of this program with this variable connects to its value, a network and an address,
// prints its own address, and keeps the socket until its input ends. With "listen" instead of a
// network it listens on the address.
const dialEnv = "GAOL_TEST_DIAL"

func dialAndWait() error {
	network, address, _ := strings.Cut(os.Getenv(dialEnv), " ")
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		return errors.Join(err, set)
	}}
	if own := os.Getenv(dialEnv + "_FROM"); own != "" {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(own))
	}
	if network == "listen" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		defer l.Close()
		fmt.Println(l.Addr())
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	c, err := d.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println(c.LocalAddr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// newCgroup makes a v2 cgroup. The id is its inode.
func newCgroup(t *testing.T) (dir *os.File, id uint64) {
	t.Helper()
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/unified"); err == nil {
		root += "/unified"
	}
	path, err := os.MkdirTemp(root, "gaol-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	})
	if dir, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	info, err := dir.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return dir, info.Sys().(*syscall.Stat_t).Ino
}

// dialFromCgroup connects by a process in the namespace and a cgroup, and returns its address.
func dialFromCgroup(t *testing.T, inside func(func() error) error, dir *os.File, to, from string) netip.AddrPort {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = []string{dialEnv + "=" + to, dialEnv + "_FROM=" + from}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inside(cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cancel(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddrPort(strings.TrimSpace(line))
}

func TestOwner(t *testing.T) {
	g, inside := openInJail(t, Config{})
	for _, to := range []string{"tcp 93.184.215.14:443", "tcp [2606:2800::1]:443", "tcp 10.0.2.3:53", "udp 10.0.2.3:53"} {
		dir, id := newCgroup(t)
		from := dialFromCgroup(t, inside, dir, to, "")
		network, address, _ := strings.Cut(to, " ")
		got, err := g.Owner(network, from, netip.MustParseAddrPort(address))
		if err != nil || got != id {
			t.Errorf("%s: owner %d, %v, want %d", to, got, err, id)
		}
		other := netip.AddrPortFrom(from.Addr(), from.Port()^1)
		if _, err := g.Owner(network, other, netip.MustParseAddrPort(address)); !errors.Is(err, ErrNoOwner) {
			t.Errorf("%s from another port: %v", to, err)
		}
	}
}

// Two sockets can have one port: then neither is the owner of a datagram, unless they belong to
// the same cgroup.
func TestOwnerOfSharedPort(t *testing.T) {
	g, inside := openInJail(t, Config{})
	one, id := newCgroup(t)
	two, _ := newCgroup(t)
	resolver := netip.AddrPortFrom(Resolver, 53)
	dialFromCgroup(t, inside, one, "udp 10.0.2.3:53", "10.0.2.15:5353")
	dialFromCgroup(t, inside, one, "udp 10.0.2.3:53", "0.0.0.0:5353")
	from := netip.MustParseAddrPort("10.0.2.15:5353")
	if got, err := g.Owner("udp", from, resolver); err != nil || got != id {
		t.Errorf("two sockets of one cgroup: %d, %v", got, err)
	}
	dialFromCgroup(t, inside, two, "udp 10.0.2.3:53", "10.0.2.15:5353")
	if got, err := g.Owner("udp", from, resolver); !errors.Is(err, ErrNoOwner) {
		t.Errorf("sockets of two cgroups: %d, %v", got, err)
	}
}

// A listening socket of the guest is not mistaken for a connection.
func TestOwnerIgnoresListener(t *testing.T) {
	g, inside := openInJail(t, Config{})
	listenInside(t, inside, "10.0.2.15:8080")
	if _, err := g.Owner("tcp", netip.MustParseAddrPort("10.0.2.15:8080"), netip.MustParseAddrPort("93.184.215.14:443")); !errors.Is(err, ErrNoOwner) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkOwner(b *testing.B) {
	d, err := sockdiag.Open()
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	g := &Gateway{diag: d}
	for _, network := range []string{"tcp", "udp"} {
		b.Run(network, func(b *testing.B) {
			for b.Loop() {
				if _, err := g.Owner(network, netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")); !errors.Is(err, ErrNoOwner) {
					b.Fatal(err)
				}
			}
		})
	}
}
