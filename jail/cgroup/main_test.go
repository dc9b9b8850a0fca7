package cgroup

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary act as a guest: its value is a role and an argument.
const helperEnv = "GAOL_CGROUP_HELPER"

// This runs on the first thread, which stays the main goroutine's.
func init() {
	if os.Getenv(helperEnv) == "headless" {
		goruntime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if role, arg, _ := strings.Cut(os.Getenv(helperEnv), " "); role != "" {
		address = arg
		bufio.NewReader(os.Stdin).ReadString('\n') // wait until it is in its group
		roles[role]()
		os.Exit(0)
	}
	code := m.Run()
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		if left, _ := filepath.Glob(filepath.Join(pattern, testPrefix+"*")); left != nil {
			fmt.Fprintln(os.Stderr, "cgroups left behind:", left)
			code = 1
		}
	}
	os.Exit(code)
}

var address string // the argument of the role

var roles = map[string]func(){
	"sleep": func() { time.Sleep(time.Minute) },
	"stop": func() {
		unix.Kill(os.Getpid(), unix.SIGSTOP)
		time.Sleep(time.Minute) // the signal may take a moment
	},
	"headless": func() {
		go time.Sleep(time.Minute)
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // of this thread
	},
	"spin": func() {
		var used unix.Rusage
		for used.Utime.Nano()+used.Stime.Nano() < int64(50*time.Millisecond) { // not wall-clock time: the machine may be busy
			if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
				panic(err)
			}
		}
	},
	"write": func() {
		var file string
		var size int
		if _, err := fmt.Sscan(address, &file, &size); err != nil {
			panic(err)
		}
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			panic(err)
		}
	},
	"send": func() { // to a peer that does not read
		conn, err := net.Dial("tcp", address)
		if err != nil {
			panic(err)
		}
		for {
			conn.Write(make([]byte, 1<<16))
		}
	},
	"allocate": func() {
		b, err := unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			panic(err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	},
	// Parent and child both continue the loop. Only raw system calls work in the fork of
	// a Go program.
	"forkbomb": func() {
		for {
			unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		}
	},
	// Each process forks one and exits, so that most signals come too late.
	"forkchain": func() {
		for {
			if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
	},
}

const fileSize = 8 << 20

// writeRole returns a role that writes a file, which is removed when the test ends. Its
// pages, in a tmpfs or the page cache, stay charged to the group that created them.
func writeRole(t *testing.T, dir string, size int) (role, file string) {
	t.Helper()
	f, err := os.CreateTemp(dir, "gaol-test-cgroup-")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	t.Cleanup(func() { os.Remove(f.Name()) })
	return fmt.Sprintf("write %s %d", f.Name(), size), f.Name()
}

const tmpfs = "/dev/shm"

var (
	// Unique, as other packages' tests may run at the same time.
	testPrefix = fmt.Sprintf("gaol-test-cgroup-%d-", os.Getpid())
	testCount  atomic.Int64
)

func testPath() string { return fmt.Sprintf("/%s%d", testPrefix, testCount.Add(1)) }

// guest starts a helper in g and the other groups, and then lets it begin its role.
func guest(t testing.TB, g *Group, role string, also ...*Group) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{helperEnv + "=" + role}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for _, g := range append(also, g) {
		if err := g.AddPID(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// kill fails the test if the group is not empty within ten seconds.
func kill(t testing.TB, g *Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.Kill(ctx); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until the group holds n processes.
func waitFor(t testing.TB, g *Group, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		pids, err := listProcs(g.Dirs()[:1])
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d processes", len(pids), n)
		}
	}
}
