package reap

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

// begin starts a shell script, which nobody but the test waits for.
func begin(t testing.TB, script string) *Child {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := Take(cmd.Process.Pid)
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
		{"(while kill -CONT $$; do sleep 0.1; done) & kill -STOP $$; exit 3", Exit{Code: 3}}, // a stop is no end
		{"exec sh -c 'exit 5'", Exit{Code: 5}},
	} {
		if got, err := begin(t, tc.script).Wait(); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", tc.script, got, err, tc.want)
		}
	}
}

// A child that ended before anybody asked is waited for as well, and nothing is left
// of one that was.
func TestWaitLate(t *testing.T) {
	c := begin(t, "exit 4")
	waitForState(t, c, "zombie")
	if got, err := c.Wait(); err != nil || got.Code != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if text := status(c.PID()); text != "" {
		t.Errorf("it is still there: %s", text)
	}
	if err := c.Kill(); err != nil {
		t.Errorf("killing it: %v", err)
	}
	if exit, err := c.Wait(); err == nil {
		t.Errorf("waiting again: %+v", exit)
	}
}

func waitForState(t *testing.T, c *Child, state string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(status(c.PID()), "("+state+")"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not %s", state)
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

func TestTakeNobody(t *testing.T) {
	c := begin(t, "exit 0")
	if _, err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(c.PID()); !errors.Is(err, unix.ESRCH) {
		t.Errorf("a child that was waited for: %v", err)
	}
}

// A child that the poller does not watch is waited for all the same.
func TestWaitUnwatched(t *testing.T) {
	c := begin(t, "sleep 0.05; exit 6")
	fd, err := unix.PidfdOpen(c.PID(), 0) // the poller takes none that blocks
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
		t.Error("it is watched: this test proves nothing")
	}
	if got, err := c.Wait(); err != nil || got.Code != 6 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A child that can't be taken charge of does not stay.
func TestTakeWithoutDescriptors(t *testing.T) {
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
	_, err := Take(cmd.Process.Pid)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("%v, want EMFILE", err)
	}
	if err := unix.Kill(cmd.Process.Pid, 0); err != unix.ESRCH {
		t.Errorf("the child is there: %v", err)
	}
}

// Many ends at once are all told, each to who waits for it.
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

// BenchmarkWait is of a child that is waited for as it ends.
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
