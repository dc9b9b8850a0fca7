package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// relay is the process's half.
type relay struct {
	host     *net.UnixConn
	counters *Counters
	ready    *Readiness // of the listeners
	free     chan uint32

	ctx   context.Context // of all connections
	done  <-chan struct{} // closed when the host is gone
	tasks sync.WaitGroup
	mu    sync.Mutex
	open  map[uint32]*connection
}

// serve is the program. It returns when the host has closed the socket, or when there has been no
// connection for some time.
func serve(host *net.UnixConn, idle time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &relay{host: host, open: map[uint32]*connection{}, ctx: ctx, done: ctx.Done()}
	m, err := receive(r.host, maxFiles)
	if err != nil {
		return err
	}
	if m.Kind != Setup || len(m.FDs) < 2 || m.ID == 0 {
		return errors.New("relay: no setup")
	}
	if r.counters, err = mapCounters(m.FDs[0], int(m.ID)); err != nil {
		return err
	}
	_ = unix.Close(m.FDs[0])
	r.free = make(chan uint32, m.ID)
	for id := range m.ID {
		r.free <- id
	}
	if r.ready, err = NewReadiness(); err != nil {
		return err
	}
	for _, l := range m.FDs[1:] {
		if err := r.ready.Add(l); err != nil {
			return errors.Join(err, r.ready.Close())
		}
	}
	ended := make(chan error, 2)
	accepting := make(chan struct{})
	go func() { ended <- r.read() }()
	go func() { defer close(accepting); ended <- r.accept(m.FDs[1:], idle) }()
	err = <-ended
	cancel()
	_ = r.ready.Close()
	<-accepting
	r.tasks.Wait()
	CloseAll(m.FDs[1:])
	return err // the counters stay mapped: a timer of linger may still read them
}

// accept accepts connections until there has been none for the time idle. Nothing accepts meanwhile,
// so that none is lost.
func (r *relay) accept(listeners []int, idle time.Duration) error {
	for {
		switch err := r.ready.Wait(idle); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if len(r.free) == cap(r.free) {
				return nil
			}
			continue
		case err != nil:
			return err
		}
		for _, l := range listeners {
			r.acceptFrom(l)
		}
	}
}

// acceptFrom accepts the connections that wait. Those without a free id wait in the kernel.
func (r *relay) acceptFrom(listener int) {
	for {
		var id uint32
		select {
		case id = <-r.free:
		case <-r.done:
			return
		}
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		var guest *net.TCPConn
		if err == nil {
			guest, err = tcpConn(fd)
		}
		switch {
		case err == nil:
			r.start(id, guest)
			continue
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOBUFS):
			time.Sleep(10 * time.Millisecond) // the connection still waits
		}
		r.free <- id
		if !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// tcpConn takes over a descriptor.
func tcpConn(fd int) (*net.TCPConn, error) {
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close() // net.FileConn copies it
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	t, ok := c.(*net.TCPConn)
	switch {
	case !ok:
		return nil, errors.Join(errors.New("relay: not a TCP socket"), c.Close())
	case t.RemoteAddr() == nil: // the peer has reset the connection
		return nil, errors.Join(unix.ECONNABORTED, c.Close())
	}
	return t, nil
}

func (r *relay) start(id uint32, guest *net.TCPConn) {
	c := &connection{relay: r, id: id, guest: guest, replies: make(chan Message, 4), count: &r.counters.values[id], greeted: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(r.ctx)
	r.mu.Lock()
	r.open[id] = c
	r.mu.Unlock()
	r.tasks.Go(func() {
		c.serve()
		r.mu.Lock()
		delete(r.open, id)
		r.mu.Unlock()
		r.free <- id
	})
}

// read passes on the host's messages.
func (r *relay) read() error {
	for {
		m, err := receive(r.host, 0)
		if err != nil {
			return err
		}
		r.mu.Lock()
		c := r.open[m.ID]
		r.mu.Unlock()
		switch {
		case c == nil: // Linger may cross with Ended
		case m.Kind == Linger:
			c.linger()
		default:
			select {
			case c.replies <- m:
			case <-r.done:
				return nil
			}
		}
	}
}

// socket creates a socket that the host connects. An IPv6 socket reaches IPv4 as well.
func socket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	}
	return fd, os.NewSyscallError("socket", err)
}

// AddrPort returns a TCP or UDP address as the rules have it, and the zero AddrPort for others and nil.
func AddrPort(a net.Addr) netip.AddrPort {
	known, ok := a.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.AddrPort{}
	}
	return plain(known.AddrPort())
}

// Readiness waits for listeners that have a connection to accept.
type Readiness struct{ file *os.File }

// NewReadiness returns one without listeners. The caller closes it.
func NewReadiness() (*Readiness, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(epoll, true) // so that os.NewFile uses the poller
	}
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &Readiness{os.NewFile(uintptr(epoll), "listeners")}, nil
}

// Add adds a listener, which stays the caller's.
func (r *Readiness) Add(listener int) error {
	return kernfile.Control(r.file, func(epoll int) error {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(listener)}
		return os.NewSyscallError("epoll_ctl", unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, listener, &event))
	})
}

// Wait waits until a listener is ready. After the time, unless that is 0, the error is
// os.ErrDeadlineExceeded, and after Close os.ErrClosed.
func (r *Readiness) Wait(most time.Duration) error {
	deadline := time.Time{}
	if most > 0 {
		deadline = time.Now().Add(most)
	}
	if err := r.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	raw, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		var event [1]unix.EpollEvent
		n, err := unix.EpollWait(int(fd), event[:], 0)
		if err != nil && err != unix.EINTR {
			failed = os.NewSyscallError("epoll_wait", err)
		}
		return n > 0 || failed != nil
	})
	return errors.Join(err, failed)
}

// Close ends Wait.
func (r *Readiness) Close() error { return r.file.Close() }
