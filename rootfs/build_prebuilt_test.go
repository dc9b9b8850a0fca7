package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs/programs"
	"gaol/test/tier"
)

// prebuild gives the store the prebuilt programs of its sources, and takes the host's from it.
func (s *Store) prebuild(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "programs")
	m := &s.in.programs
	must(t, m.Prebuild(t.Context(), dir, "/source"))
	m.Prebuilt = os.DirFS(dir)
	m.Reaper, m.Busybox, m.Compiler = "/nonexistent", "/nonexistent", "/nonexistent"
	t.Setenv("PATH", t.TempDir()) // no cc
}

// TestBuildPrebuilt builds an image from prebuilt programs on a host that has none. It is the image
// that the host would have built of the same sources: the same id, and the same names.
func TestBuildPrebuilt(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	compiled, s := openTiny(t, t.TempDir()), openTiny(t, t.TempDir())
	compiled.compile()
	want, err := compiled.Build(t.Context(), BuildOptions{})
	must(t, err)
	s.prebuild(t)
	got, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	if got.ID != want.ID || strings.Join(got.Names, " ") != strings.Join(want.Names, " ") {
		t.Errorf("prebuilt %s %q, compiled %s %q", got.ID, got.Names, want.ID, want.Names)
	}
	checkTree(t, got.Root())
	checkStarts(t, got.Root())

	compiled.in.programs = s.in.programs
	hits := r.hits.Load()
	found, err := compiled.Ensure(t.Context(), "", BuildOptions{})
	must(t, err)
	if found.ID != want.ID || r.hits.Load() != hits {
		t.Errorf("with prebuilt programs, Ensure found %s: it was built before", found.ID)
	}

	s.compile() // the control: this host cannot build
	if _, err := s.Build(t.Context(), BuildOptions{}); err == nil ||
		!strings.Contains(err.Error(), "the host lacks catatonit (static), cc, a static C library, busybox (static)") {
		t.Errorf("without prebuilt programs: %v", err)
	}
}

// TestImportPrebuilt checks that imported images get prebuilt programs, too.
func TestImportPrebuilt(t *testing.T) {
	s := openTiny(t, t.TempDir())
	s.prebuild(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	i, err := s.Import(t.Context(), dir, anonymous)
	must(t, err)
	checkImported(t, i.Root(), nil)
	s.in.programs.Enter += "\n"
	if _, err := s.Import(t.Context(), dir, anonymous); !errors.Is(err, programs.ErrOutdated) {
		t.Errorf("outdated: %v", err)
	}
}

// TestBuildOutdated checks that programs of another gaol get into no image.
func TestBuildOutdated(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	s.prebuild(t)
	s.in.programs.Zygote += "\n"
	if _, err := s.Build(t.Context(), BuildOptions{}); !errors.Is(err, programs.ErrOutdated) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	if r.hits.Load() != 0 {
		t.Error("something was downloaded first")
	}
	checkEmpty(t, s)
}

// TestPrebuiltNeedsLibc builds images with prebuilt programs that were linked to a newer C library
// than the image's.
func TestPrebuiltNeedsLibc(t *testing.T) {
	tier.Soak(t)
	for name, tc := range map[string]struct {
		libc string
		want error
	}{
		"older": {"\x00GLIBC_2.17\x00GLIBC_2.2.5\x00", errOldLibc},
		"none":  {"", errOldLibc},
		"same":  {"\x00GLIBC_2.17\x00GLIBC_2.2.5\x00GLIBC_2.34\x00", nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newArchive(t)
			d.fill(t)
			files := map[string]string{}
			if tc.libc != "" {
				files["usr/lib/x86_64-linux-gnu/libc.so.6"] = tc.libc
			}
			d.add(t, "alpha", "2", "beta", files)
			s := d.open(t)
			// dlsym is of GLIBC_2.34 since it moved into libc.
			s.in.programs.Zygote = "#include <dlfcn.h>\nvoid *serve(void) { return dlsym(RTLD_DEFAULT, \"x\"); }"
			path := os.Getenv("PATH")
			s.prebuild(t)
			t.Setenv("PATH", path) // for dpkg-deb
			_, err := s.Build(t.Context(), BuildOptions{})
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if tc.want != nil {
				checkEmpty(t, s)
			}
		})
	}
}
