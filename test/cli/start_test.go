package cli

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/test/harness"
)

// std is the key of the sum of all packages of the standard library.
const std = "std"

// maxInit bounds an initializer of a package, which every process of gaol executes before main. A slow machine may take longer:
// half as long as std, the time of all initializers of the standard library. Packages of other modules may take twice as long,
// because gaol can only drop them.
func maxInit(importPath string, std time.Duration) time.Duration {
	most := max(200*time.Microsecond, std/2)
	if strings.HasPrefix(importPath, "gaol/") {
		return most
	}
	return 2 * most
}

// No initializer of a package takes long.
func TestInitializers(t *testing.T) {
	gaol := harness.Gaol(t)
	testInitializers(t, gaol)
	if server := filepath.Join(filepath.Dir(gaol), "gaol-server"); os.Getenv(harness.BinaryVar) != "" {
		testInitializers(t, server)
	}
}

// A busy machine slows a start down, so the fastest of many counts.
func testInitializers(t *testing.T, bin string) {
	t.Helper()
	fastest := map[string]time.Duration{}
	slow := func() []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(fastest)), func(name string) bool {
			return name == std || fastest[name] <= maxInit(name, fastest[std])
		})
	}
	for range 100 {
		for name, d := range initializers(t, bin) {
			if before, seen := fastest[name]; !seen || d < before {
				fastest[name] = d
			}
		}
		if len(slow()) == 0 {
			break
		}
	}
	if len(fastest) < 50 {
		t.Fatalf("%d initializers", len(fastest))
	}
	for _, name := range slow() {
		t.Errorf("%s: its variables and init functions take %s, want %s: compute them on first use", name, fastest[name], maxInit(name, fastest[std]))
	}
}

// initializers starts gaol, and returns how long the initializers of each package ran.
func initializers(t *testing.T, bin string) map[string]time.Duration {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &trace)
	}
	took := map[string]time.Duration{}
	for line := range strings.Lines(trace.String()) {
		// init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
		fields := strings.Fields(line)
		if len(fields) < 7 || fields[0] != "init" {
			continue
		}
		d, err := time.ParseDuration(fields[4] + fields[5])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		took[fields[1]] = d
		if root, _, _ := strings.Cut(fields[1], "/"); root != "gaol" && !strings.Contains(root, ".") {
			took[std] += d
		}
	}
	return took
}
