package engine

import (
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
	"syscall"
	"testing"
	"time"

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
	s, err := Start(ctx, Options{Program: program, Dir: t.TempDir(), Token: token, Log: logger(t)})
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
	c, err := Connect(s.Dial, Access{Secret: token}, "test", logger(t))
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
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), s.Dir) { // it may have ended
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
	info, err := os.Stat(filepath.Join(s.Dir, configFile))
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
	checkNoPorts(t, s.Dir)
	checkUnavailable(t, s.Server, c)
}

// checkUnavailable checks that operations fail.
func checkUnavailable(t *testing.T, s *Server, c *Client) {
	t.Helper()
	waitFor(t, "end of the connection", func() bool { return !c.Connected() })
	_, _, getErr := c.Get(t.Context(), Nodes, "key")
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
	s, err := Start(ctx, Options{Program: script, Dir: dir, Token: token, Log: logger(t)})
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
		s, err := Start(t.Context(), Options{Program: program, Dir: dir, Token: token, Log: logger(t)})
		if err == nil {
			t.Errorf("%s: it started: %v", name, s)
		}
	}
	if left := (&Server{Options: Options{Dir: dir}}).children(t); left != nil {
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
	s, err := Start(ctx, Options{Program: script, Dir: dir, Token: token, Log: logger(t)})
	if err == nil {
		cancel()
		<-s.Done()
	} else {
		cancel()
		t.Error(err)
	}
	checkNoPorts(t, dir)
}
