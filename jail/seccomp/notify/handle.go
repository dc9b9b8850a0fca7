package notify

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	goruntime "runtime"

	"gaol/jail/hostcommand"
	"gaol/jail/kernfile"

	"golang.org/x/sys/unix"
)

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

// HandleSockets registers a function that opens sockets for the calls of socket(2) that a
// refusal with the label matches. Serve replies with the descriptor and does not report
// the call. If open fails, the caller gets the errno that the error wraps, or else the
// refusal's errno. Serve closes the file after the reply.
//
// Call HandleSockets before Serve.
func (l *Listener) HandleSockets(label string, open func(Call) (*os.File, error)) {
	l.handlers[label] = func(n *notification, c Call) error {
		file, err := open(c)
		if err == nil {
			err = l.add(replyAddition(n, c), file)
			file.Close()
		}
		return l.refuseFor(err, n, c)
	}
}

// HandleCommands registers a function that opens the guest's ends of a call's pipes, for the
// calls of socket(2) that a refusal with the label matches. Serve adds the end to read from at
// the descriptor in the caller's third argument, as dup2 would, and returns the other end. It
// does not report the call. If open fails, the caller gets the errno that the error wraps, or
// else the refusal's errno. Serve closes the ends after the reply.
//
// Call HandleCommands before Serve.
func (l *Listener) HandleCommands(label string, open func(Call) (hostcommand.Ends, error)) {
	l.handlers[label] = func(n *notification, c Call) error {
		ends, err := open(c)
		if err == nil {
			answers := addition{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, number: uint32(c.Args[2]), mode: unix.O_CLOEXEC}
			if err = l.add(answers, ends.Answers); err == nil {
				err = l.add(replyAddition(n, c), ends.Requests)
			}
			ends.Close()
		}
		return l.refuseFor(err, n, c)
	}
}

// refuseFor refuses a call whose descriptors could not be opened or added. It does nothing without an error, or if
// the caller was killed (ENOENT).
func (l *Listener) refuseFor(err error, n *notification, c Call) error {
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		c.Errno = errno
	}
	return l.refuse(n, c.Errno)
}

// replyAddition returns the addition of the descriptor that a call of socket(2) returns, by a flag of Linux 5.14.
func replyAddition(n *notification, c Call) addition {
	a := addition{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND}
	if c.Args[1]&unix.SOCK_CLOEXEC != 0 {
		a.mode = unix.O_CLOEXEC
	}
	return a
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
