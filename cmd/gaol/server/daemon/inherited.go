package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server"
	"gaol/runtime"
)

// InheritedOptions are the options of [RunInherited].
type InheritedOptions struct {
	FD     int // of a connected unix stream socket
	Server server.SingleOptions

	// TakeSignals is called when RunInherited handles SIGHUP, SIGINT and SIGTERM itself. It may be nil.
	TakeSignals func()
}

// RunInherited serves the connection that this process has inherited, until it ends or SIGTERM arrives.
// SIGINT and SIGHUP have no effect: a terminal also sends them to the program at the other end, which
// decides what they mean.
func RunInherited(ctx context.Context, o InheritedOptions) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can serve an inherited socket")
	}
	c, err := inherit(o.FD)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT, syscall.SIGHUP) // not signal.Ignore, which child processes would inherit
	defer signal.Stop(ignored)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one ends the process
	if o.TakeSignals != nil {
		o.TakeSignals()
	}
	idle, stopIdle := context.WithCancel(ctx)
	defer stopIdle()
	go repeat(idle, defaultIdleEvery, func() {
		if err := runtime.CloseIdle(); err != nil {
			o.Server.Log.Error("stop idle zygotes", "err", err)
		}
	})
	return server.ServeSingle(ctx, c, o.Server)
}

// inherit returns the connection of a descriptor, which it closes.
func inherit(fd int) (*net.UnixConn, error) {
	if fd < 3 {
		return nil, fmt.Errorf("descriptor %d: want one above those of standard input, output and error", fd)
	}
	if err := checkConnected(fd); err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	unix.CloseOnExec(fd) // until it is closed, child processes must not inherit it
	f := os.NewFile(uintptr(fd), "inherited socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return c.(*net.UnixConn), nil
}

// checkConnected returns an error unless a descriptor is a connected unix stream socket.
func checkConnected(fd int) error {
	errKind := errors.New("want a connected unix stream socket")
	for option, want := range map[int]int{unix.SO_DOMAIN: unix.AF_UNIX, unix.SO_TYPE: unix.SOCK_STREAM, unix.SO_ACCEPTCONN: 0} {
		switch got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); {
		case err == unix.ENOTSOCK || err == nil && got != want:
			return errKind
		case err != nil:
			return err
		}
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return errKind
	}
	return nil
}
