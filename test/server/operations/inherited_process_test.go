package operations

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/daemon"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

const (
	// serverVar makes this binary such a server.
	serverVar = "GAOL_TEST_INHERITED"

	// cacheVar is the folder of its cache.
	cacheVar = "GAOL_TEST_INHERITED_CACHE"

	// endTime ends tests that hang.
	endTime = 2 * time.Minute
)

func serveInherited() {
	err := daemon.RunInherited(context.Background(), 3, server.Options{Version: "test", Options: service.Options{
		Store: os.Getenv(harness.StoreVar), Cache: os.Getenv(cacheVar), CgroupParent: harness.Parent,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// inheritedServer is a server, which ends with the test.
type inheritedServer struct {
	*exec.Cmd
	t     testing.TB
	conn  net.Conn
	log   servertest.Log
	ended chan struct{} // closed when it has exited
}

// startInherited starts a server for a connection that a user has made.
func startInherited(t testing.TB, user servertest.User) *inheritedServer {
	t.Helper()
	own, theirs := socketPair(t, user)
	defer own.Close()
	defer theirs.Close()
	p := &inheritedServer{Cmd: exec.Command("/proc/self/exe"), t: t, ended: make(chan struct{})}
	p.Env = append(os.Environ(), serverVar+"=1", cacheVar+"="+t.TempDir(), harness.ParentVar+"="+harness.Parent)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	p.ExtraFiles, p.Stderr = []*os.File{theirs}, &p.log
	var err error
	if p.conn, err = net.FileConn(own); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		_ = p.conn.Close()
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.Wait() // the test checks its exit status
	}()
	t.Cleanup(func() {
		_ = p.conn.Close() // a test may have closed it
		p.wait()
		if t.Failed() {
			t.Logf("the server's log:\n%s", p.log.String())
		}
	})
	return p
}

// socketPair returns the ends of a connection that a user has made.
func socketPair(t testing.TB, user servertest.User) (own, theirs *os.File) {
	t.Helper()
	var pair [2]int
	connect := func() (err error) {
		pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	}
	var err error
	if user.UID == 0 {
		err = connect()
	} else { // ends a thread, and with it the servers that it may have started
		err = user.Do(connect)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(pair[0]), "own"), os.NewFile(uintptr(pair[1]), "theirs")
}

// wait returns the exit status, -1 for a process that a signal has killed, and the log.
func (p *inheritedServer) wait() (status int, log string) {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode(), strings.TrimSpace(p.log.String())
	case <-time.After(endTime):
		_ = p.Process.Kill()
		p.t.Fatal("the server does not end")
		return 0, ""
	}
}

// expectEnd waits until the server has ended, without an error in its log.
func (p *inheritedServer) expectEnd() {
	p.t.Helper()
	if status, log := p.wait(); status != 0 || log != "" {
		p.t.Errorf("the server exits with %d: %s", status, log)
	}
}

func (p *inheritedServer) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// session makes the connection a session.
func (p *inheritedServer) session() *client.Client {
	p.t.Helper()
	c, err := client.Dial(p.t.Context(), client.Options{Conn: p.conn})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// http returns a client for requests on the connection.
func (p *inheritedServer) http() *http.Client {
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return p.conn, nil }}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: endTime}
}

// create creates a sandbox.
func create(t testing.TB, c *client.Client, o client.CreateOptions) *client.Sandbox {
	t.Helper()
	sb, err := c.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}
