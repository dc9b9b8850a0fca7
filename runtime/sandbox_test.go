package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

// fakeSandbox is a sandbox whose processes are functions of the test.
type fakeSandbox struct {
	sandbox.Sandbox // nil: methods that the tests do not need

	script func(p *fakeProcess) sandbox.Exit
	root   string // of the tree
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	live   []*fakeProcess
}

// fakeProcess is a process of a fakeSandbox. It has copies of the command's files.
type fakeProcess struct {
	sandbox.Command
	kill   func()
	killed chan struct{}
	done   chan struct{}
	exit   sandbox.Exit
}

func (s *fakeSandbox) Alive() bool { return true }

func (s *fakeSandbox) Files() (*hostfs.FS, error) {
	root, err := os.Open(s.root)
	if err != nil {
		return nil, err
	}
	return hostfs.New(root, hostfs.Options{UID: os.Getuid(), GID: os.Getgid(), Closed: sandbox.ErrClosed})
}

func (s *fakeSandbox) Start(_ context.Context, c *sandbox.Command) (sandbox.Process, error) {
	p := &fakeProcess{Command: *c, killed: make(chan struct{}), done: make(chan struct{})}
	p.kill = sync.OnceFunc(func() { close(p.killed) })
	p.Files = nil
	for _, f := range c.Files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, os.NewFile(uintptr(fd), f.Name()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, sandbox.ErrClosed
	}
	s.live = append(s.live, p)
	s.work.Go(func() {
		defer close(p.done)
		p.exit = s.script(p)
		for _, f := range p.Files {
			f.Close()
		}
	})
	return p, nil
}

func (s *fakeSandbox) Dial(ctx context.Context, to netip.AddrPort, buffer int) (*net.TCPConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (s *fakeSandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, p := range s.live {
		p.Kill()
	}
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

func (p *fakeProcess) GuestPID() int { return 7 }

func (p *fakeProcess) Signal(syscall.Signal, bool) error { return os.ErrProcessDone }

func (p *fakeProcess) Kill() { p.kill() }

func (p *fakeProcess) Done() <-chan struct{} { return p.done }

func (p *fakeProcess) Wait() (sandbox.Exit, error) {
	<-p.done
	return p.exit, nil
}

func (p *fakeProcess) Usage() (sandbox.Usage, error) { return sandbox.Usage{Memory: 1 << 20}, nil }

// wait is a script that ends when it is killed.
func (p *fakeProcess) wait() sandbox.Exit {
	<-p.killed
	return sandbox.Exit{Signal: unix.SIGKILL}
}

// inSandbox returns a runtime whose processes are calls of script.
func inSandbox(t *testing.T, o Options, script func(*fakeProcess) sandbox.Exit) *NodeRuntime {
	t.Helper()
	s, err := o.resolve()
	if err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(s)
	if err := rt.attach(&fakeSandbox{script: script, root: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// Any implementation of sandbox.Sandbox makes runs: their results come from it alone.
func TestRunInAnySandbox(t *testing.T) {
	frame := func(kind byte, text string) []byte {
		return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(text)+1)), kind), text...)
	}
	for name, tc := range map[string]struct {
		options RunOptions
		script  func(*fakeProcess) sandbox.Exit
		want    Result // without Duration and the like
	}{
		"output": {RunOptions{Stdin: strings.NewReader("in")}, func(p *fakeProcess) sandbox.Exit {
			text, _ := io.ReadAll(p.Files[0])
			_, _ = p.Files[1].Write(append(text, "-out"...))
			_, _ = p.Files[2].WriteString("err")
			return sandbox.Exit{Code: 3, Usage: sandbox.Usage{CPU: time.Second, PeakMemory: 5}}
		}, Result{Stdout: []byte("in-out"), Stderr: []byte("err"), ExitCode: 3, Usage: Usage{CPU: time.Second, PeakMemory: 5}}},
		"a value": {RunOptions{}, func(p *fakeProcess) sandbox.Exit {
			_, _ = p.Files[3].Write(frame(1, `{"sum":3}`))
			return sandbox.Exit{}
		}, Result{Value: []byte(`{"sum":3}`)}},
		"timeout":       {RunOptions{Timeout: time.Millisecond}, (*fakeProcess).wait, Result{ExitCode: 137, Signal: "SIGKILL", Cause: CauseTimeout}},
		"out of memory": {RunOptions{}, func(*fakeProcess) sandbox.Exit { return sandbox.Exit{Code: 1, Usage: sandbox.Usage{OOMKills: 1}} }, Result{ExitCode: 1, Cause: CauseMemory}},
		"a signal":      {RunOptions{}, func(*fakeProcess) sandbox.Exit { return sandbox.Exit{Signal: unix.SIGSEGV} }, Result{ExitCode: 139, Signal: "SIGSEGV", Cause: CauseSignal}},
		"a denial": {RunOptions{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Deny}}}, func(p *fakeProcess) sandbox.Exit {
			p.Denied(sandbox.Denial{Scope: policy.Network, Operation: "socket", Target: "AF_INET SOCK_STREAM", Source: sandbox.Seccomp})
			return sandbox.Exit{}
		}, Result{Denials: []Denial{{Scope: policy.Network, Operation: "socket", Target: "AF_INET SOCK_STREAM", Rule: "network.default", Count: 1, Source: SourceSeccomp}}}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := inSandbox(t, Options{}, tc.script).Run(t.Context(), "1", tc.options)
			if err != nil {
				t.Fatal(err)
			}
			got := *res
			got.Duration, got.Queued = 0, 0
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A sandbox gets all that it needs in the Command.
func TestCommandForSandbox(t *testing.T) {
	var got sandbox.Command
	rt := inSandbox(t, Options{Env: map[string]string{"A": "b"}}, func(p *fakeProcess) sandbox.Exit {
		got = p.Command
		return sandbox.Exit{}
	})
	if _, err := rt.Command(t.Context(), "ls", []string{"-l"}, RunOptions{Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Args, []string{"ls", "-l"}) || got.Dir != "/tmp" || !slices.Contains(got.Env, "A=b") ||
		got.Plan != nil || got.File != nil || got.Script != 0 {
		t.Errorf("%+v", got)
	}
}

// A spawned process, and the end of all when the runtime is closed.
func TestSpawnInAnySandbox(t *testing.T) {
	rt := inSandbox(t, Options{}, func(p *fakeProcess) sandbox.Exit {
		if p.Args[0] == "sleep" {
			return p.wait()
		}
		_, _ = io.Copy(p.Files[1], p.Files[0])
		return sandbox.Exit{}
	})
	cat, err := rt.Spawn(t.Context(), "cat", nil, SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, writeErr := io.WriteString(cat.Stdin, "hello")
	closeErr := cat.Stdin.Close()
	out, err := io.ReadAll(cat.Stdout)
	res, waitErr := cat.Wait(t.Context())
	if err := errors.Join(writeErr, closeErr, err, waitErr); err != nil || string(out) != "hello" || res.Cause != CauseNone || cat.PID() != 7 {
		t.Errorf("%q, %+v, %v", out, res, err)
	}
	sleep, err := rt.Spawn(t.Context(), "sleep", nil, SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list := rt.Processes(); len(list) != 1 || list[0].Name != "sleep" || list[0].Usage.Memory != 1<<20 {
		t.Errorf("%+v", list)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if res, err := sleep.Wait(t.Context()); res.Cause != CauseCanceled || !errors.Is(err, ErrClosed) {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := rt.FS().ReadFile("/x"); !errors.Is(err, ErrClosed) {
		t.Errorf("files: %v", err)
	}
}

func TestDialInAnySandbox(t *testing.T) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	rt := inSandbox(t, Options{Permissions: policy.Permissions{Network: policy.Loopback()}}, nil)
	port := server.Addr().(*net.TCPAddr).Port
	c, err := rt.Dial(t.Context(), "tcp4", uint16(port))
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("the connection is open after Close")
	}
}
