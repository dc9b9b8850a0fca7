package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/seccomp"
	"gaol/jail/zygote"
	"gaol/rootfs"
	"gaol/test/harness"
)

// ranCode is the exit code of a child that ran its program.
const ranCode = 7

// The time limits of a child that stops, and of another child.
const moment, whole = 150 * time.Millisecond, 10 * time.Second

// zygoteOf returns zygotes of the image with another object, and without helper threads.
func zygoteOf(t *testing.T, image *rootfs.Image, object []byte) *zygote.Pool {
	t.Helper()
	return zygoteWith(t, image, object, fmt.Sprintf(`serve(); process.exit(%d)`, ranCode), "--single-threaded", "--v8-pool-size=0")
}

// zygoteWith returns zygotes that run a script, which can call serve and receive.
func zygoteWith(t *testing.T, image *rootfs.Image, object []byte, source string, flags ...string) *zygote.Pool {
	t.Helper()
	const script = "/usr/libexec/gaol/zygote.cjs"
	const binding = `const b = process._linkedBinding('gaol');
const kept = [new Int32Array(3), new Float64Array(8)]; // the binding writes into them
const serve = () => b.serve(...kept), { receive } = b;
%s`
	pool := zygote.NewPool(zygote.Spec{
		Image: image.Root(),
		Layer: []zygote.File{
			{Path: zygote.Path, Mode: 0o755, Data: object},
			{Path: script, Mode: 0o644, Data: fmt.Appendf(nil, binding, source)},
		},
		Args: append(append([]string{"/usr/local/bin/node", "--disable-sigusr1"}, flags...), script),
		Dir:  jail.DefaultStateDir, Cgroup: harness.Parent,
	}, zygote.Options{})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

func jailOf(t *testing.T, image *rootfs.Image) *jail.Jail {
	t.Helper()
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	j, err := jail.Create(t.Context(), jail.Spec{
		Tree: jail.Tree{Image: image.Root(), Disk: 1 << 20, Inodes: 64}, Hostname: "cell",
		Reaper: []string{enter.Reaper, "-P"}, Filter: filter, CgroupParent: harness.Parent,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// forkOnce runs a child for limit at most, and returns how it ended.
func forkOnce(t *testing.T, j *jail.Jail, pool *zygote.Pool, limit time.Duration) (jail.Exit, error) {
	t.Helper()
	return runOnce(t, j, jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 64 << 20, CPUs: 1, Pids: 16}}, limit)
}

// runOnce is forkOnce for a command, to which it adds a program and a terminal.
func runOnce(t *testing.T, j *jail.Jail, c jail.Command, limit time.Duration) (jail.Exit, error) {
	t.Helper()
	term, err := j.OpenTerminal(jail.TerminalSize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c.Program = jail.Program{
		Args: []string{"/usr/local/bin/node", "main"}, Script: 1, Dir: "/tmp", Terminal: true, Files: []*os.File{term.Guest, term.Guest, term.Guest},
	}
	p, err := j.Start(ctx, c)
	if err != nil {
		return jail.Exit{}, err
	}
	defer context.AfterFunc(ctx, p.Kill)()
	return p.Wait()
}

// A child that dies, stops or fails between any two steps of entering the jail is a run
// that ended so, or an error that names the step. Nothing is left of it, and the next child
// of the same zygote works.
func TestZygoteChildFailsAtEachStep(t *testing.T) {
	f := &faulty{steps: []string{
		"request", "cgroup", "arguments", "namespaces", "descriptors", "session", "terminal", "limit", "user", "capabilities", "chdir", "no_new_privs", "seccomp", "event loop",
	}}
	image := harness.DefaultImage(t)
	pool, j := zygoteOf(t, image, compileFaulty(t, f.source(t))), jailOf(t, image)
	sound := func() {
		if exit, err := forkOnce(t, j, pool, whole); err != nil || exit.Code != ranCode {
			t.Fatalf("a sound child: %+v, %v", exit, err)
		}
	}
	sound()
	zygotes := harness.Zygotes(t)
	for point := range f.points {
		if exit, err := forkOnce(t, j, pool, whole); err != nil || exit.Signal != unix.SIGKILL {
			t.Errorf("killed at point %d: %+v, %v", point, exit, err)
		}
		harness.CheckNoRuns(t)
		exit, err := forkOnce(t, j, pool, moment)
		if !errors.Is(err, context.DeadlineExceeded) && (err != nil || exit.Signal != unix.SIGKILL) {
			t.Errorf("stopped at point %d: %+v, %v", point, exit, err)
		}
		harness.CheckNoRuns(t)
	}
	f.failSteps(t, j, pool)
	sound()
	if now := harness.Zygotes(t); !slices.Equal(now, zygotes) {
		t.Errorf("zygotes %v, before %v", now, zygotes)
	}
}

// A parked process that gets no program leaves no descriptors for the garbage collector to
// close.
func TestZygoteParkedUnused(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	image := harness.DefaultImage(t)
	pool, j := zygoteOf(t, image, compileFaulty(t, zygote.Source)), jailOf(t, image)
	c := jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 64 << 20, CPUs: 1, Pids: 16}}
	before := 0
	for i := range 10 {
		parked, err := j.Park(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		parked.Kill()
		<-parked.Done()
		if i == 0 {
			before = len(harness.Glob("/proc/self/fd/*")) // some descriptors are opened once and kept
		}
	}
	if after := len(harness.Glob("/proc/self/fd/*")); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// Failures in the zygote are reported like failures in the child, and harm no other child.
func TestZygoteFails(t *testing.T) {
	image := harness.DefaultImage(t)
	object, err := os.ReadFile(image.Root() + zygote.Path)
	if err != nil {
		t.Fatal(err)
	}
	pool, j := zygoteOf(t, image, object), jailOf(t, image)
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	own, dead := pidfd(t, exec.Command("sleep", "60"), false), pidfd(t, exec.Command("true"), true)
	for _, tc := range []struct {
		step  string
		entry zygote.Entry
	}{
		{"pid namespace", zygote.Entry{Jail: dead}},
		{"pid namespace", zygote.Entry{Jail: root}},
		{"clone", zygote.Entry{Jail: own, Cgroup: root}},
	} {
		_, err := pool.Fork(t.Context(), &tc.entry, &zygote.Program{Args: []string{"node"}, Dir: "/", Files: []*os.File{root, root, root}})
		if failed, ok := errors.AsType[*jail.StepError](err); !ok || failed.Step != tc.step {
			t.Errorf("%v, want a failed %s", err, tc.step)
		}
		if exit, err := forkOnce(t, j, pool, whole); err != nil || exit.Code != ranCode {
			t.Errorf("the next child: %+v, %v", exit, err)
		}
	}
}

// pidfd starts a process and returns a pidfd of it.
func pidfd(t *testing.T, c *exec.Cmd, ended bool) *os.File {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(c.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() {
		f.Close()
		if !ended {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	if ended {
		_ = c.Wait()
	}
	return f
}
