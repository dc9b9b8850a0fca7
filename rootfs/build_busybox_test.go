package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A program that another process still has open for writing runs as soon as it is closed.
func TestRunNew(t *testing.T) {
	program := filepath.Join(t.TempDir(), "echo")
	echo, err := os.ReadFile("/bin/echo")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(echo); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runNew(ctx, program, "a"); !errors.Is(err, context.Canceled) && !errors.Is(err, syscall.ETXTBSY) {
		t.Errorf("canceled: %v", err)
	}
	time.AfterFunc(5*time.Millisecond, func() { f.Close() })
	if out, err := runNew(t.Context(), program, "a"); err != nil || string(out) != "a\n" {
		t.Errorf("%q, %v", out, err)
	}
}
