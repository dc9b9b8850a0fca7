package snippets

import (
	"strings"
	"testing"

	"gaol/runtime"
)

// The runner sets some options of sandboxes itself. Others that it would ignore are refused.
func TestSandboxOptions(t *testing.T) {
	for name, o := range map[string]runtime.Options{
		"Heap":              {Heap: 1 << 30},
		"Limits":            {Limits: runtime.Limits{Memory: 1 << 30}},
		"Mounts":            {Mounts: []runtime.Mount{{Source: "/etc", Target: "/host"}}},
		"ReadOnlyRoot":      {ReadOnlyRoot: true},
		"MaxConcurrentRuns": {MaxConcurrentRuns: 1},
	} {
		for _, shared := range []bool{false, true} {
			r, err := New(Options{Sandbox: o, Shared: shared})
			if err == nil || !strings.HasPrefix(err.Error(), "snippets: option Sandbox: the runner sets") {
				t.Errorf("%s: %v", name, err)
			}
			if r != nil {
				_ = r.Close()
			}
		}
	}
}
