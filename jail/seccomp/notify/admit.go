package notify

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// launcher is the trusted process that loads the filter and executes the guest's program.
type launcher struct {
	socket *os.File // a duplicate of the host's end of its socket
	image  []byte   // identifies it, by its first call, when no guest code runs yet
}

// Admit makes Serve permit a launcher to execute the guest's program: the kernel executes the
// launcher's execve calls, of which a search in PATH makes several. Serve refuses its other calls
// and does not report them. That ends when the launcher's end of conn is closed, or with the first
// call of another program. Admit does not use the data of conn, which the caller closes.
//
// Call Admit before Serve. Preconditions: only the launcher, a single process that runs no guest
// code, has the filter; its end of conn is closed on execve.
func (l *Listener) Admit(conn syscall.Conn) error {
	if _, refused := l.filter.Refusal(unix.SYS_EXECVE, [6]uint64{}); !refused {
		return nil // the launcher's execve is allowed, so all refused calls are the program's
	}
	own, err := kernfile.Duplicate(conn)
	if err == nil {
		l.launcher = &launcher{socket: os.NewFile(uintptr(own), "launcher")}
	}
	return err
}

// fromLauncher reports whether the launcher makes a call, by the caller's image. After the first
// call of another program it always returns false.
func (l *Listener) fromLauncher(image []byte) bool {
	k := l.launcher
	if k == nil {
		return false
	}
	if k.image == nil {
		k.image = image
	}
	if image == nil || k.hasEnded() || !bytes.Equal(image, k.image) {
		k.socket.Close()
		l.launcher = nil
		return false
	}
	return true
}

// imageOf returns the auxiliary vector of a process, or nothing without a launcher. It differs after
// each execve, even of the same file, because it contains random addresses. A process can change it
// only by a prctl that no filter here allows.
func (l *launcher) imageOf(pid uint32) ([]byte, error) {
	if l == nil {
		return nil, nil
	}
	return os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/auxv")
}

// hasEnded reports whether the launcher's end of the socket is closed, even if there is unread data.
func (l *launcher) hasEnded() bool {
	events, err := kernfile.Poll(int(l.socket.Fd()), unix.POLLRDHUP, 0)
	return events != 0 || err != nil // on error permit nothing more
}
