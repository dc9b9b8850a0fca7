package hostcommand

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func open(t testing.TB) (*Call, Ends) {
	t.Helper()
	c, guest, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		guest.Close()
	})
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c, guest
}

// The host refuses frames that the program would not send, and allocates nothing for data that it only
// announces.
func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		want       []string
		err        error
	}{
		{"none", string(frame("")), nil, nil},
		{"empty ones", string(frame("\x00\x00")), []string{"", ""}, nil},
		{"some", string(frame("--json\x00{\"a\":1}\x00ü\x00")), []string{"--json", `{"a":1}`, "ü"}, nil},
		{"without an end", string(frame("a\x00b")), nil, ErrProtocol},
		{"too many", string(frame(strings.Repeat("x", 101))), nil, ErrSize},
		{"announced only", "\xff\xff\xff\xff", nil, ErrSize},
		{"half a frame", string(frame("abc\x00")[:6]), nil, io.ErrUnexpectedEOF},
		{"half a head", "\x00\x00", nil, io.ErrUnexpectedEOF},
		{"nothing", "", nil, io.EOF},
	} {
		c, guest := open(t)
		if _, err := io.WriteString(guest.Requests, tc.sent); err != nil {
			t.Fatal(err)
		}
		guest.Requests.Close()
		if got, err := c.Arguments(100); !errors.Is(err, tc.err) || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q %v", tc.name, got, err)
		}
	}
}

func TestInput(t *testing.T) {
	for _, tc := range []struct {
		name string
		sent []string
		want string
		err  error
	}{
		{"none", []string{""}, "", nil},
		{"parts", []string{"ab", "c", ""}, "abc", nil},
		{"at the limit", []string{strings.Repeat("x", 60), strings.Repeat("x", 40), ""}, strings.Repeat("x", 100), nil},
		{"too long", []string{strings.Repeat("x", 60), strings.Repeat("x", 41), ""}, "", ErrSize},
		{"without an end", []string{"ab"}, "", io.EOF},
	} {
		c, guest := open(t)
		for _, part := range tc.sent {
			if _, err := guest.Requests.Write(frame(part)); err != nil {
				t.Fatal(err)
			}
		}
		guest.Requests.Close()
		if got, err := c.Input(100); !errors.Is(err, tc.err) || err == nil && string(got) != tc.want {
			t.Errorf("%s: %q %v", tc.name, got, err)
		}
	}
}

func TestReply(t *testing.T) {
	c, guest := open(t)
	if err := c.Reply([]byte("out"), []byte("err"), 3); err != nil {
		t.Fatal(err)
	}
	c.Close()
	got, err := io.ReadAll(guest.Answers)
	if want := "\x01\x00\x00\x00\x03out\x02\x00\x00\x00\x03err\x03\x00\x00\x00\x03"; err != nil || string(got) != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

// A guest that does not read, or that sends slowly, holds the host until the deadline only.
func TestDeadline(t *testing.T) {
	c, _ := open(t)
	if err := c.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.Reply(make([]byte, 1<<20), nil, 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reply: %v", err)
	}
	if _, err := c.Arguments(100); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("arguments: %v", err)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(frame("a\x00b\x00"))
	f.Add([]byte{0, 0, 0, 9, 'a'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) > 4096 { // the capacity of a pipe, with a margin
			return
		}
		c, guest := open(t)
		if _, err := guest.Requests.Write(sent); err != nil {
			t.Fatal(err)
		}
		guest.Requests.Close()
		args, err := c.Arguments(1000)
		if err != nil {
			return
		}
		var again []byte
		for _, arg := range args {
			again = append(append(again, arg...), 0)
		}
		if !bytes.HasPrefix(sent, frame(string(again))) {
			t.Errorf("%q from %q", args, sent)
		}
	})
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "0", "get-weather", "a.b_c", strings.Repeat("x", 64)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", Program, "-a", "_a", "A", "a b", "a/b", "ä", "a\x00", strings.Repeat("x", 65)} {
		if CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// The program is small and static, and reports that nothing serves it outside a jail. The Go
// half uses the same number for the call.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "get-weather")
	cc := exec.Command("cc", append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-s", "-x", "c", "-", "-o", program}, Flags...)...)
	cc.Stdin = strings.NewReader(Source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil || info.Size() > MaxSize/4 {
		t.Errorf("%+v %v", info, err)
	}
	out, err := exec.Command(program, "a").CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if want := program + ": the host does not serve this command here\n"; !ok || exit.ExitCode() != 125 || string(out) != want {
		t.Errorf("%v %q", err, out)
	}
	if !strings.Contains(Source, "0x67616f6c") || Family != 0x67616f6c {
		t.Error("the numbers of the call differ")
	}
}
