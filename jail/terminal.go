package jail

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TerminalSize is a terminal's window. Neither may be zero.
type TerminalSize struct{ Rows, Cols uint16 } // characters

// Terminal is a pseudo-terminal of a jail's own devpts, for one process. No process
// of the jail gets its host's end. All that have the jail's user can open the other,
// by its name in /dev/pts, and so see and take what is typed.
type Terminal struct {
	// Host is the host's end: what is written to it is typed, and what is read is shown.
	// Reads of it fail with EIO while nobody has the other end open.
	Host *os.File

	// Guest is the other end, for the process. The guest's user owns it.
	Guest *os.File

	// Kept is the other end again: as long as it is open, reads of Host wait for more.
	Kept *os.File
}

var errNotTerminal = errors.New("not the jail's own devpts")

// OpenTerminal makes a terminal. The guest can use up what its devpts holds, 64: the
// error then wraps ENOSPC.
func (j *Jail) OpenTerminal(size TerminalSize) (*Terminal, error) {
	host, err := j.openPTMX()
	if err != nil {
		return nil, stepError("open", "terminal", err)
	}
	t := &Terminal{Host: host}
	if err := t.control(func(fd int) error { return t.openGuest(fd, j.slot.firstHostID()+GuestUID, size) }); err != nil {
		t.Close()
		return nil, stepError("open", "terminal", err)
	}
	return t, nil
}

// openPTMX opens the jail's multiplexer, from where the terminal's files then are: so
// that the guest knows it by a name. The end does not block a thread.
func (j *Jail) openPTMX() (*os.File, error) {
	root, err := j.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	how := unix.OpenHow{
		Flags:   unix.O_RDWR | unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(root.Fd()), "dev/pts/ptmx", &how)
	if err != nil {
		return nil, os.NewSyscallError("openat2", err)
	}
	var fs unix.Statfs_t
	if err = unix.Fstatfs(fd, &fs); err == nil && fs.Type != unix.DEVPTS_SUPER_MAGIC {
		err = errNotTerminal
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

// control has f use the descriptor of the host's end.
func (t *Terminal) control(f func(fd int) error) (err error) {
	conn, err := t.Host.SyscallConn()
	if err == nil && conn.Control(func(fd uintptr) { err = f(int(fd)) }) != nil {
		err = os.ErrClosed
	}
	return err
}

// openGuest opens the guest's end, by its host's: the name may be hidden in the guest's tree.
func (t *Terminal) openGuest(host, uid int, size TerminalSize) (err error) {
	if err = unix.IoctlSetPointerInt(host, unix.TIOCSPTLCK, 0); err != nil {
		return os.NewSyscallError("ioctl", err)
	}
	if t.Guest, err = openPeer(host); err != nil {
		return err
	}
	if t.Kept, err = openPeer(host); err != nil {
		return err
	}
	if err = t.Guest.Chown(uid, -1); err != nil { // devpts has set the group
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

// Resize sets the window's size, which sends SIGWINCH to the terminal's foreground
// process group. Where the host's end is closed the error is os.ErrClosed.
func (t *Terminal) Resize(size TerminalSize) error {
	return t.control(func(fd int) error { return resize(fd, size) })
}

func resize(fd int, size TerminalSize) error {
	if size.Rows == 0 || size.Cols == 0 {
		return unix.EINVAL
	}
	return os.NewSyscallError("ioctl", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}))
}

// EndOfInput is what, typed at the beginning of a line, tells a program that reads
// lines that there are no more. A program can change it.
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

// Close closes all ends. What uses the terminal gets SIGHUP, and the end of input.
func (t *Terminal) Close() {
	for _, f := range []*os.File{t.Guest, t.Kept, t.Host} {
		if f != nil {
			f.Close()
		}
	}
}
