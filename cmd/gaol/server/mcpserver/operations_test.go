package mcpserver

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"gaol/cmd/gaol/server/operation"
)

// TestOperationNames: tools name operations of the table.
func TestOperationNames(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:operation\.Perform\[.+?\]|\bevaluate)\(.*?"(\w+)"`).FindAllSubmatch(text, -1) {
			named++
			if operation.ByName(string(m[1])) == nil {
				t.Errorf("%s: there is no operation %q", file, m[1])
			}
		}
	}
	if named < 15 {
		t.Errorf("found only %d names", named)
	}
}
