package debian

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPresets checks that docs/images.md lists all presets, and that they consist of names of packages.
func TestPresets(t *testing.T) {
	docs, err := os.ReadFile("../../docs/images.md")
	must(t, err)
	for _, p := range Presets {
		if row := fmt.Sprintf("| `gaol image build --with %s` | also %s | %d MB | `%s` |\n", p.Name, p.About, p.Size, p.Name); !strings.Contains(string(docs), row) {
			t.Errorf("docs/images.md lacks %s", row)
		}
		for _, name := range p.Packages {
			if !IsPackageName(name) {
				t.Errorf("%s: %q", p.Name, name)
			}
		}
	}
}
