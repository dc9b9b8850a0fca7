package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs"
)

// probeMicroVM names a cure if a part is missing or the program fails.
func TestProbeMicroVM(t *testing.T) {
	works := func(context.Context, string) (string, error) { return "42", nil }
	fails := func(context.Context, string) (string, error) { return "", os.ErrPermission }
	for name, tc := range map[string]struct {
		parts   string
		program func(context.Context, string) (string, error)
		want    Status
		detail  string
	}{
		"works":        {"qemu-system-x86_64 mkfs.erofs gaol microvm/kernel microvm/modules.cpio", works, OK, "42"},
		"runs nothing": {"qemu-system-x86_64 mkfs.erofs gaol microvm/kernel microvm/modules.cpio", fails, Optional, "permission denied"},
		"no kernel":    {"qemu-system-x86_64 mkfs.erofs gaol", works, Optional, "make microvm"},
		"nothing":      {"", works, Optional, "qemu-system-x86"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if err := os.Mkdir(filepath.Join(dir, "microvm"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, part := range strings.Fields(tc.parts) {
				if err := os.WriteFile(filepath.Join(dir, part), []byte("#!/bin/sh\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got := probeMicroVM(&examination{ctx: t.Context(), options: Options{Program: tc.program}, image: &rootfs.Image{}})
			if got.Status != tc.want || !strings.Contains(got.Detail, tc.detail) || (got.Cure == "") != (tc.want == OK) {
				t.Errorf("%+v, want %s with %q", got, tc.want, tc.detail)
			}
		})
	}
}
