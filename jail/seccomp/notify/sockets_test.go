package notify

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"gaol/jail/seccomp"

	"golang.org/x/sys/unix"
)

var netlink = call{Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}}

func TestHandleSockets(t *testing.T) {
	g := start(t, slices.Concat(restrictions(), seccomp.LimitedNetlink), order{Calls: []call{netlink, netlink, netlink, inet}})
	answers := []error{nil, unix.EMFILE, errors.New("no errno")}
	var kinds []uint64
	g.HandleSockets(seccomp.Netlink, func(c Call) (reply, _ *os.File, err error) {
		err = answers[len(kinds)]
		kinds = append(kinds, c.Args[1])
		if err == nil {
			reply, err = os.Open(os.DevNull)
		}
		return reply, nil, err
	})
	var reported []string
	done := g.serve(t, func(c Call) { reported = append(reported, c.Label) })
	want := []syscall.Errno{0, unix.EMFILE, unix.ENOBUFS, unix.EACCES}
	if got := g.errnos(t); !slices.Equal(got, want) {
		t.Errorf("the guest got %v, want %v", got, want)
	}
	await(t, done, "Serve")
	if !slices.Equal(reported, []string{"socket"}) || len(kinds) != 3 || kinds[0] != unix.SOCK_RAW|unix.SOCK_CLOEXEC {
		t.Errorf("reported %v, opened %x", reported, kinds)
	}
}

// Without HandleSockets such calls are refused.
func TestHandleNoSockets(t *testing.T) {
	g := start(t, seccomp.LimitedNetlink, order{Calls: []call{netlink}})
	done := g.serve(t, nil)
	if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.ENOBUFS}) {
		t.Errorf("the guest got %v", got)
	}
	await(t, done, "Serve")
}

// A guest that is killed while its descriptor is opened leaves nothing open.
func TestHandleSocketsKilled(t *testing.T) {
	g := start(t, seccomp.LimitedNetlink, order{Calls: []call{netlink}})
	var file *os.File
	g.HandleSockets(seccomp.Netlink, func(Call) (reply, _ *os.File, err error) {
		kill(t, g)
		file, err = os.Open(os.DevNull)
		return file, nil, err
	})
	await(t, g.serve(t, nil), "Serve")
	if file == nil || !errors.Is(file.Close(), os.ErrClosed) {
		t.Errorf("%v is open", file)
	}
}
