package enter

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfo is the kernel's siginfo_t for SIGCHLD on 64-bit machines. unix.Siginfo does not
// name its fields.
type siginfo struct {
	signo, errno, code, _ int32
	pid, uid, status      int32
}

func fieldsOf(info *unix.Siginfo) *siginfo { return (*siginfo)(unsafe.Pointer(info)) }

const exited = 1 // CLD_EXITED: status is an exit status, not a signal

// wait reaps a process.
func wait(kind, id int) (Exit, error) {
	var info unix.Siginfo
	err := unix.Waitid(kind, id, &info, unix.WEXITED, nil)
	for err == unix.EINTR {
		err = unix.Waitid(kind, id, &info, unix.WEXITED, nil)
	}
	switch child := fieldsOf(&info); {
	case err != nil:
		return Exit{}, err
	case child.code == exited:
		return Exit{Code: int(child.status)}, nil
	default:
		return Exit{Signal: syscall.Signal(child.status)}, nil
	}
}

// EndedInGroup returns the pid of a child of this process in the process group that has
// ended, without waiting for it. It returns 0 if none has ended, and ECHILD if the group
// contains no child of this process.
func EndedInGroup(group int) (int, error) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PGID, group, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return int(fieldsOf(&info).pid), err
}
