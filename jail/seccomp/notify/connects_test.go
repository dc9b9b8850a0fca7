package notify

import (
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp"
)

// connectTo connects no socket, so that the kernel's errno is EBADF.
func connectTo(sockaddr string, size uintptr) call {
	return call{Nr: unix.SYS_CONNECT, Args: [6]uintptr{1<<31 - 1, 0, size}, Path: sockaddr, At: 1}
}

var zeros = strings.Repeat("\x00", 32)

func TestHandleConnects(t *testing.T) {
	const v4, v6 = "\x02\x00", "\x0a\x00"
	unreadable := call{Nr: unix.SYS_CONNECT, Args: [6]uintptr{1<<31 - 1, 8, 16}}
	calls := []struct {
		call  call
		to    string // that allow is asked about; "" for none
		errno syscall.Errno
	}{
		{connectTo(v4+"\x00\x35\x08\x08\x08\x08"+zeros, 16), "8.8.8.8:53", unix.EACCES},
		{connectTo(v4+"\x00\x46\x09\x09\x09\x09"+zeros, 16), "9.9.9.9:70", unix.EBADF},
		{connectTo(v4+"\x00\x46\x08\x08\x08\x08"+zeros, 128), "8.8.8.8:70", unix.EACCES},
		{connectTo(v6+"\x00\x35"+zeros, 28), "[::]:53", unix.EBADF},
		{connectTo(v6+"\x00\x35\x00\x00\x00\x00"+strings.Repeat("\x08", 16)+zeros, 28), "[808:808:808:808:808:808:808:808]:53", unix.EACCES},
		{connectTo(v6+"\x00\x35"+zeros, 24), "", unix.EBADF}, // too short for the kernel, too
		{connectTo(v4+"\x00\x35\x08\x08\x08\x08"+zeros, 15), "", unix.EBADF},
		{connectTo("\x01\x00/run/socket"+zeros, 16), "", unix.EBADF},
		{unreadable, "", unix.EBADF},
	}
	var o order
	var asked, want []string
	var errnos []syscall.Errno
	for _, c := range calls {
		o.Calls, errnos = append(o.Calls, c.call), append(errnos, c.errno)
		if c.to != "" {
			want = append(want, c.to)
		}
	}
	g := start(t, slices.Concat(restrictions(), seccomp.AskConnect), o)
	g.HandleConnects(seccomp.Connect, func(to netip.AddrPort) bool {
		asked = append(asked, to.String())
		return !strings.Contains(to.String(), "8")
	})
	done := g.serve(t, func(c Call) { t.Errorf("reported %+v", c) })
	if got := g.errnos(t); !slices.Equal(got, errnos) {
		t.Errorf("the guest got %v, want %v", got, errnos)
	}
	await(t, done, "Serve")
	if !slices.Equal(asked, want) {
		t.Errorf("asked about %q", asked)
	}
}
