package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStaleTemp checks that folders of killed processes are removed, and folders of living ones are
// not.
func TestStaleTemp(t *testing.T) {
	s := openEmpty(t)
	living, err := s.makeTemp(t.Context())
	must(t, err)
	defer living.Close()
	killed, err := s.makeTemp(t.Context())
	must(t, err)
	must(t, os.MkdirAll(killed.path("image/rootfs"), 0o755))
	must(t, killed.lock.Close()) // as the kernel does for a killed process
	must(t, os.Mkdir(filepath.Join(s.tmp(), "no-lock-yet"), 0o755))

	next, err := s.makeTemp(t.Context())
	must(t, err)
	left, err := os.ReadDir(s.tmp())
	must(t, err)
	if len(left) != 2 {
		t.Errorf("left are %v", left)
	}
	for _, dir := range []string{living.dir, next.dir} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	must(t, next.Close())
}

func TestLockWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockWait(t.Context(), path)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := lockWait(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = first.Close() })
	second, err := lockWait(t.Context(), path)
	must(t, err)
	must(t, second.Close())
}
