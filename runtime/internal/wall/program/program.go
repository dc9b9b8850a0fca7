package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
)

// outputWait is how long descendants of a program may keep its output open after its end.
const outputWait = 5 * time.Second

// Start starts a program in a cgroup and in its own session, without a core file. The kernel kills it when this thread ends.
//
// Preconditions: the thread ends with its goroutine, after the program.
func Start(cmd *exec.Cmd, group *cgroup.Group) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	a := cmd.SysProcAttr
	a.Setsid, a.Pdeathsig, a.Ptrace = true, unix.SIGKILL, true // it stops before its first instruction
	cmd.WaitDelay = outputWait
	if err := enter.StartError(cmd.Start()); err != nil {
		return err
	}
	err := join(cmd.Process.Pid, a.Credential, group)
	if err != nil {
		_, _ = cmd.Process.Kill(), cmd.Wait() // the reason is err
	}
	return err
}

// join moves the stopped program to the cgroup, forbids core files, and makes it continue.
//
// Preconditions: as Start.
func join(pid int, user *syscall.Credential, group *cgroup.Group) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return os.NewSyscallError("wait4", err)
	}
	if !status.Stopped() {
		return errors.New("the program was killed")
	}
	if err := group.AddPID(pid); err != nil {
		return err
	}
	if user != nil {
		if err := setRealIDs(user); err != nil {
			return err
		}
	}
	// As for a jail's processes: not 0, because a core handler of the host would still be started, see core(5).
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil); err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	return os.NewSyscallError("ptrace", unix.PtraceDetach(pid))
}

// setRealIDs sets the real user and group of this thread, which may then limit processes that have them, also without CAP_SYS_RESOURCE.
func setRealIDs(user *syscall.Credential) error {
	const same = ^uintptr(0)
	for call, id := range map[uintptr]uint32{unix.SYS_SETRESGID: user.Gid, unix.SYS_SETRESUID: user.Uid} {
		if _, _, errno := unix.RawSyscall(call, uintptr(id), same, same); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
	}
	return nil
}

// maxOutput bounds an Output in bytes.
const maxOutput = 4 << 10

// Output keeps the first bytes that are written to it.
type Output []byte

// Write implements [io.Writer].
func (o *Output) Write(text []byte) (int, error) {
	*o = append(*o, text[:min(len(text), maxOutput-len(*o))]...)
	return len(text), nil
}

// Explain adds the output of a wall to an error.
func (o Output) Explain(wall string, err error) error {
	if text := strings.TrimSpace(string(o)); text != "" {
		return fmt.Errorf("%w: %s: %s", err, wall, strings.ToValidUTF8(text, "?"))
	}
	return err
}
