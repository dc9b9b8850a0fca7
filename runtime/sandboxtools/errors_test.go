package sandboxtools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gaol/jail"
	"gaol/runtime"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

func TestCodes(t *testing.T) {
	inFile := func(err error) error { return &fs.PathError{Op: "open", Path: "/x", Err: err} }
	for _, tc := range []struct {
		err  error
		want Code
	}{
		{inFile(syscall.ENOENT), NotFound}, {inFile(syscall.EEXIST), Exists}, {inFile(syscall.ENOTEMPTY), NotEmpty},
		{inFile(syscall.EACCES), Permission}, {inFile(syscall.EPERM), Permission}, {inFile(syscall.EROFS), Permission},
		{inFile(syscall.ENOSPC), NoSpace}, {inFile(syscall.EDQUOT), NoSpace}, {inFile(syscall.EISDIR), IsDirectory},
		{inFile(syscall.ENOTDIR), NotDirectory}, {inFile(syscall.EBUSY), Busy}, {inFile(fs.ErrInvalid), InvalidArgument},
		{inFile(&hostfs.LimitError{What: "bytes", Limit: 1}), Limit}, {inFile(syscall.EIO), Internal}, {inFile(runtime.ErrClosed), Closed},
		{fmt.Errorf("gaol: command: %w", &jail.StepError{Step: "exec", Target: "x", Err: syscall.ENOENT}), NotFound},
		{&jail.StepError{Step: "chdir", Target: "/x", Err: syscall.ENOTDIR}, NotDirectory},
		{&jail.StepError{Step: "cgroup", Target: "x", Err: syscall.ENOENT}, Internal}, // a file of the host
		{syscall.ENOENT, Internal},
		{context.Canceled, Canceled}, {context.DeadlineExceeded, Timeout}, {errors.New("x"), Internal},
	} {
		if got := codeFor(tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
	err := &Error{Tool: "sandbox_command", Err: fmt.Errorf("gaol: command: %w", syscall.ENOENT)}
	if want := "gaol: sandbox_command: command: no such file or directory"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if CodeOf(nil) != "" || CodeOf(syscall.ENOENT) != Internal {
		t.Error("wrong code of an error of another package")
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"negative count": {MaxSandboxes: -1}, "negative limit": {IdleLimit: -1}, "base": {ProjectBase: "relative"},
		"no base": {ProjectBase: "/nosuch/base"}, "cwd": {Create: runtime.Options{Cwd: "/x"}}, "host": {Create: runtime.Options{Hostname: "x"}},
	} {
		if b, err := New(o); err == nil {
			t.Errorf("%s is accepted", name)
			b.Close()
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{ProjectBase: file}); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	var o Options
	if err := o.complete(); err != nil || o.MaxSandboxes != 16 || o.IdleLimit != 10*time.Minute || o.Create.Limits.Output != 1<<20 {
		t.Error(o)
	}
}

func TestResolve(t *testing.T) {
	s := &sandbox{root: vfs.Path("/work/space")}
	for _, tc := range []struct{ in, want string }{
		{"a", "/work/space/a"}, {".", "/work/space"}, {"a/../b/", "/work/space/b"}, {"..", "/work"}, {"../../../..", "/"},
		{"/", "/"}, {"//a//b/./", "/a/b"}, {"/../../a", "/a"}, {"a\nb", "/work/space/a\nb"}, {"~", "/work/space/~"},
	} {
		if got, err := s.resolve("path", tc.in); got != tc.want || err != nil {
			t.Errorf("%q: %q, %v", tc.in, got, err)
		}
	}
}

func TestOutputText(t *testing.T) {
	for _, tc := range []struct {
		in        string
		truncated bool
		want      string
	}{
		{"plain", false, "plain"}, {"a\xffb", false, "a\ufffdb"}, {"\xe2\x82", false, "\ufffd"}, {"x\xe2\x82", true, "x"}, {"x\xf0\x9f\x8e", true, "x"},
		{"x€", true, "x€"}, {"x\xff", true, "x\ufffd"}, {"\x80\x80\x80\x80\x80", true, "\ufffd"}, {"", true, ""}, {"é", true, "é"}, {"\xc3", true, ""},
	} {
		if got := outputText([]byte(tc.in), tc.truncated); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestTimeText(t *testing.T) {
	for at, want := range map[time.Time]string{
		time.Unix(1e9, 5): "2001-09-09T01:46:40.000000005Z", time.Unix(1<<60, 0): "9999-12-31T23:59:59Z", time.Unix(-1<<60, 0): "0001-01-01T00:00:00Z",
	} {
		if got := timeText(at); got != want {
			t.Errorf("%v: %s", at, got)
		}
	}
}
