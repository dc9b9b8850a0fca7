package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
)

// program is nats-server.
var program string

// programVar names the program that make build has built. Without it, the tests build their own, with the same flags.
const programVar = "GAOL_TEST_NATS"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gaol-engine-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program = os.Getenv(programVar); program == "" {
		program = filepath.Join(dir, "nats-server")
		build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s", "-o", program,
			"github.com/nats-io/nats-server/v2")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", build.Args, err, out)
			return 1
		}
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

const (
	token   = "the engine's token"
	timeout = time.Minute // of tests that hang
)

// testServer is a server that its test ends.
type testServer struct {
	*Server
	end context.CancelFunc
}

// startServer starts a server that ends with the test.
func startServer(t *testing.T) testServer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, program, t.TempDir(), token, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	end := func() {
		cancel()
		<-s.Done()
	}
	t.Cleanup(end)
	return testServer{s, end}
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// connect returns a client that is connected, with all buckets.
func connect(t *testing.T, s testServer) *Client {
	t.Helper()
	c, err := Connect(s.Dial, token, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	waitFor(t, "a connection", c.Connected)
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after %v", what, timeout)
		}
	}
}

// receive receives from a channel.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(timeout):
		t.Fatalf("no %s after %v", what, timeout)
		panic("unreachable")
	}
}

// children returns the ids of the processes of a server. They have its folder in their command line.
func (s *Server) children(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), s.dir) { // it may have ended
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill kills the program of a server and waits until the server has noticed it.
func (s *Server) kill(t *testing.T) {
	t.Helper()
	pids := s.children(t)
	if len(pids) != 1 {
		t.Fatalf("processes %v, want one", pids)
	}
	before := s.address.Load()
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "end of the program", func() bool { return s.address.Load() != before })
}

func TestStart(t *testing.T) {
	s := startServer(t)
	host, port, err := net.SplitHostPort(*s.address.Load())
	if err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("address %s, %v", *s.address.Load(), err)
	}
	info, err := os.Stat(filepath.Join(s.dir, configFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the configuration, which has the token: %v, %v", info, err)
	}
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	greeting := make([]byte, 5)
	if _, err := c.Read(greeting); err != nil || string(greeting) != "INFO " {
		t.Errorf("greeting %q, %v", greeting, err)
	}
}

// The end of the context ends the program. Nothing but data and the configuration is left.
func TestEnd(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	pids := s.children(t)
	if len(pids) != 1 {
		t.Fatalf("processes %v", pids)
	}
	s.end()
	checkEnded(t, pids[0])
	checkNoPorts(t, s.dir)
	checkUnavailable(t, s.Server, c)
}

// checkUnavailable checks that operations fail.
func checkUnavailable(t *testing.T, s *Server, c *Client) {
	t.Helper()
	waitFor(t, "end of the connection", func() bool { return !c.Connected() })
	_, getErr := c.Get(t.Context(), Nodes, "key")
	_, dialErr := s.Dial(t.Context())
	for what, err := range map[string]error{
		"Get": getErr, "Put": c.Put(t.Context(), Nodes, "key", nil), "Create": c.Create(t.Context(), Nodes, "key", nil, time.Hour),
		"Delete": c.Delete(t.Context(), Nodes, "key"), "Watch": c.Watch(t.Context(), Nodes, func(Change) {}, func() {}), "Dial": dialErr,
	} {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v, want %v", what, err, ErrUnavailable)
		}
	}
	if err := c.Publish("subject", nil); err == nil {
		t.Error("Publish succeeded without an engine")
	}
}

// checkEnded checks that a process has ended, and that its parent has waited for it.
func checkEnded(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is left: %v", pid, err)
	}
}

func checkNoPorts(t *testing.T, dir string) {
	t.Helper()
	if left, err := fs.Glob(os.DirFS(dir), "*.ports"); err != nil || left != nil {
		t.Errorf("%v are left, %v", left, err)
	}
}

// While a program that was started again is not ready, operations fail. The end of the context ends also such a program.
func TestNotReady(t *testing.T) {
	dir := t.TempDir()
	hangs := filepath.Join(dir, "hangs")
	script := filepath.Join(dir, filepath.Base(program)) // which names the file with the addresses
	text := fmt.Sprintf("#!/bin/sh\n[ -e %[1]s ] && exec tail -f %[1]s\nexec %[2]s \"$@\"\n", hangs, program)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := Start(ctx, script, dir, token, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, testServer{s, cancel})
	if err := os.WriteFile(hangs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.kill(t)
	waitFor(t, "second process", func() bool { return len(s.children(t)) == 1 })
	checkUnavailable(t, s, c)
	pid := s.children(t)[0]
	cancel()
	receive(t, "end", s.Done())
	checkEnded(t, pid)
	checkNoPorts(t, dir)
}

// Start returns an error for a program that ends, and leaves nothing.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil { // where its data should be
		t.Fatal(err)
	}
	for name, program := range map[string]string{"ends": program, "missing": filepath.Join(dir, "missing")} {
		s, err := Start(t.Context(), program, dir, token, logger(t))
		if err == nil {
			t.Errorf("%s: it started: %v", name, s)
		}
	}
	if left := (&Server{dir: dir}).children(t); left != nil {
		t.Errorf("processes %v are left", left)
	}
	checkNoPorts(t, dir)
}

// A file with addresses of an earlier program is not used, also if its process id is the same.
func TestStalePorts(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, filepath.Base(program))
	stale := "nats-server_1.ports"
	for name, text := range map[string]string{stale: `{"nats":["nats://127.0.0.1:1"]}`, "other_2.ports": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The program ends if it finds such a file.
	text := fmt.Sprintf("#!/bin/sh\n[ -e %s/%s ] && exit 1\nexec %s \"$@\"\n", dir, stale, program)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, script, dir, token, logger(t))
	if err == nil {
		cancel()
		<-s.Done()
	} else {
		cancel()
		t.Error(err)
	}
	checkNoPorts(t, dir)
}

func TestKeys(t *testing.T) {
	c := connect(t, startServer(t))
	ctx := t.Context()
	get := func(key, want string, wantErr error) {
		t.Helper()
		if got, err := c.Get(ctx, Config, key); string(got) != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: %q, %v, want %q, %v", key, got, err, want, wantErr)
		}
	}
	get("key", "", ErrNotFound)
	for i, want := range []error{nil, ErrExists, ErrExists} {
		if err := c.Create(ctx, Config, "key", fmt.Append(nil, i), time.Hour); !errors.Is(err, want) {
			t.Errorf("Create %d: %v, want %v", i, err, want)
		}
	}
	get("key", "0", nil)
	if err := c.Put(ctx, Config, "key", []byte("put")); err != nil {
		t.Error(err)
	}
	get("key", "put", nil)
	for range 2 {
		if err := c.Delete(ctx, Config, "key"); err != nil {
			t.Error(err)
		}
		get("key", "", ErrNotFound)
	}
	if err := c.Create(ctx, Config, "key", []byte("new"), time.Hour); err != nil {
		t.Errorf("Create after Delete: %v", err)
	}
	get("key", "new", nil)
	if _, err := c.Get(ctx, Nodes, "key"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the key in another bucket: %v", err)
	}
	if err := c.Prepare(ctx); err != nil {
		t.Errorf("Prepare again: %v", err)
	}
	get("key", "new", nil)
}

// A created key is deleted after its time. Watch reports that.
func TestExpires(t *testing.T) {
	c := connect(t, startServer(t))
	w := watch(t, c)
	if err := c.Create(t.Context(), Nodes, "key", []byte("value"), time.Second); err != nil {
		t.Fatal(err)
	}
	w.want(t, "key=value")
	w.want(t, "key deleted")
	if _, err := c.Get(t.Context(), Nodes, "key"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if err := c.Create(t.Context(), Nodes, "key", []byte("again"), time.Hour); err != nil {
		t.Errorf("Create: %v", err)
	}
	w.want(t, "key=again")
}

// watching is a running Watch.
type watching struct {
	events  chan string // changes, and "current"
	ended   chan error
	started *sync.WaitGroup
}

// watch watches the bucket of nodes until the test ends, and waits until it is current.
func watch(t *testing.T, c *Client) watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := watching{make(chan string, 1000), make(chan error, 1), &sync.WaitGroup{}}
	w.started.Go(func() {
		w.ended <- c.Watch(ctx, Nodes, func(c Change) {
			event := c.Key + "=" + string(c.Value)
			if c.Value == nil {
				event = c.Key + " deleted"
			}
			w.events <- event
		}, func() { w.events <- "current" })
	})
	t.Cleanup(func() {
		cancel()
		w.started.Wait()
	})
	return w
}

// want receives events until the wanted one.
func (w watching) want(t *testing.T, want string) {
	t.Helper()
	var got []string
	for deadline := time.After(timeout); ; {
		select {
		case e := <-w.events:
			if got = append(got, e); e == want {
				return
			}
		case err := <-w.ended:
			t.Fatalf("the watch has ended: %v", err)
		case <-deadline:
			t.Fatalf("events %v, want %s", got, want)
		}
	}
}

// exactly receives events that must be the wanted ones.
func (w watching) exactly(t *testing.T, want ...string) {
	t.Helper()
	for _, want := range want {
		if got := receive(t, "event "+want, w.events); got != want {
			t.Fatalf("event %s, want %s", got, want)
		}
	}
}

func TestWatch(t *testing.T) {
	c := connect(t, startServer(t))
	ctx := t.Context()
	put := func(key, value string) {
		t.Helper()
		if err := c.Put(ctx, Nodes, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	empty := watch(t, c)
	empty.exactly(t, "current")
	put("a", "0")
	put("a", "1")
	put("b", "1")
	empty.exactly(t, "a=0", "a=1", "b=1")

	w := watch(t, c)
	w.exactly(t, "a=1", "b=1", "current")
	put("b", "2")
	put("c", "") // an empty value is not a deletion
	if err := c.Delete(ctx, Nodes, "a"); err != nil {
		t.Fatal(err)
	}
	w.exactly(t, "b=2", "c=", "a deleted")
	empty.exactly(t, "b=2", "c=", "a deleted")

	c.Close()
	if err := receive(t, "end", w.ended); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Watch of a closed client: %v", err)
	}
}

// The end of its context ends a watch, also while it has more changes than it can buffer.
func TestWatchEnds(t *testing.T) {
	c := connect(t, startServer(t))
	for i := range 600 {
		if err := c.Put(t.Context(), Nodes, fmt.Sprint("key.", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got int
	err := c.Watch(ctx, Nodes, func(Change) {
		got++
		cancel()
	}, func() {})
	if !errors.Is(err, context.Canceled) || got == 600 {
		t.Errorf("%v after %d keys", err, got)
	}
}

// After a SIGKILL of the engine, it starts again with the same data, and clients continue.
func TestKilled(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	ctx := t.Context()
	if err := c.Put(ctx, Nodes, "before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	hints := make(chan string, 1000)
	if err := c.Subscribe(ctx, "hint.>", func(_ string, hint []byte) { hints <- string(hint) }); err != nil {
		t.Fatal(err)
	}
	w := watch(t, c)
	w.exactly(t, "before=1", "current")
	for i := range 2 {
		start := time.Now()
		s.kill(t)
		waitFor(t, "second start", func() bool { return s.address.Load() != nil })
		waitFor(t, "connection", c.Connected)
		w.want(t, "before=1")
		w.want(t, "current")
		t.Logf("the watch continued after %v", time.Since(start))
		if got, err := c.Get(ctx, Nodes, "before"); string(got) != "1" || err != nil {
			t.Errorf("Get: %q, %v", got, err)
		}
		value := fmt.Sprint(i)
		if err := c.Put(ctx, Nodes, "after", []byte(value)); err != nil {
			t.Fatal(err)
		}
		w.want(t, "after="+value)
		if err := c.Delete(ctx, Nodes, "after"); err != nil {
			t.Fatal(err)
		}
		w.want(t, "after deleted")
		if err := c.Publish("hint.x", []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "hint", hints); got != value {
			t.Errorf("hint %q, want %q", got, value)
		}
	}
	if n := len(s.children(t)); n != 1 {
		t.Errorf("%d processes", n)
	}
	ports, err := fs.Glob(os.DirFS(s.dir), "*.ports")
	if err != nil || len(ports) != 1 {
		t.Errorf("files with addresses: %v, %v", ports, err)
	}
}

func TestPublish(t *testing.T) {
	s := startServer(t)
	from, to := connect(t, s), connect(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string, 100)
	if err := to.Subscribe(ctx, "load.>", func(subject string, hint []byte) { got <- subject + " " + string(hint) }); err != nil {
		t.Fatal(err)
	}
	if err := to.conn.Flush(); err != nil { // the engine has the subscription
		t.Fatal(err)
	}
	publish := func(subject, hint string) {
		t.Helper()
		if err := from.Publish(subject, []byte(hint)); err != nil {
			t.Fatal(err)
		}
	}
	publish("other.a", "0")
	publish("load.a", "1")
	publish("load.b", "2")
	for _, want := range []string{"load.a 1", "load.b 2"} {
		if hint := receive(t, "hint", got); hint != want {
			t.Errorf("hint %q, want %q", hint, want)
		}
	}
	cancel()
	waitFor(t, "end of the subscription", func() bool { return to.conn.NumSubscriptions() < from.conn.NumSubscriptions()+1 })
}

// Clients with another token, or without one, are refused.
func TestToken(t *testing.T) {
	s := startServer(t)
	for _, wrong := range []string{"", "another", token + " "} {
		conn, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer(s.Dial)), nats.Token(wrong))
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("token %q: %v, want %v", wrong, err, nats.ErrAuthorization)
		}
		if err == nil {
			conn.Close()
		}
	}
	conn, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer(s.Dial)), nats.Token(token))
	if err != nil {
		t.Fatalf("the right token: %v", err)
	}
	conn.Close()

	var tries int
	tried := make(chan struct{})
	c, err := Connect(func(ctx context.Context) (net.Conn, error) {
		if tries++; tries == 4 { // the first ones were refused, and it tries again
			close(tried)
		}
		return s.Dial(ctx)
	}, "another", "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	receive(t, "fourth connection", tried)
	if _, err := c.Get(t.Context(), Nodes, "key"); c.Connected() || !errors.Is(err, ErrUnavailable) {
		t.Errorf("a client with another token: connected %v, %v", c.Connected(), err)
	}
}

// A node reaches the engine through a tunnel, until either end closes or the context ends.
func TestServe(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 10)
	tunnels := make(chan net.Conn, 10)
	c, err := Connect(func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		tunnels <- near
		go func() { served <- s.Serve(ctx, far) }()
		return near, nil
	}, token, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waitFor(t, "connection", c.Connected)
	if err := cmp.Or(c.Prepare(t.Context()), c.Put(t.Context(), Nodes, "key", make([]byte, 100_000))); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), Nodes, "key"); len(got) != 100_000 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	receive(t, "tunnel", tunnels).Close()
	receive(t, "end of the tunnel", served)
	receive(t, "second tunnel", tunnels)
	waitFor(t, "connection", c.Connected)

	s.kill(t)
	receive(t, "end of the tunnel", served)
	waitFor(t, "connection", c.Connected)
	c.Close()
	cancel()
	for len(tunnels) > 0 {
		<-tunnels
		receive(t, "end of the tunnel", served)
	}
}
