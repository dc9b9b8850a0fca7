package client

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoServer: the errors of Dial name the problem and its cure.
func TestNoServer(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		o    Options
		want string
	}{
		"nothing there": {Options{Socket: filepath.Join(dir, "none.sock")}, "none.sock; root starts one with: gaol serve"},
		"stale":         {Options{Socket: stale}, "stale.sock; root starts one with: gaol serve"},
		"no URL":        {Options{Address: "localhost:1"}, "want http:// or https://"},
		"both":          {Options{Address: "http://localhost:1", Socket: stale}, "exclude each other"},
	} {
		if _, err := Dial(t.Context(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNotAMember: the error for a socket of a group names the group.
func TestNotAMember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for gid, want := range map[int]string{0: "the group root", 54321: "the group 54321"} {
		if err := os.Chown(path, -1, gid); err != nil {
			t.Skip("needs root: ", err)
		}
		target := &HTTP{socket: path}
		if text := target.Explain(unix.EACCES).Error(); !strings.Contains(text, want+" may") {
			t.Error(text)
		}
	}
}

func TestSocket(t *testing.T) {
	t.Setenv("GAOL_SOCKET", "")
	if got := Socket(); got != DefaultSocket {
		t.Error(got)
	}
	t.Setenv("GAOL_SOCKET", "/x.sock")
	if got := Socket(); got != "/x.sock" {
		t.Error(got)
	}
}
