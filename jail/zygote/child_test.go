package zygote

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// inGroup starts a program in a process group, or in a new one if group is zero.
func inGroup(t *testing.T, group int, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// reapLost reaps the unknown child and leaves others to their waiters.
func TestReapLost(t *testing.T) {
	zygote := inGroup(t, 0, "sleep", "60")
	group := zygote.Process.Pid
	other := inGroup(t, 0, "true")
	first := inGroup(t, group, "true")
	lost := inGroup(t, group, "sleep", "0.05")
	_ = zygote.Process.Kill()
	_ = zygote.Wait()

	z := &Zygote{process: zygote.Process, lost: true}
	host, run, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	c, err := z.adopt(first.Process.Pid, host)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	time.AfterFunc(20*time.Millisecond, func() { // until then, first is the child that has ended
		defer close(waited)
		if exit, err := c.Wait(); err != nil || exit.Code != 0 || exit.Signal != 0 {
			t.Errorf("the known child: %+v, %v", exit, err)
		}
	})
	if err := z.reapLost(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(lost.Process.Pid, 0); err != unix.ESRCH {
		t.Errorf("the lost child was not reaped: %v", err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("a child of another group: %v", err)
	}
	if err := z.reapLost(); err != nil {
		t.Errorf("without a lost child: %v", err)
	}
	<-waited
	if _, isKnown := z.children.Load(first.Process.Pid); isKnown {
		t.Error("a child that was waited for is still known")
	}
}
