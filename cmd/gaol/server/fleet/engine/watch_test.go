package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// watchServer watches a server with short times until the test ends.
func watchServer(t *testing.T, s *Server, timeout time.Duration, write func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, 5*time.Millisecond, timeout, write) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
}

// Watch restarts a program that accepts no writes, and no other.
func TestServerWatch(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	writes := make(chan error, 10_000)
	watchServer(t, s.Server, 3*time.Second, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		err := c.Put(ctx, Config, "canary", nil)
		writes <- err
		return err
	})
	for range 50 {
		if err := receive(t, "write", writes); err != nil {
			t.Logf("a write: %v", err)
		}
	}
	before := s.process.Load().Pid
	if pids := s.children(t); len(pids) != 1 || pids[0] != before {
		t.Fatalf("processes %v, want %d", pids, before)
	}
	if err := syscall.Kill(before, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "second start", func() bool { return s.process.Load().Pid != before })
	checkEnded(t, before)
	waitFor(t, "write", func() bool { return receive(t, "write", writes) == nil })
	waitFor(t, "single process", func() bool { return len(s.children(t)) == 1 })
}

// Writes that fail while the program is being started do not kill it.
func TestServerWatchStarting(t *testing.T) {
	dir := t.TempDir()
	hangs := filepath.Join(dir, "hangs")
	script := filepath.Join(dir, filepath.Base(program))
	text := fmt.Sprintf("#!/bin/sh\nwhile [ -e %s ]; do sleep 0.05; done\nexec %s \"$@\"\n", hangs, program)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Options{Program: script, Dir: dir, Token: token, Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		<-s.Done()
	}()
	if err := os.WriteFile(hangs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.kill(t)
	// The shell, and perhaps its sleep, whose command line lacks the folder.
	waitFor(t, "second process", func() bool { return len(s.children(t)) == 1 })
	pid := s.children(t)[0]
	writes := make(chan struct{}, 10_000)
	failing := errors.New("refused")
	watchServer(t, s, 0, func(context.Context) error {
		writes <- struct{}{}
		if s.address.Load() != nil {
			return nil
		}
		return failing
	})
	for range 20 {
		receive(t, "write", writes)
	}
	if err := os.Remove(hangs); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "start", func() bool { return s.address.Load() != nil })
	if now := s.process.Load().Pid; now != pid {
		t.Errorf("process %d, want %d: it was killed while it was being started", now, pid)
	}
}
