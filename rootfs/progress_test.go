package rootfs

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

func transfer(t *testing.T, r *reporter, size int64) {
	t.Helper()
	bar := r.bar("fetch x", size)
	_, err := io.Copy(bar, strings.NewReader(strings.Repeat("x", 2_000_000)))
	must(t, err)
	must(t, bar.Close())
}

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	r := newReporter(&out)
	transfer(t, r, 2_000_000)
	transfer(t, r, -1)
	if want := "fetch x (2.0 MB)\nfetch x\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	transfer(t, newReporter(nil), 1)
}

// TestTerminalProgress: a bar moves, whether or not the size is known or right.
func TestTerminalProgress(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be had: %v", err)
	}
	defer f.Close()
	r := newReporter(f)
	if !r.terminal {
		t.Fatal("a terminal is not taken for one")
	}
	var out bytes.Buffer
	r.w = &out
	for _, size := range []int64{2_000_000, -1, 0, 1} {
		out.Reset()
		transfer(t, r, size)
		if !strings.HasSuffix(out.String(), "fetch x\n") {
			t.Errorf("size %d: %q", size, &out)
		}
	}
}
