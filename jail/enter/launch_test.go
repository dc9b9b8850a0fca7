package enter

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/step"
)

// connect returns the host's end of a connection whose other end has sent reply and
// nothing more. written returns the host's output.
func connect(t *testing.T, reply string) (host *net.UnixConn, written func() string) {
	t.Helper()
	host, other, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close(); other.Close() })
	if _, err := other.WriteString(reply); err != nil {
		t.Fatal(err)
	}
	if err := unix.Shutdown(int(other.Fd()), unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	return host, func() string {
		host.Close()
		text, err := io.ReadAll(other)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

func TestLaunch(t *testing.T) {
	list := List{Steps: []Step{Keyring(), Clone(nil, 0), Chdir("/x"), Execute([]string{"prog"}, nil)}}
	errOwn := errors.New("own")
	child := words(reportCloned, 42)
	for _, tc := range []struct {
		name, reply string
		want        error
		pid         int
	}{
		{"runs", child + words(0, 0), nil, 42},
		{"the child reports first", words(0, 0) + child, nil, 42},
		{"ended at once", "", errEnded, 0},
		{"child ended", child, errEnded, 42},
		{"fails before the clone", words(1, uint32(syscall.EDQUOT)), &step.Error{Step: "keyring", Target: "", Err: syscall.EDQUOT}, 0},
		{"step fails in the child", child + words(3, uint32(syscall.ENOENT)), &step.Error{Step: "chdir", Target: "/x", Err: syscall.ENOENT}, 42},
		{"program missing", child + words(0, 0, 4, uint32(syscall.ENOENT)), &step.Error{Step: "exec", Target: "prog", Err: syscall.ENOENT}, 42},
		{"list not read", words(maxSteps+1, uint32(syscall.EINVAL)), &step.Error{Step: "list", Target: "", Err: syscall.EINVAL}, 0},
		{"unknown step", words(5, 1), errUnexpected, 0},
		{"clone not reported", words(0, 0), errEnded, 0},
		{"truncated", "abc", io.ErrUnexpectedEOF, 0},
		{"cloned fails", child, errOwn, 42},
	} {
		c, _ := connect(t, tc.reply)
		pid := 0
		err := list.execute(c, func(p int) error {
			pid = p
			if tc.want == errOwn {
				return errOwn
			}
			return nil
		})
		if want, ok := errors.AsType[*step.Error](tc.want); ok {
			got, ok := errors.AsType[*step.Error](err)
			if !ok || *got != *want || !errors.Is(err, want.Err) {
				t.Errorf("%s: %v, want %v", tc.name, err, want)
			}
		} else if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if pid != tc.pid {
			t.Errorf("%s: cloned %d, want %d", tc.name, pid, tc.pid)
		}
	}
}

// The reports of a program that has ended are read before its end is an error.
func TestLaunchReadsReportsOfEndedProgram(t *testing.T) {
	list := List{Steps: []Step{Clone(nil, 0), AwaitHost()}}
	host, other, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	_, err = other.WriteString(words(reportCloned, 1, 2, uint32(syscall.EDOM)))
	other.Close() // the host's writes fail with EPIPE
	if err != nil {
		t.Fatal(err)
	}
	err = list.execute(host, func(int) error { return nil })
	if want := (&step.Error{Step: "await", Target: "", Err: syscall.EDOM}); err == nil || err.Error() != want.Error() {
		t.Errorf("%v, want %v", err, want)
	}
}

// A list with AwaitHost gets a reply after cloned has returned. Other lists get none:
// unread data would look like a failure. A child whose death signal is set gets another
// reply, whichever of the two reports comes first.
func TestLaunchReplies(t *testing.T) {
	plain, waiting := []Step{Clone(nil, 0)}, []Step{Clone(nil, 0), AwaitHost()}
	for _, tc := range []struct {
		steps          []Step
		reply, written string
	}{
		{plain, words(reportCloned, 1, 0, 0), ""},
		{waiting, words(reportCloned, 1, 0, 0), "\x01"},
		{plain, words(reportCloned, 1, reportArmed, 0, 0, 0), "\x02"},
		{waiting, words(reportCloned, 1, reportArmed, 0, 0, 0), "\x01\x02"},
		{waiting, words(reportArmed, 0, reportCloned, 1, 0, 0), "\x02\x01"},
	} {
		list := List{Steps: tc.steps}
		message, err := list.encode()
		if err != nil {
			t.Fatal(err)
		}
		c, written := connect(t, tc.reply)
		if err := list.execute(c, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(written(), string(message)); got != tc.written {
			t.Errorf("%d steps, %q: %q follows the list, want %q", len(tc.steps), tc.reply, got, tc.written)
		}
	}
}

// OnListener receives the filter's listener and the socket.
func TestLaunchPassesListener(t *testing.T) {
	host, other, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	defer other.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, s := range []struct {
		text   string
		rights []byte
	}{{words(reportCloned, 1), nil}, {words(reportListener, 0), unix.UnixRights(int(null.Fd()))}, {words(0, 0), nil}} {
		if err := unix.Sendmsg(int(other.Fd()), []byte(s.text), s.rights, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	var got *os.File
	list := List{Steps: []Step{Clone(nil, 0)}, OnListener: func(l *os.File, conn syscall.Conn) {
		if got = l; conn != syscall.Conn(host) {
			t.Errorf("the socket is %v", conn)
		}
		other.Close()
	}}
	if err := list.execute(host, func(int) error { return nil }); err != nil {
		t.Error(err)
	}
	if got == nil {
		t.Fatal("OnListener was not called")
	}
	defer got.Close()
	var a, b unix.Stat_t
	if err := errors.Join(unix.Fstat(int(got.Fd()), &a), unix.Fstat(int(null.Fd()), &b)); err != nil || a.Rdev != b.Rdev {
		t.Errorf("%v; device %d, want %d", err, a.Rdev, b.Rdev)
	}
}

// A listener without a free descriptor fails the launch. Launch still reports the child,
// which the host must wait for.
func TestLaunchWithoutDescriptors(t *testing.T) {
	host, other, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	err = errors.Join(
		unix.Sendmsg(int(other.Fd()), []byte(words(reportListener, 0)), unix.UnixRights(int(other.Fd())), nil, 0),
		unix.Sendmsg(int(other.Fd()), []byte(words(reportCloned, 42, 0, 0)), nil, nil, 0),
		other.Close(),
	)
	var was unix.Rlimit
	if err := errors.Join(err, unix.Getrlimit(unix.RLIMIT_NOFILE, &was)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	pid := 0
	list := List{Steps: []Step{Clone(nil, 0)}}
	err = list.execute(host, func(p int) error { pid = p; return nil })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) || pid != 42 {
		t.Errorf("%v, cloned %d", err, pid)
	}
}
