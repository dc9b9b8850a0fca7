package enter

import (
	"bytes"
	"encoding/binary"
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

func words(ws ...uint32) string {
	var b []byte
	for _, w := range ws {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return string(b)
}

func TestHand(t *testing.T) {
	filter := []byte("0123456789abcdef") // two instructions
	for _, tc := range []struct {
		name, reply string
		want        error
	}{
		{"runs", words(0, 0), nil},
		{"ended before", "", ErrEnded},
		{"no filter", words(3, uint32(syscall.EINVAL)), &StepError{"seccomp", syscall.EINVAL}},
		{"no program", words(0, 0, 4, uint32(syscall.ENOENT)), &StepError{"exec", syscall.ENOENT}},
		{"nonsense", words(99, 1), ErrUnexpected},
		{"cut off", "abc", ErrEnded},
		{"set twice", words(0, 0, 0, 0), nil},
	} {
		c := &conn{reply: strings.NewReader(tc.reply)}
		err := Hand(c, Setup{DieWithHost: true, Limits: []Limit{{7, 1 << 32}}, Filter: filter})
		if want, ok := errors.AsType[*StepError](tc.want); ok {
			got, ok := errors.AsType[*StepError](err)
			if !ok || *got != *want || !errors.Is(err, want.Err) {
				t.Errorf("%s: %v, want %v", tc.name, err, want)
			}
		} else if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if got := c.String(); got != words(1, 1, 7, 0)+string(binary.NativeEndian.AppendUint64(nil, 1<<32))+words(2)+string(filter) {
			t.Errorf("%s: the program is told %q", tc.name, got)
		}
	}
}
