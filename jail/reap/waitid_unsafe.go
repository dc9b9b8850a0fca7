package reap

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfo is the kernel's siginfo_t for SIGCHLD, as 64-bit machines have it.
// unix.Siginfo does not name its fields.
type siginfo struct {
	signo, errno, code, _ int32
	pid, uid, status      int32
}

func of(info *unix.Siginfo) *siginfo { return (*siginfo)(unsafe.Pointer(info)) }

const exited = 1 // CLD_EXITED: status is an exit status, and not a signal

// wait reaps a process.
func wait(kind, id int) (Exit, error) {
	var info unix.Siginfo
	err := unix.Waitid(kind, id, &info, unix.WEXITED, nil)
	for err == unix.EINTR {
		err = unix.Waitid(kind, id, &info, unix.WEXITED, nil)
	}
	switch child := of(&info); {
	case err != nil:
		return Exit{}, err
	case child.code == exited:
		return Exit{Code: int(child.status)}, nil
	default:
		return Exit{Signal: syscall.Signal(child.status)}, nil
	}
}

// EndedInGroup returns a child of this process in a process group that has ended and
// that nobody has waited for, and leaves it so. Zero: none has ended. ECHILD: there
// is no child in the group.
func EndedInGroup(group int) (int, error) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PGID, group, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return int(of(&info).pid), err
}
