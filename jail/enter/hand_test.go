package enter

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// conn is the host's end of a conversation whose other side has spoken already.
type conn struct {
	bytes.Buffer // what the host writes
	reply        io.Reader
}

func (c *conn) Read(b []byte) (int, error) { return c.reply.Read(b) }

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
		{"cut off", "abc", io.ErrUnexpectedEOF, 0},
		{"host fails", child, errOwn, 42},
	} {
		c := &conn{reply: strings.NewReader(tc.reply)}
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

// gone is the host's end of a conversation whose other side has spoken and hung up.
type gone struct{ io.Reader }

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// What a program says before it ends is worth more than that it did.
func TestHandHearsThoseWhoEnded(t *testing.T) {
	list := List{Steps: []Step{Clone(NoCgroup, 0), Await()}}
	c := gone{strings.NewReader(words(reportCloned, 1, 2, uint32(syscall.EDOM)))}
	err := Hand(c, list, func(int) error { return nil })
	if want := (&StepError{"await", "", syscall.EDOM}); err == nil || err.Error() != want.Error() {
		t.Errorf("%v, want %v", err, want)
	}
}

// A list that waits gets a byte once the host is done with the child, and no other
// list does: what its program does not read would look like a failure.
func TestHandLetsTheChildGoOn(t *testing.T) {
	for _, steps := range [][]Step{{Clone(NoCgroup, 0)}, {Clone(NoCgroup, 0), Await()}} {
		list := List{Steps: steps}
		message, err := list.encode()
		if err != nil {
			t.Fatal(err)
		}
		c := &conn{reply: strings.NewReader(words(reportCloned, 1, 0, 0))}
		if err := Hand(c, list, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(c.String(), string(message)); len(got) != len(steps)-1 {
			t.Errorf("%d steps: %q follows the list", len(steps), got)
		}
	}
}
