package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostPorts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	read := func(text string) (*Settings, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(path, Overrides{})
	}
	s, err := read(`{"hostPorts": ["3000", "8000-8099"]}`)
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[int]bool{3000: true, 8000: true, 8099: true, 2999: false, 3001: false, 7999: false, 8100: false, 0: false, -1: false, 1<<16 + 3000: false} {
		if got := s.AllowsHostPort(port); got != want {
			t.Errorf("%d: %v", port, got)
		}
	}
	if s, err := read(`{}`); err != nil || s.AllowsHostPort(3000) {
		t.Errorf("by default: %v", err)
	}
	for _, wrong := range []string{`[3000]`, `["0"]`, `["65536"]`, `["2-1"]`, `["-1"]`, `["1-"]`, `["a"]`, `[""]`, `["1-2-3"]`, `"3000"`} {
		if _, err := read(`{"hostPorts": ` + wrong + `}`); err == nil || !strings.Contains(err.Error(), "config: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
