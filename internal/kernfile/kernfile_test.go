package kernfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(path, "x"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("write a missing file: %v", err)
	}
	if _, err := ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read a missing file: %v", err)
	}
	text := strings.Repeat("text\n", 1000)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v, want %d", len(got), err, len(text))
	}
	if err := WriteFile(path, "TEXT"); err != nil {
		t.Error(err)
	}
	if got, err := ReadFile(path); err != nil || string(got) != "TEXT" {
		t.Errorf("overwritten: %.10q, %v", got, err)
	}
}

// The poller would watch files of procfs.
func TestOpenDoesNotPoll(t *testing.T) {
	f, err := Open("/proc/self/mountinfo", os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Time{}); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("the poller watches it: %v", err)
	}
}
