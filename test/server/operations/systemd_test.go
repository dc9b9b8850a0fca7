package operations

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/cmd/gaol/server/daemon"
)

// systemd is the part of systemd that a server sees: the socket for notifications.
type systemd struct {
	t        testing.TB
	path     string
	states   chan string   // messages that are not about the watchdog
	watchdog chan struct{} // receives an element for each one about the watchdog
}

func newSystemd(t testing.TB) *systemd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	s := &systemd{t, path, make(chan string, 100), make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(conn)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-read
	})
	return s
}

// read receives messages until conn is closed.
func (s *systemd) read(conn *net.UnixConn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if text := string(buf[:n]); text != "WATCHDOG=1" {
			s.states <- text
			continue
		}
		select {
		case s.watchdog <- struct{}{}:
		default:
		}
	}
}

// receive returns the next element of a channel.
func receive[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(hangTime):
		t.Fatal("no message of the server")
	}
	return v
}

// next returns the next message that is not about the watchdog.
func (s *systemd) next() string {
	s.t.Helper()
	return receive(s.t, s.states)
}

// pass makes systemd pass sockets to a server, and notifications back.
func (s *systemd) pass(files ...*os.File) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.ExtraFiles = files
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+s.path, fmt.Sprintf("LISTEN_FDS=%d", len(files)), "WATCHDOG_USEC=100000")
	}
}

// listenerFile returns a listener and its file.
func listenerFile(t testing.TB, network, address string) (net.Listener, *os.File) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return l, f
}

// A server that systemd starts serves systemd's socket, whose callers are users, and reports what it
// does.
func TestSystemd(t *testing.T) {
	s := newSystemd(t)
	socket := fmt.Sprintf("@gaol-test-%d", os.Getpid())
	_, file := listenerFile(t, "unix", socket)
	p := start(t, daemon.Options{Socket: "/nonexistent/not/used"}, s.pass(file))
	p.socket = socket
	if text := s.next(); text != "READY=1" {
		t.Fatalf("the server says %q", text)
	}
	p.createSandbox()
	if text := p.expect(http.StatusOK, "GET", "/v1/sandboxes", nil); !strings.Contains(text, `"id":"sb-`) {
		t.Errorf("root's sandboxes: %s", text)
	}
	if text := asUser(t, socket, "/v1/sandboxes"); !strings.HasPrefix(text, `200 {"sandboxes":[]}`) {
		t.Errorf("the sandboxes of another user: %s", text)
	}
	receive(t, s.watchdog)

	p.signal(syscall.SIGHUP)
	if text := s.next(); !strings.HasPrefix(text, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("reloading, the server says %q", text)
	}
	if text := s.next(); text != "READY=1" {
		t.Errorf("reloaded, the server says %q", text)
	}
	p.signal(syscall.SIGTERM)
	if text := s.next(); text != "STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000" {
		t.Errorf("stopping, the server says %q", text)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	// systemd keeps the socket, in which clients wait for the next server.
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TCP sockets of systemd need tokens, and TLS off loopback, as with --listen.
func TestSystemdRefused(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, tokens, tokenLine("ci", false))
	_, tcp := listenerFile(t, "tcp", "127.0.0.1:0")
	_, public := listenerFile(t, "tcp", "[::]:0")
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "d"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	file, err := datagrams.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, tc := range map[string]struct {
		file *os.File
		o    daemon.Options
		want string
	}{
		"TCP without tokens": {tcp, daemon.Options{}, "TCP needs --tokens"},
		"TCP without TLS":    {public, daemon.Options{Files: daemon.Files{Tokens: tokens}}, "others could read the tokens"},
		"datagrams":          {file, daemon.Options{}, "want a stream socket"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startOnly(t, tc.o, newSystemd(t).pass(tc.file))
			if code := p.wait(); code != 1 || !strings.Contains(strings.Join(p.log.lines, "\n"), tc.want) {
				t.Errorf("exit status %d, log %q, want %q", code, p.log.lines, tc.want)
			}
		})
	}
	p := start(t, daemon.Options{Files: daemon.Files{Tokens: tokens}}, newSystemd(t).pass(tcp))
	p.stop()
}
