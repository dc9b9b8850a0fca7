package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/internal/kernfile"
	"gaol/jail/seccomp"

	"golang.org/x/sys/unix"
)

// guest is a copy under a filter with a listener.
type guest struct {
	*Listener
	cmd    *exec.Cmd
	out    bytes.Buffer
	conn   *os.File // to its socket
	theirs *os.File // the other end
}

// start starts a copy under the filter with these restrictions.
func start(t testing.TB, rows []seccomp.Row, o order) *guest {
	t.Helper()
	f, err := seccomp.Compile(rows, true)
	if err != nil {
		t.Fatal(err)
	}
	o.Filter = f.Program
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{theirs: os.NewFile(uintptr(fds[1]), "theirs")}
	t.Cleanup(func() { g.theirs.Close() })
	g.cmd = exec.Command("/proc/self/exe")
	g.cmd.Env = []string{helperEnv + "=" + string(text)}
	g.cmd.ExtraFiles = []*os.File{g.theirs}
	g.cmd.Stdout, g.cmd.Stderr = &g.out, os.Stderr
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.cmd.ProcessState == nil {
			_ = g.cmd.Process.Kill()
			_ = g.cmd.Wait()
		}
	})
	fd := receiveFD(t, fds[0])
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	g.conn = os.NewFile(uintptr(fds[0]), "conn")
	t.Cleanup(func() { g.conn.Close() })
	if g.Listener, err = New(fd, f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func receiveFD(t testing.TB, conn int) *os.File {
	t.Helper()
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(conn, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "listener")
}

// serve calls Serve in a goroutine. The channel is closed when Serve returns.
func (g *guest) serve(t testing.TB, handle func(Call)) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Serve(handle); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		g.Close()
		<-done
	})
	return done
}

// errnos waits for the copy's end and returns the errnos of its calls.
func (g *guest) errnos(t testing.TB) []syscall.Errno {
	t.Helper()
	if err := g.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var list []syscall.Errno
	if err := json.Unmarshal(g.out.Bytes(), &list); err != nil {
		t.Fatalf("%q: %v", &g.out, err)
	}
	return list
}

// runCalls runs a copy to its end and returns the reported calls.
func runCalls(t testing.TB, rows []seccomp.Row, o order) (g *guest, calls []Call, errnos []syscall.Errno) {
	t.Helper()
	g = start(t, rows, o)
	done := g.serve(t, func(c Call) {
		calls = append(calls, c)
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", g.cmd.Process.Pid, c.PID)); err != nil {
			t.Errorf("not a thread of the guest: %v", err)
		}
	})
	errnos = g.errnos(t)
	await(t, done, "Serve, after the last process's end")
	return g, calls, errnos
}

func await(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("timeout waiting for %s", what)
	}
}

// blocked waits until a thread of the copy is blocked in a refused call.
func (g *guest) blocked(t testing.TB) {
	t.Helper()
	for range 2000 {
		fds := []unix.PollFd{{Fd: int32(g.fd(t)), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, 5); n > 0 && fds[0].Revents&unix.POLLIN != 0 {
			return
		}
	}
	t.Fatal("no call came")
}

func (g *guest) fd(t testing.TB) (number int) {
	t.Helper()
	if err := kernfile.Control(g.file, func(fd int) error { number = fd; return nil }); err != nil {
		t.Fatal(err)
	}
	return number
}

// openFiles returns this process's descriptors except descriptors of /proc.
func openFiles(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.Contains(to, "/proc/") {
			list = append(list, e.Name()+" "+to)
		}
	}
	slices.Sort(list)
	return list
}
