package quota

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentation: the table of docs/hosting.md has each quota with its defaults.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/hosting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| quota | bounds | default of the server | of a tenant |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	const gigabyte = 1 << 30
	server, tenant := DefaultLimits(16*gigabyte, 4096)
	derived := []string{"memoryBytes", "cpus", "pendingConnects", "pendingLookups"} // their defaults are words
	var documented []string
	for _, row := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 4 {
			t.Fatalf("the row %q has %d cells", row, len(cells))
		}
		name := strings.Trim(cells[0], "`")
		documented = append(documented, name)
		for i, l := range []Limits{server, tenant} {
			for field, v := range l.all() {
				if field == name && !slices.Contains(derived, name) && size(t, cells[2+i]) != number(v) {
					t.Errorf("%s: %s, but the default is %v", name, cells[2+i], number(v))
				}
			}
		}
	}
	got, want := slices.Sorted(slices.Values(documented)), slices.Sorted(slices.Values(names))
	if !slices.Equal(got, want) {
		t.Errorf("documented are %v, want %v", got, want)
	}
}

// size parses a number with commas and perhaps a unit.
func size(t *testing.T, cell string) float64 {
	t.Helper()
	digits, unit, _ := strings.Cut(cell, " ")
	n, err := strconv.Atoi(strings.ReplaceAll(digits, ",", ""))
	factor, ok := map[string]int{"": 1, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
	if err != nil || !ok {
		t.Fatalf("%q is not a number", cell)
	}
	return float64(n * factor)
}
