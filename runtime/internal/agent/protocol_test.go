package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"gaol/jail"
	"gaol/vfs/hostfs"
)

// across returns an error as the other side gets it.
func across(t *testing.T, err error) error {
	t.Helper()
	var wire bytes.Buffer
	var got Reply
	if err := errors.Join(Write(&wire, Reply{Error: Encode(err)}), Read(&wire, MaxReply, &got)); err != nil {
		t.Fatal(err)
	}
	return got.Error.Decode()
}

// Errors keep their text, and what callers ask them for.
func TestErrors(t *testing.T) {
	for _, want := range []error{
		nil, io.EOF, fs.SkipDir, syscall.EACCES, context.Canceled, errors.New("text"), net.ErrClosed, os.ErrDeadlineExceeded, jail.ErrClosed,
		fmt.Errorf("dial: %w", syscall.ECONNREFUSED), &fs.PathError{Op: "open", Path: "/\xff", Err: syscall.ENOENT}, errors.New("not \xff UTF-8"),
		&jail.StepError{Step: "exec", Target: "x", Err: syscall.ENOEXEC}, fmt.Errorf("tar: %w", &hostfs.LimitError{What: "bytes", Limit: 7}),
		&fs.PathError{Op: "read", Path: "/a", Err: hostfs.ErrSpecial},
	} {
		got := across(t, want)
		if want == nil || got == nil {
			if got != want {
				t.Errorf("%v, want %v", got, want)
			}
			continue
		}
		if got.Error() != want.Error() {
			t.Errorf("%q, want %q", got, want)
		}
		for name, target := range wrapped {
			if errors.Is(got, target) != errors.Is(want, target) {
				t.Errorf("%v: is it %s? %v", want, name, errors.Is(got, target))
			}
		}
		errno, is := errors.AsType[syscall.Errno](want)
		if gotErrno, gotIs := errors.AsType[syscall.Errno](got); gotErrno != errno || gotIs != is {
			t.Errorf("%v: errno %d, want %d", want, gotErrno, errno)
		}
		if limit, ok := errors.AsType[*hostfs.LimitError](want); ok {
			if got, ok := errors.AsType[*hostfs.LimitError](got); !ok || *got != *limit {
				t.Errorf("%v: limit %+v", want, got)
			}
		}
		if step, ok := errors.AsType[*jail.StepError](want); ok {
			if got, ok := errors.AsType[*jail.StepError](got); !ok || got.Step != step.Step || got.Target != step.Target {
				t.Errorf("%v: step %+v", want, got)
			}
		}
	}
	if got := across(t, io.EOF); got != io.EOF {
		t.Errorf("%#v is another error", got)
	}
	if got := across(t, errors.New(strings.Repeat("x", 1<<17))); len(got.Error()) != maxErrorText {
		t.Errorf("a text of %d bytes", len(got.Error()))
	}
}

// A message that is too long, incomplete or no JSON is an error, and Read allocates only for what has arrived.
func TestMessages(t *testing.T) {
	for _, wire := range []string{"", "\x00", "\x00\x00\x00\x05{}", "\x00\x00\x00\x02[]", "\x00\x00\x00\x00", "\x00\x10\x00\x01{}", "\xff\xff\xff\xff{}"} {
		var r Reply
		if err := Read(strings.NewReader(wire), MaxReply, &r); err == nil {
			t.Errorf("%q is a message: %+v", wire, r)
		}
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			var r Reply
			_ = Read(strings.NewReader("\x00\x0f\xff\xff{}"), MaxReply, &r)
		}
	}).AllocedBytesPerOp()
	if allocated > 64<<10 {
		t.Errorf("%d bytes", allocated)
	}
}

// Chunks end where their writer has ended them, and not before.
func TestChunks(t *testing.T) {
	var wire bytes.Buffer
	data := bytes.Repeat([]byte("text"), MaxChunk)
	w := ChunkWriter{&wire}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	incomplete := bytes.Clone(wire.Bytes())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wire.WriteString("rest")
	got, err := io.ReadAll(&ChunkReader{R: &wire})
	if err != nil || !bytes.Equal(got, data) || wire.String() != "rest" {
		t.Errorf("%d bytes, %v, then %q", len(got), err, wire.String())
	}
	for _, wrong := range [][]byte{incomplete, incomplete[:7], {0xff, 0xff, 0xff, 0xff, 1}} {
		if got, err := io.ReadAll(&ChunkReader{R: bytes.NewReader(wrong)}); err == nil {
			t.Errorf("%d bytes without their end are no error", len(got))
		}
	}
}

// Text of guests need not be UTF-8.
func TestText(t *testing.T) {
	text, err := json.Marshal(Texts([]string{"a", "\xff\x00", ""}))
	var got []Text
	if err = errors.Join(err, json.Unmarshal(text, &got)); err != nil || fmt.Sprintf("%q", Strings(got)) != `["a" "\xff\x00" ""]` {
		t.Errorf("%q, %v", got, err)
	}
}
