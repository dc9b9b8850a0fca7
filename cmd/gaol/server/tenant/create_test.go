package tenant

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestCreateToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	ci, err := CreateToken(path, "ci", false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), ci) {
		t.Fatalf("%v: %s", err, text)
	}
	if err := os.WriteFile(path, append([]byte("# comment\n"), strings.TrimSpace(string(text))...), 0o600); err != nil {
		t.Fatal(err)
	}
	metrics, err := CreateToken(path, "metrics", true)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := ReadTokens(path) // which checks the mode
	if err != nil {
		t.Fatal(err)
	}
	if a, b := tokens.Find(ci), tokens.Find(metrics); a == nil || a.Name != "token:ci" || a.Admin || b == nil || b.Name != "token:metrics" || !b.Admin {
		t.Errorf("%+v %+v", a, b)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", err, info.Mode())
	}
	if _, err := CreateToken(path, "ci", true); err == nil || !strings.Contains(err.Error(), "ci is listed twice") {
		t.Errorf("a name that exists: %v", err)
	}
	for _, name := range []string{"", "A", "a b", "a\nb", "../x"} {
		if _, err := CreateToken(path, name, false); err == nil || !strings.Contains(err.Error(), "not a valid name") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if text, err = os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# comment\n") || strings.Count(string(text), "\n") != 3 {
		t.Errorf("%v: %s", err, text)
	}
}

// TestCreateTokens: tokens that are created at the same time are all in the file, and nothing else is left.
func TestCreateTokens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	var work sync.WaitGroup
	for i := range 20 {
		work.Go(func() {
			if _, err := CreateToken(path, fmt.Sprintf("t%d", i), false); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	tokens, err := ReadTokens(path)
	if err != nil || len(tokens.list) != 20 {
		t.Errorf("%v: %+v", err, tokens)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", err, entries)
	}
}
