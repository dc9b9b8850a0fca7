package download

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

func transfer(t *testing.T, r *Reporter, size int64) {
	t.Helper()
	bar := r.Bar("fetch x", size)
	_, err := io.Copy(bar, strings.NewReader(strings.Repeat("x", 2_000_000)))
	if err != nil {
		t.Fatal(err)
	}
	bar.Close()
}

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out)
	transfer(t, r, 2_000_000)
	transfer(t, r, -1)
	if want := "fetch x (2.0 MB)\nfetch x\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	transfer(t, NewReporter(nil), 1)
}

// TestTerminalProgress checks bars of known, unknown and wrong sizes.
func TestTerminalProgress(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("cannot open a terminal: %v", err)
	}
	defer f.Close()
	r := NewReporter(f)
	if !r.terminal {
		t.Fatal("the terminal was not recognized")
	}
	var out bytes.Buffer
	r.w = &out
	for _, size := range []int64{2_000_000, -1, 0, 1} {
		out.Reset()
		transfer(t, r, size)
		if !strings.HasSuffix(out.String(), "fetch x\n") {
			t.Errorf("size %d: %q", size, &out)
		}
		if percent := strings.Contains(out.String(), "100%"); percent != (size == 2_000_000) {
			t.Errorf("size %d: %q, with 100%%: %v", size, &out, percent)
		}
	}
}
