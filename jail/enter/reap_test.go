package enter

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// begin starts a shell script that only the test waits for.
func begin(t testing.TB, script string) *Child {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := Adopt(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWait(t *testing.T) {
	for _, tc := range []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 255", Exit{Code: 255}},
		{"sleep 0.05; exit 7", Exit{Code: 7}},
		{"kill -TERM $$", Exit{Signal: unix.SIGTERM}},
		{"ulimit -c 0; kill -SEGV $$", Exit{Signal: unix.SIGSEGV}},
		{"(while kill -CONT $$; do sleep 0.1; done) & kill -STOP $$; exit 3", Exit{Code: 3}}, // stopped is not ended
		{"exec sh -c 'exit 5'", Exit{Code: 5}},
	} {
		if got, err := begin(t, tc.script).Wait(); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", tc.script, got, err, tc.want)
		}
	}
}

// Wait reaps a child that ended before the call, and leaves nothing of it.
func TestWaitLate(t *testing.T) {
	c := begin(t, "exit 4")
	waitForState(t, c, "zombie")
	if got, err := c.Wait(); err != nil || got.Code != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if text := status(c.PID()); text != "" {
		t.Errorf("not reaped: %s", text)
	}
	if err := c.Kill(); err != nil {
		t.Errorf("kill: %v", err)
	}
	if exit, err := c.Wait(); err == nil {
		t.Errorf("second wait: %+v", exit)
	}
}

func waitForState(t *testing.T, c *Child, state string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(status(c.PID()), "("+state+")"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the child is not %s", state)
		}
	}
}

func status(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return string(text)
}

func TestKill(t *testing.T) {
	c := begin(t, "trap '' TERM; while :; do sleep 1; done")
	time.AfterFunc(20*time.Millisecond, func() {
		if err := errors.Join(c.Kill(), c.Kill()); err != nil {
			t.Error(err)
		}
	})
	if got, err := c.Wait(); err != nil || got.Signal != unix.SIGKILL {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAdoptReapedChild(t *testing.T) {
	c := begin(t, "exit 0")
	if _, err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Adopt(c.PID()); !errors.Is(err, unix.ESRCH) {
		t.Errorf("got %v, want ESRCH", err)
	}
}

// Wait blocks a thread if the poller does not watch the child.
func TestWaitWithoutPoller(t *testing.T) {
	c := begin(t, "sleep 0.05; exit 6")
	fd, err := unix.PidfdOpen(c.PID(), 0) // the poller does not watch blocking descriptors
	if err != nil {
		t.Fatal(err)
	}
	c.pidfd.Close()
	c.pidfd = os.NewFile(uintptr(fd), "pidfd")
	if c.conn, err = c.pidfd.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	if c.conn.Read(func(uintptr) bool { return false }) == nil {
		t.Error("the poller watches it: this test proves nothing")
	}
	if got, err := c.Wait(); err != nil || got.Code != 6 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Adopt kills a child that it can't open a pidfd for.
func TestAdoptWithoutDescriptors(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 0, Max: was.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := Adopt(cmd.Process.Pid)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("%v, want EMFILE", err)
	}
	if err := unix.Kill(cmd.Process.Pid, 0); err != unix.ESRCH {
		t.Errorf("the child exists: %v", err)
	}
}

// Each of many waiters learns of its own child.
func TestWaitMany(t *testing.T) {
	var waits sync.WaitGroup
	for i := range 100 {
		c := begin(t, "sleep 0.1; exit "+strconv.Itoa(i%10))
		waits.Go(func() {
			if got, err := c.Wait(); err != nil || got.Code != i%10 {
				t.Errorf("%+v, %v, want %d", got, err, i%10)
			}
		})
	}
	waits.Wait()
	if _, err := unix.Wait4(-1, nil, syscall.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("children are left: %v", err)
	}
}

// BenchmarkWait starts a child and waits for its end.
func BenchmarkWait(b *testing.B) {
	for b.Loop() {
		if _, err := begin(b, "exit 0").Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSignal(t *testing.T) {
	c := begin(t, "trap 'exit 9' USR1; kill -STOP $$; while :; do sleep 0.01; done")
	waitForState(t, c, "stopped") // the trap is set
	if err := errors.Join(c.Signal(unix.SIGUSR1, false), c.Signal(unix.SIGCONT, false)); err != nil {
		t.Error(err)
	}
	if exit, err := c.Wait(); err != nil || exit.Code != 9 {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := c.Signal(unix.SIGUSR1, false); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
}
