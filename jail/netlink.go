package jail

import (
	"bytes"
	"errors"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp/notify"
)

// routeSockets opens netlink sockets of the route family for one run, and limits their
// number: the kernel charges what such a socket has queued to no cgroup.
type routeSockets struct {
	jail *Jail

	// watched is an epoll instance with all open sockets. It does not keep them open: the
	// kernel removes a socket when its last descriptor is closed, in whichever process.
	watched *os.File // nil before the first
}

// close stops counting. It does not close sockets.
func (r *routeSockets) close() {
	r.watched.Close() // may be nil
	r.watched = nil
}

// open opens the socket that a call of socket(2) asks for. It returns ENOBUFS while the run
// has too many.
func (r *routeSockets) open(c notify.Call) (*os.File, error) {
	if r.watched == nil {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return nil, unix.ENOBUFS
		}
		r.watched = os.NewFile(uintptr(fd), "route sockets")
	}
	n, err := r.count()
	if err != nil || n >= maxRouteSockets() {
		return nil, unix.ENOBUFS
	}
	const typeMask = 0xf // SOCK_TYPE_MASK: the other bits are flags
	f, err := r.jail.netlinkSocket(int(c.Args[1]&(typeMask|unix.SOCK_NONBLOCK)), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, unix.ENOBUFS
	}
	if err := unix.EpollCtl(int(r.watched.Fd()), unix.EPOLL_CTL_ADD, int(f.Fd()), &unix.EpollEvent{}); err != nil {
		f.Close()
		return nil, unix.ENOBUFS
	}
	return f, nil
}

// count returns the number of open sockets: the epoll instance's file in /proc has a line
// for each, see proc(5).
func (r *routeSockets) count() (int, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(r.watched.Fd())))
	return bytes.Count(text, []byte("tfd:")), err
}

// netlinkSocket opens a socket in the jail's network namespace, on a thread without
// capabilities: the kernel remembers those that a netlink socket was opened with.
func (j *Jail) netlinkSocket(kind, protocol int) (f *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f, err = openNetlink(j.pidfd, kind, protocol)
	}()
	<-done
	return f, err
}

// openNetlink opens a socket in the network namespace of a process.
//
// Preconditions: the thread is locked, and is not used again.
func openNetlink(pidfd *os.File, kind, protocol int) (*os.File, error) {
	if err := unix.Setns(int(pidfd.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("setns", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return nil, os.NewSyscallError("capset", err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return os.NewFile(uintptr(fd), "netlink socket"), nil
}

// maxRouteMemory limits what the sockets of a run hold, unless net.core.rmem_max is more
// than half of it: a run may have one in any case.
const maxRouteMemory = 32 << 20

// maxRouteSockets returns how many sockets a run may have at once. The kernel doubles
// the size of a receive buffer, and allows up to net.core.rmem_max (socket(7)).
var maxRouteSockets = sync.OnceValue(func() int {
	const most, usual = 16, 212_992
	size := usual
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); errors.Join(err, bad) == nil && n > 0 {
		size = n
	}
	return min(most, max(1, maxRouteMemory/(2*size)))
})
