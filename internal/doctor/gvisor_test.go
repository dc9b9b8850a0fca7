package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs"
)

// The check of gVisor names the version of runsc, and a cure if runsc is missing, is another program, or runs nothing.
func TestProbeGVisor(t *testing.T) {
	works := func(context.Context, string) (string, error) { return "42", nil }
	fails := func(context.Context, string) (string, error) { return "", os.ErrPermission }
	for name, tc := range map[string]struct {
		runsc   string // output of runsc --version; "" if runsc is missing
		program func(context.Context, string) (string, error)
		want    Status
		detail  string
		cure    string
	}{
		"works":           {"runsc version v1\nspec: 1.2.1", works, OK, "runsc version v1: 42", ""},
		"runs nothing":    {"runsc version v1\nspec: 1.2.1", fails, Optional, "runsc version v1: permission denied", "the version of make gvisor"},
		"another program": {"usage: runsc", works, Optional, "not gVisor's runsc", "build runsc again"},
		"missing":         {"", works, Optional, "runsc", "make gvisor"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if tc.runsc != "" {
				if err := os.WriteFile(filepath.Join(dir, "runsc"), []byte("#!/bin/sh\necho '"+tc.runsc+"'\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got := probeGVisor(&examination{ctx: t.Context(), options: Options{Program: tc.program}, image: &rootfs.Image{}})
			if got.Status != tc.want || !strings.Contains(got.Detail, tc.detail) || !strings.Contains(got.Cure, tc.cure) || (got.Cure == "") != (tc.want == OK) {
				t.Errorf("%+v, want %s with %q, cure %q", got, tc.want, tc.detail, tc.cure)
			}
		})
	}
}
