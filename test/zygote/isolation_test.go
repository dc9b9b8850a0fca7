package zygote

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// Kinds of kcmp(2).
const (
	kcmpFile = iota
	kcmpVM
	kcmpFiles
	kcmpFS
	kcmpSignals
)

// same reports whether two processes share an object of a kind. a and b are descriptors for
// kcmpFile.
func same(t *testing.T, p, q int, kind, a, b int) bool {
	t.Helper()
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(p), uintptr(q), uintptr(kind), uintptr(a), uintptr(b), 0)
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		t.Skip("the kernel has no kcmp")
	}
	if errno != 0 && errno != unix.EBADF { // the host may have closed the descriptor
		t.Fatalf("kcmp: %v", errno)
	}
	return errno == 0 && order == 0
}

func descriptorsOf(pid int) (fds []int) {
	for _, path := range harness.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) {
		fd, err := strconv.Atoi(filepath.Base(path))
		if err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
}

// sharedFiles lists the descriptors of p that refer to the same open file as one of q.
func sharedFiles(t *testing.T, p, q int) (shared []string) {
	t.Helper()
	for _, a := range descriptorsOf(p) {
		for _, b := range descriptorsOf(q) {
			to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p, a))
			if to != os.DevNull && same(t, p, q, kcmpFile, a, b) {
				shared = append(shared, fmt.Sprintf("%d is %d, %s", a, b, to))
			}
		}
	}
	return shared
}

// A run shares no open file, memory or other process state with the zygote or another run.
// So a change, such as making a pipe non-blocking or moving in a file, affects no other
// process.
func TestZygoteAndRunsShareNothing(t *testing.T) {
	harness.RequireZygotes(t)
	one, two := harness.CreateForking(t, runtime.Options{}), harness.CreateForking(t, runtime.Options{})
	first, second, third := harness.StartNode(t, one), harness.StartNode(t, two), harness.StartNode(t, one)
	zygotes := harness.Zygotes(t)
	if len(zygotes) == 0 {
		t.Fatal("no zygote is running")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	again, err := unix.Dup(int(null.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(again)
	if !same(t, os.Getpid(), os.Getpid(), kcmpFile, int(null.Fd()), again) {
		t.Error("kcmp does not find a shared object: this test proves nothing")
	}
	for _, tc := range []struct {
		name string
		p, q int
	}{
		{"a run and the zygote", first, zygotes[0]}, {"runs of two runtimes", first, second}, {"runs of one runtime", first, third},
		{"a run and the host", first, os.Getpid()}, {"the zygote and the host", zygotes[0], os.Getpid()},
	} {
		for _, file := range sharedFiles(t, tc.p, tc.q) {
			t.Errorf("%s: descriptor %s", tc.name, file)
		}
		for kind, name := range map[int]string{
			kcmpVM: "memory", kcmpFiles: "descriptors", kcmpFS: "root and working directory", kcmpSignals: "signal handlers",
		} {
			if same(t, tc.p, tc.q, kind, 0, 0) {
				t.Errorf("%s: their %s", tc.name, name)
			}
		}
	}
	for _, pid := range []int{zygotes[0], first} {
		for _, line := range harness.Lines(fmt.Sprintf("/proc/%d/maps", pid)) {
			if fields := strings.Fields(line); len(fields) > 1 && strings.HasSuffix(fields[1], "s") {
				t.Errorf("shared memory: %s", line)
			}
		}
	}
}

// Data that a run writes to pipes of its Node reaches no other Node. libuv would take it for
// addresses, and call them.
func TestZygoteTakesNoSignalsFromRuns(t *testing.T) {
	harness.RequireZygotes(t)
	rt, other := harness.CreateForking(t, runtime.Options{}), harness.CreateForking(t, runtime.Options{})
	harness.Run(t, rt, ``, runtime.RunOptions{})
	zygotes := harness.Zygotes(t)
	goesOn := harness.StartNode(t, other)
	res := harness.Run(t, rt, `
		import fs from 'node:fs';
		const message = Buffer.from('40414141414100000100000000000000', 'hex'); // { handle, signal number }
		let written = 0;
		for (let fd = 5; fd < 64; fd++) try {
			if (fs.readlinkSync('/proc/self/fd/' + fd).startsWith('pipe:')) written += fs.writeSync(fd, message);
		} catch {}
		__return(written);
		setInterval(() => {}, 1000); // its own Node reads it`, runtime.RunOptions{Timeout: 5 * time.Second})
	if res.Signal != "SIGSEGV" || string(res.Value) == "0" {
		t.Errorf("%+v: this test proves nothing", res)
	}
	time.Sleep(100 * time.Millisecond)
	if now := harness.Zygotes(t); !slices.Equal(now, zygotes) {
		t.Errorf("zygotes %v, before %v", now, zygotes)
	}
	if unix.Kill(goesOn, 0) != nil {
		t.Error("another run has ended")
	}
}
