package jail

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
	"gaol/jail/step"
)

// TerminalSize is the size of a terminal's window. Neither number may be zero.
type TerminalSize struct{ Rows, Cols uint16 } // characters

// Terminal is a pseudo-terminal of the jail's devpts, for one process. No process of the
// jail gets the host's end. All processes of the guest's user can open the other end, by
// its name in /dev/pts, and so read its input.
type Terminal struct {
	// Host is the host's end: writes to it are input, and reads return output. Reads fail
	// with EIO unless a process has opened the other end.
	Host *os.File

	// Guest is the other end, for the process. The guest's user owns it.
	Guest *os.File

	// Kept is the other end, too: while it is open, reads of Host wait for more output.
	Kept *os.File
}

var errNotTerminal = errors.New("not the jail's own devpts")

// OpenTerminal opens a terminal. The guest can use up the 64 of its devpts: the error then
// wraps ENOSPC.
func (j *Jail) OpenTerminal(size TerminalSize) (*Terminal, error) {
	root, err := j.Root()
	if err != nil {
		return nil, step.Wrap("open", "terminal", err)
	}
	defer root.Close()
	t := &Terminal{}
	// The multiplexer of the jail's devpts, so that the terminal gets a name in it. The host's
	// end does not block a thread.
	t.Host, err = mounts.OpenBeneath(root, "dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK)
	if err == nil {
		err = t.control(func(fd int) error { return t.openGuest(fd, j.slot.firstHostID()+GuestUID, size) })
	}
	if err != nil {
		t.Close()
		return nil, step.Wrap("open", "terminal", err)
	}
	return t, nil
}

// control calls f with the descriptor of the host's end.
func (t *Terminal) control(f func(fd int) error) (err error) {
	conn, err := t.Host.SyscallConn()
	if err == nil && conn.Control(func(fd uintptr) { err = f(int(fd)) }) != nil {
		err = os.ErrClosed
	}
	return err
}

// openGuest opens the guest's end by the host's, as its name may be hidden in the tree.
func (t *Terminal) openGuest(host, uid int, size TerminalSize) error {
	var fs unix.Statfs_t
	err := unix.Fstatfs(host, &fs)
	if err == nil && fs.Type != unix.DEVPTS_SUPER_MAGIC {
		err = errNotTerminal
	}
	if err != nil {
		return err
	}
	if err = unix.IoctlSetPointerInt(host, unix.TIOCSPTLCK, 0); err != nil {
		return os.NewSyscallError("ioctl", err)
	}
	if t.Guest, err = openPeer(host); err != nil {
		return err
	}
	if t.Kept, err = openPeer(host); err != nil {
		return err
	}
	if err = t.Guest.Chown(uid, -1); err != nil { // devpts sets the group
		return err
	}
	return resize(host, size)
}

func openPeer(host int) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(host), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		return nil, os.NewSyscallError("ioctl", errno)
	}
	return os.NewFile(fd, "terminal"), nil
}

// Resize sets the window size, which sends SIGWINCH to the terminal's foreground process
// group. It returns os.ErrClosed if the host's end is closed.
func (t *Terminal) Resize(size TerminalSize) error {
	return t.control(func(fd int) error { return resize(fd, size) })
}

func resize(fd int, size TerminalSize) error {
	if size.Rows == 0 || size.Cols == 0 {
		return unix.EINVAL
	}
	return os.NewSyscallError("ioctl", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}))
}

// EndOfInput returns the key that means the end of the input if it is typed at the
// beginning of a line. Programs can change it.
func (t *Terminal) EndOfInput() (key byte, err error) {
	err = t.control(func(fd int) error {
		settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			key = settings.Cc[unix.VEOF]
		}
		return os.NewSyscallError("ioctl", err)
	})
	return key, err
}

// Close closes all ends. Processes on the terminal get SIGHUP and the end of the input.
func (t *Terminal) Close() {
	for _, f := range []*os.File{t.Guest, t.Kept, t.Host} { // may be nil
		f.Close()
	}
}
