package repl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (h *history) all() (list []string) {
	for i := range h.Len() {
		list = append(list, h.At(i))
	}
	return list
}

func newHistory(t *testing.T) *history {
	t.Helper()
	h, err := openHistory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

func TestHistory(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	h := newHistory(t)
	for _, code := range []string{"one", "two", "two", "", "  ", " secret", " secret\nall of it", strings.Repeat("x", maxEntry+1), "three", "f(`\n  indented\n`)", "one"} {
		h.keep(code)
	}
	want := []string{"one", "f(`␤  indented␤`)", "three", "two", "one"}
	if diff := cmp.Diff(want, h.all()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want, newHistory(t).all()); diff != "" {
		t.Errorf("opened again (-want +got)\n%s", diff)
	}
	path := filepath.Join(state, "gaol", "repl_history")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if info, err = os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}

// The file is bounded, and control characters in the file are escaped.
func TestHistoryIsBounded(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	path := filepath.Join(state, "gaol", "repl_history")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range 60_000 {
		lines = append(lines, fmt.Sprintf("a line of code with its number, %d", i))
	}
	lines = append(lines, "bad\x1b[2J", "")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	h := newHistory(t)
	if h.Len() != maxEntries || h.At(0) != `bad\x1b[2J` || h.At(1) != lines[59_999] {
		t.Errorf("%d lines, the last are %q, %q", h.Len(), h.At(0), h.At(1))
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 100_000 {
		t.Errorf("%v, %v", info, err)
	}
	if again := newHistory(t); !cmp.Equal(again.all(), h.all()) {
		t.Errorf("opened again it has %d lines", again.Len())
	}
}

// A history whose file cannot be opened lasts for the session.
func TestHistoryWithoutFile(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	for name, make := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink("/tmp/elsewhere", path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(state, "gaol", "repl_history")
		os.RemoveAll(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		h, err := openHistory()
		if err == nil || h == nil {
			t.Fatalf("%s: %v", name, err)
		}
		h.keep("one")
		if h.Len() != 1 {
			t.Errorf("%s: it has %d", name, h.Len())
		}
		h.close()
	}
	t.Setenv("XDG_STATE_HOME", "not/absolute")
	t.Setenv("HOME", "/home/user")
	if path, err := historyPath(); err != nil || path != "/home/user/.local/state/gaol/repl_history" {
		t.Errorf("%s, %v", path, err)
	}
}
