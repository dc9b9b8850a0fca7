package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypeErrors: errors about the type of a value are in the file's words.
func TestTypeErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	for text, want := range map[string]string{
		`{"tenant":{"memoryBytes":"1"}}`: "tenant.memoryBytes: want a whole number, got a string",
		`{"idleTimeoutMs":1.5}`:          "idleTimeoutMs: want a whole number, got a number 1.5",
		`{"images":"default"}`:           "images: want an array, got a string",
		`{"mounts":[]}`:                  "mounts: want an object, got an array",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
