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
)

// spoken is the host's end of a conversation whose other side has said all that it
// will. written gives what the host wrote.
func spoken(t *testing.T, reply string) (host *net.UnixConn, written func() string) {
	t.Helper()
	host, other, err := SocketPair(unix.SOCK_STREAM)
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

func TestHand(t *testing.T) {
	list := List{Steps: []Step{Keyring(), Clone(NoCgroup, 0), Chdir("/x"), Execute([]string{"prog"}, nil)}}
	errOwn := errors.New("own")
	child := words(reportCloned, 42)
	for _, tc := range []struct {
		name, reply string
		want        error
		pid         int
	}{
		{"runs", child + words(0, 0), nil, 42},
		{"the child is quicker", words(0, 0) + child, nil, 42},
		{"ended before", "", ErrEnded, 0},
		{"child ended", child, ErrEnded, 42},
		{"before the clone", words(1, uint32(syscall.EDQUOT)), &StepError{"keyring", "", syscall.EDQUOT}, 0},
		{"no folder", child + words(3, uint32(syscall.ENOENT)), &StepError{"chdir", "/x", syscall.ENOENT}, 42},
		{"no program", child + words(0, 0, 4, uint32(syscall.ENOENT)), &StepError{"exec", "prog", syscall.ENOENT}, 42},
		{"list not read", words(maxSteps+1, uint32(syscall.EINVAL)), &StepError{"list", "", syscall.EINVAL}, 0},
		{"nonsense", words(5, 1), ErrUnexpected, 0},
		{"clone not told", words(0, 0), ErrEnded, 0},
		{"cut off", "abc", io.ErrUnexpectedEOF, 0},
		{"host fails", child, errOwn, 42},
	} {
		c, _ := spoken(t, tc.reply)
		pid := 0
		err := Hand(c, list, func(p int) error {
			pid = p
			if tc.want == errOwn {
				return errOwn
			}
			return nil
		})
		if want, ok := errors.AsType[*StepError](tc.want); ok {
			got, ok := errors.AsType[*StepError](err)
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

// What a program says before it ends is worth more than that it did.
func TestHandHearsThoseWhoEnded(t *testing.T) {
	list := List{Steps: []Step{Clone(NoCgroup, 0), Await()}}
	host, other, err := SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	_, err = other.WriteString(words(reportCloned, 1, 2, uint32(syscall.EDOM)))
	other.Close() // what the host writes fails with EPIPE
	if err != nil {
		t.Fatal(err)
	}
	err = Hand(host, list, func(int) error { return nil })
	if want := (&StepError{"await", "", syscall.EDOM}); err == nil || err.Error() != want.Error() {
		t.Errorf("%v, want %v", err, want)
	}
}

// A list that waits gets a byte once the host is done with the child, and no other
// list does: what its program does not read would look like a failure. A child whose
// death signal is set gets another byte, whichever of the two reports comes first.
func TestHandLetsTheChildGoOn(t *testing.T) {
	plain, waiting := []Step{Clone(NoCgroup, 0)}, []Step{Clone(NoCgroup, 0), Await()}
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
		c, written := spoken(t, tc.reply)
		if err := Hand(c, list, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(written(), string(message)); got != tc.written {
			t.Errorf("%d steps, %q: %q follows the list, want %q", len(tc.steps), tc.reply, got, tc.written)
		}
	}
}

// The filter's listener goes to whom it is for, who can tell the launcher's calls from
// those of its program.
func TestHandPassesTheListener(t *testing.T) {
	host, other, err := SocketPair(unix.SOCK_STREAM)
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
	}{{words(reportCloned, 1), nil}, {words(reportListens, 0), unix.UnixRights(int(null.Fd()))}, {words(0, 0), nil}} {
		if err := unix.Sendmsg(int(other.Fd()), []byte(s.text), s.rights, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	var got *os.File
	list := List{Steps: []Step{Clone(NoCgroup, 0)}, Listening: func(l *os.File, conn syscall.Conn) {
		if got = l; conn != syscall.Conn(host) {
			t.Errorf("the socket is %v", conn)
		}
		other.Close()
	}}
	if err := Hand(host, list, func(int) error { return nil }); err != nil {
		t.Error(err)
	}
	if got == nil {
		t.Fatal("no listener")
	}
	defer got.Close()
	var a, b unix.Stat_t
	if err := errors.Join(unix.Fstat(int(got.Fd()), &a), unix.Fstat(int(null.Fd()), &b)); err != nil || a.Rdev != b.Rdev {
		t.Errorf("%v; device %d, want %d", err, a.Rdev, b.Rdev)
	}
}

// A listener that there is no descriptor for fails the launch. The child is told of all
// the same, and be it later, for somebody has to wait for it.
func TestHandWithoutDescriptors(t *testing.T) {
	host, other, err := SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	err = errors.Join(
		unix.Sendmsg(int(other.Fd()), []byte(words(reportListens, 0)), unix.UnixRights(int(other.Fd())), nil, 0),
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
	err = Hand(host, List{Steps: []Step{Clone(NoCgroup, 0)}}, func(p int) error { pid = p; return nil })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) || pid != 42 {
		t.Errorf("%v, cloned %d", err, pid)
	}
}
