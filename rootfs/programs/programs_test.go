package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	program = "int main(void) { return 0; }"
	object  = "int serve(void) { return 0; }"
)

// tiny returns a Maker of tiny programs.
func tiny() Maker {
	m := Default()
	m.Enter, m.Zygote = program, object // and the real Command, which needs no C library
	return m
}

func prebuild(t *testing.T, m *Maker) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "programs")
	if err := m.Prebuild(t.Context(), dir, "/source/prebuilt"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func content(t *testing.T, m *Maker, name string) []byte {
	t.Helper()
	f, err := m.Open(t.Context(), name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Prebuilt programs have the bytes of those that are made for an image, and need nothing of the
// host.
func TestPrebuild(t *testing.T) {
	m := tiny()
	if m.Prebuilt != nil {
		t.Fatal("a test has prebuilt programs, which only make build embeds")
	}
	made := map[string][]byte{}
	for _, name := range all {
		made[name] = content(t, &m, name)
	}
	dir := prebuild(t, &m)
	checkOverlay(t, dir)
	m.Prebuilt = os.DirFS(dir)
	m.Reaper, m.Busybox, m.Compiler = "/nonexistent", "/nonexistent", "/nonexistent"
	for _, name := range all {
		if got := content(t, &m, name); !bytes.Equal(got, made[name]) || !bytes.HasPrefix(got, []byte("\x7fELF")) {
			t.Errorf("%s has %d bytes if prebuilt, and %d else", name, len(got), len(made[name]))
		}
	}
}

// checkOverlay checks that the overlay names each prebuilt file, and no other.
func checkOverlay(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(dir + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if got := overlay.Replace["/source/prebuilt/"+e.Name()]; got != filepath.Join(dir, e.Name()) {
			t.Errorf("%s is replaced by %q", e.Name(), got)
		}
	}
	if len(overlay.Replace) != len(entries) || len(entries) != len(all)+1 {
		t.Errorf("%d files, %d in the overlay", len(entries), len(overlay.Replace))
	}
}

// Prebuilt programs of other sources or for another processor are rejected.
func TestOutdated(t *testing.T) {
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[goruntime.GOARCH]
	for name, change := range map[string]func(m *Maker, files fstest.MapFS){
		"other entry program": func(m *Maker, _ fstest.MapFS) { m.Enter += "\n" },
		"other zygote":        func(m *Maker, _ fstest.MapFS) { m.Zygote += "\n" },
		"other command":       func(m *Maker, _ fstest.MapFS) { m.Command += "\n" },
		"swapped sources":     func(m *Maker, _ fstest.MapFS) { m.Enter, m.Zygote = m.Zygote, m.Enter },
		"other processor":     func(m *Maker, _ fstest.MapFS) { m.Arch = other },
		"no hash":             func(_ *Maker, files fstest.MapFS) { delete(files, sourcesFile) },
		"empty hash":          func(_ *Maker, files fstest.MapFS) { files[sourcesFile].Data = nil },
		"damaged hash":        func(_ *Maker, files fstest.MapFS) { files[sourcesFile].Data = files[sourcesFile].Data[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			m := tiny()
			files := fstest.MapFS{
				sourcesFile: {Data: []byte(m.SourceHash())},
				Busybox:     {Data: []byte("busybox")},
			}
			m.Prebuilt = files
			if got := string(content(t, &m, Busybox)); got != "busybox" || m.Check() != nil {
				t.Fatalf("content %q, %v", got, m.Check())
			}
			change(&m, files)
			if _, err := m.Open(t.Context(), Busybox, t.TempDir()); !errors.Is(err, ErrOutdated) || !errors.Is(m.Check(), ErrOutdated) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A failed Prebuild leaves no hash and no overlay of an earlier one.
func TestPrebuildFails(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(m *Maker)
		want  string
	}{
		"dynamic busybox": {func(m *Maker) { m.Busybox = "/usr/bin/env" }, "busybox is not a static program"},
		"no catatonit":    {func(m *Maker) { m.Reaper = "/nonexistent" }, "catatonit: open /nonexistent: no such file"},
		"bad C":           {func(m *Maker) { m.Zygote = "int serve(void) { return x; }" }, "zygote.so: cc: exit status 1"},
		"no compiler":     {func(m *Maker) { m.Compiler = "/nonexistent" }, "enter: cc: "},
		"other processor": {func(m *Maker) { m.Arch = map[string]string{"amd64": "arm64", "arm64": "amd64"}[goruntime.GOARCH] }, ", not for "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "programs")
			earlier := []string{dir + ".json", filepath.Join(dir, sourcesFile)}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range earlier {
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m := tiny()
			tc.spoil(&m)
			err := m.Prebuild(t.Context(), dir, "/source/prebuilt")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			for _, file := range earlier {
				if _, err := os.Stat(file); err == nil {
					t.Errorf("%s is left", file)
				}
			}
		})
	}
}

// The entry program must be static, whatever the compiler makes of the flag.
func TestEnterIsStatic(t *testing.T) {
	wrapper := filepath.Join(t.TempDir(), "cc")
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/bash\nexec " + cc + " \"${@/#-static/-no-pie}\"\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	m := tiny()
	m.Compiler = wrapper
	if _, err := m.Open(t.Context(), Enter, t.TempDir()); err == nil || err.Error() != "enter is not a static program" {
		t.Errorf("error %v", err)
	}
}
