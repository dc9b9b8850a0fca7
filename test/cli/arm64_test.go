package cli

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gaol/rootfs/programs"
)

// make build-arm64 made a static program for arm64, which embeds programs for arm64, and a static runc.
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
		if name != programs.Zygote && !programs.IsStatic(file) {
			t.Errorf("%s is not static", file)
		}
	}
	runc := filepath.Join(filepath.Dir(path), "runc-arm64")
	checkARM64(t, runc)
	engine := filepath.Join(filepath.Dir(path), "nats-server-arm64")
	checkARM64(t, engine)
	for _, file := range []string{path, runc, engine} {
		if !programs.IsStatic(file) {
			t.Errorf("%s is not static", file)
		}
	}
	for _, file := range overlaid(t, filepath.Join(filepath.Dir(path), "prebuilt/arm64.json")) {
		if content, err := os.ReadFile(file); err != nil || !bytes.Contains(binary, content) {
			t.Errorf("%s is not embedded in %s: %v", file, path, err)
		}
	}
}

// overlaid returns the files that an overlay of go build embeds: those above, and the playground's page.
func overlaid(t *testing.T, path string) (files []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil || len(overlay.Replace) < 6 {
		t.Fatalf("%s has %d files: %v", path, len(overlay.Replace), err)
	}
	return slices.Collect(maps.Values(overlay.Replace))
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
