package packaging

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"gaol/rootfs/programs"
	"gaol/rootfs/sharedlib"
)

// make build-arm64 made a static program for arm64, which embeds programs for arm64.
func TestARM64Binary(t *testing.T) {
	path := os.Getenv("GAOL_TEST_ARM64")
	if path == "" {
		t.Skip("make build-arm64 sets GAOL_TEST_ARM64 and runs this test; it needs a cross compiler")
	}
	binary := checkARM64(t, path)
	for _, name := range []string{programs.Enter, programs.Zygote, programs.Command, programs.Reaper, programs.Busybox} {
		file := filepath.Join(filepath.Dir(path), "prebuilt/arm64", name)
		if !bytes.Contains(binary, checkARM64(t, file)) {
			t.Errorf("%s is not embedded in %s", file, path)
		}
		if name != programs.Zygote && !sharedlib.IsStatic(file) {
			t.Errorf("%s is not static", file)
		}
	}
	if !sharedlib.IsStatic(path) {
		t.Errorf("%s is not static", path)
	}
}

// checkARM64 checks that a file is a program for arm64, and returns its content.
func checkARM64(t *testing.T, path string) []byte {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("%s is for %s", path, f.Machine)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
