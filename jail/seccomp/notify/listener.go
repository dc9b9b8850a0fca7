package notify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"gaol/internal/kernfile"
	"gaol/jail/seccomp"
)

// Listener replies to the calls of all processes with a loaded filter. Call Admit first,
// if there is a launcher, then Serve, and finally Close.
type Listener struct {
	file   *os.File
	conn   syscall.RawConn
	filter *seccomp.Filter
	closed atomic.Bool

	launcher *launcher // nil if there is none, or not any more; used by Admit, and then by Serve
	calls    *rate.Limiter

	handlers map[string]func(*notification, Call) error // by label: reply to calls that Serve does not report
}

// New returns a listener for the descriptor from loading f with
// SECCOMP_FILTER_FLAG_NEW_LISTENER, which must be in non-blocking mode. It owns the file, also on error.
func New(file *os.File, f *seccomp.Filter) (*Listener, error) {
	l := &Listener{file: file, filter: f, calls: rate.NewLimiter(rate.Every(pause), Burst), handlers: map[string]func(*notification, Call) error{}}
	err := checkSizes()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails if the poller does not watch it
	}
	if err == nil {
		l.conn, err = file.SyscallConn()
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("seccomp listener: %w", err)
	}
	return l, nil
}

// Close makes Serve return. Blocked calls and later ones get ENOSYS.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.file.Close()
}

// receive waits for a call. It returns io.EOF if no process uses the filter any more, and
// os.ErrClosed after Close.
func (l *Listener) receive() (*notification, error) {
	var n *notification
	var err error
	try := func(fd uintptr) bool {
		n, err = tryReceive(int(fd))
		return err != unix.EAGAIN
	}
	for {
		switch waited := l.conn.Read(try); {
		case waited == nil:
			return n, err
		case l.closed.Load():
			return nil, os.ErrClosed
		}
		// The kernel reports an error to a poll that a signal interrupts, and the runtime
		// keeps that state until the next event.
		time.Sleep(time.Millisecond)
	}
}

// tryReceive returns a blocked call, or EAGAIN if there is none. It polls first because
// receiving blocks even with O_NONBLOCK.
func tryReceive(fd int) (*notification, error) {
	for {
		events, err := kernfile.Poll(fd, unix.POLLIN, 0)
		switch {
		case err != nil:
			return nil, err
		case events == 0:
			return nil, unix.EAGAIN
		case events&unix.POLLIN != 0:
			n := &notification{} // the kernel requires zeros
			// ENOENT: the caller was killed
			if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, n); err != unix.ENOENT && err != unix.EINTR {
				return n, os.NewSyscallError("seccomp receive", err)
			}
		case events&unix.POLLHUP != 0:
			return nil, io.EOF
		}
	}
}

// refuse replies with an errno.
func (l *Listener) refuse(n *notification, errno syscall.Errno) error {
	return l.reply(response{id: n.id, errno: -int32(errno)})
}

// permit makes the kernel execute the call. See the package documentation for when that is
// safe.
func (l *Listener) permit(n *notification) error {
	return l.reply(response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// reply ignores ENOENT: the caller was killed or interrupted.
func (l *Listener) reply(r response) error {
	err := kernfile.Control(l.file, func(fd int) error { return ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, &r) })
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// isBlocked reports whether the caller is still blocked. If so, its pid was not reused in
// the meantime.
func (l *Listener) isBlocked(n *notification) bool {
	valid := func(fd int) error { return ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) }
	return kernfile.Control(l.file, valid) == nil
}

// Call is a refused system call.
type Call struct {
	PID   int // of the calling thread, in the host's pid namespace
	Nr    int // the system call's number
	Args  [6]uint64
	Path  string        // its path argument, at most 256 arbitrary bytes; empty if it could not be read; may be forged
	Label string        // of the refusal that applies
	Errno syscall.Errno // the reply
}

const (
	// Burst is how many calls are handled without delay, after a second without calls. Others
	// wait until each has had its pause.
	Burst = 1000
	pause = time.Millisecond
)

// Serve replies to each call with the errno of its refusal. Before the reply it calls
// handle, if not nil, so that a guest never learns of a refusal before handle does. The
// guest is blocked while handle runs. Serve returns nil when no process uses the filter any
// more, or after Close. Before Linux 6.11, processes use the filter until they are waited
// for.
//
// After an error no call gets a reply: Close the listener, or guests hang.
func (l *Listener) Serve(handle func(Call)) error {
	defer func() {
		if l.launcher != nil {
			l.launcher.socket.Close()
		}
	}()
	for {
		n, err := l.receive()
		if err == nil {
			err = l.serve(n, handle)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		}
	}
}

func (l *Listener) serve(n *notification, handle func(Call)) error {
	time.Sleep(l.calls.Reserve().Delay())
	c := l.describe(n)
	image, err := l.launcher.imageOf(n.pid)
	if !l.isBlocked(n) {
		return nil // the memory and the image may be another process's
	}
	switch launching := l.fromLauncher(image); {
	case err != nil:
		return err
	case launching && n.nr == unix.SYS_EXECVE:
		return l.permit(n)
	case launching:
		return l.refuse(n, c.Errno)
	}
	if reply := l.handlers[c.Label]; reply != nil {
		return reply(n, c)
	}
	if handle != nil {
		handle(c)
	}
	return l.refuse(n, c.Errno)
}

// describe returns the call with the filter's refusal. Calls that the filter does not
// refuse get ENOSYS: the loaded filter was another one.
func (l *Listener) describe(n *notification) Call {
	c := Call{PID: int(n.pid), Nr: int(n.nr), Args: n.args, Errno: unix.ENOSYS}
	r, ok := l.filter.Refusal(c.Nr, c.Args)
	if !ok {
		return c
	}
	c.Label, c.Errno = r.Label, r.Errno
	if r.PathArg > 0 {
		c.Path = readPath(c.PID, n.args[r.PathArg-1])
	}
	return c
}

// maxPath is less than PATH_MAX: paths are for people to read.
const maxPath = 256

// readPath reads a string of another process, up to its end or maxPath bytes. It reads each
// page as one vector, because the kernel returns only whole vectors and the string may end
// just before unreadable memory.
func readPath(pid int, address uint64) string {
	var path [maxPath]byte
	page := uint64(os.Getpagesize())
	first := min(maxPath, page-address%page)
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: int(first)}}
	if first < maxPath {
		remote = append(remote, unix.RemoteIovec{Base: uintptr(address + first), Len: int(maxPath - first)})
	}
	local := []unix.Iovec{{Base: &path[0], Len: maxPath}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err != nil {
		return ""
	}
	s, _, _ := bytes.Cut(path[:n], []byte{0})
	return string(s)
}

// HandleConnects registers a function that decides about the connects that a refusal with
// the label matches. Serve does not report them. A connect to an IP address gets the errno of
// the refusal if allow, which may be nil, returns false. The kernel executes all others.
//
// The address can be another one by the time that the kernel reads it. So allow gives
// programs a clear error, and protects nothing: the connections must be checked elsewhere.
//
// Call HandleConnects before Serve.
func (l *Listener) HandleConnects(label string, allow func(to netip.AddrPort) bool) {
	l.handlers[label] = func(n *notification, c Call) error {
		to, ok := readAddress(c.PID, c.Args[1], c.Args[2])
		switch {
		case !l.isBlocked(n):
			return nil // the address may be another process's
		case ok && allow != nil && !allow(to):
			return l.refuse(n, c.Errno)
		}
		return l.permit(n)
	}
}

// readAddress reads the IP address in a struct sockaddr of another process.
func readAddress(pid int, address, size uint64) (to netip.AddrPort, ok bool) {
	var text [unix.SizeofSockaddrInet6]byte
	want := min(size&0xffff_ffff, unix.SizeofSockaddrInet6) // an int
	if want < unix.SizeofSockaddrInet4 {
		return to, false
	}
	local := []unix.Iovec{{Base: &text[0], Len: want}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: int(want)}}
	if n, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil || n < int(want) {
		return to, false
	}
	port := binary.BigEndian.Uint16(text[2:])
	switch family := binary.NativeEndian.Uint16(text[:]); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(text[4:])), port), true
	case family == unix.AF_INET6 && want == unix.SizeofSockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(text[8:])).Unmap(), port), true
	}
	return to, false
}

// HandleSockets registers a function that opens files for the calls of socket(2) that a refusal with
// the label matches. Serve replies with the descriptor of the first, and does not report the call. If
// there is a second, Serve adds it before at the descriptor in the caller's third argument, as dup2
// would. If open fails, the caller gets the errno that the error wraps, or else the refusal's errno.
// Serve closes the files after the reply.
//
// Call HandleSockets before Serve.
func (l *Listener) HandleSockets(label string, open func(Call) (reply, second *os.File, err error)) {
	l.handlers[label] = func(n *notification, c Call) error {
		reply, second, err := open(c)
		defer func() { // both may be nil
			reply.Close()
			second.Close()
		}()
		if err == nil && second != nil {
			err = l.add(addition{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, number: uint32(c.Args[2]), mode: unix.O_CLOEXEC}, second)
		}
		if err == nil {
			cloexec := uint32(c.Args[1] & unix.SOCK_CLOEXEC)                                           // equals O_CLOEXEC
			err = l.add(addition{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, mode: cloexec}, reply) // a flag of Linux 5.14
		}
		if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, os.ErrClosed) { // ENOENT: the caller was killed
			return nil
		}
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			c.Errno = errno
		}
		return l.refuse(n, c.Errno)
	}
}

// add adds a file to the caller.
func (l *Listener) add(a addition, file *os.File) error {
	a.source = uint32(file.Fd())
	return kernfile.Control(l.file, func(fd int) error { return withoutSignals(func() error { return ioctl(fd, notifAddFD, &a) }) })
}

// withoutSignals calls f with all signals blocked. The kernel replies to the call before it
// installs the descriptor: if a signal interrupts the host in between, no descriptor is
// installed and the guest's call returns 0 (seen on Linux 6.1 and 6.18).
func withoutSignals(f func() error) error {
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	goruntime.LockOSThread() // the mask is per thread
	defer goruntime.UnlockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, &before); err != nil {
		return os.NewSyscallError("rt_sigprocmask", err)
	}
	return errors.Join(f(), unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}

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
