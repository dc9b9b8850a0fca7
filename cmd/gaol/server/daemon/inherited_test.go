package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Only a connected unix stream socket can be inherited.
func TestInheritOthers(t *testing.T) {
	listening := newSocket(t, unix.AF_UNIX)
	err := unix.Bind(listening, &unix.SockaddrUnix{Name: filepath.Join(t.TempDir(), "s")})
	if err == nil {
		err = unix.Listen(listening, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	datagrams, err1 := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	file, err2 := unix.Open("/dev/null", unix.O_CLOEXEC, 0)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	const kind = "want a connected unix stream socket"
	for name, c := range map[string]struct {
		fd   int
		want string
	}{
		"listening": {listening, kind}, "unconnected": {newSocket(t, unix.AF_UNIX), kind}, "datagrams": {datagrams[0], kind},
		"TCP": {newSocket(t, unix.AF_INET), kind}, "file": {file, "non-socket"}, "closed": {1 << 20, "bad file descriptor"},
		"standard output": {1, "want one above"}, "negative": {-1, "want one above"},
	} {
		got, err := inherit(c.fd)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	_ = unix.Close(datagrams[1])
}

func newSocket(t *testing.T, domain int) (fd int) {
	t.Helper()
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// Processes that the server starts do not inherit the connection.
func TestInherit(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := inherit(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the inherited descriptor: %v", err)
	}
	other, err := net.FileConn(os.NewFile(uintptr(pair[1]), "other end"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Close(pair[1]); err != nil {
		t.Error(err)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x, %v", flags, err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
