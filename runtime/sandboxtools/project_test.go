package sandboxtools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProject(t *testing.T) {
	base, elsewhere := t.TempDir(), t.TempDir()
	b := newTestToolbox(t, Options{ProjectBase: base + "/"})
	if err := errors.Join(os.Mkdir(filepath.Join(base, "there"), 0o700), os.WriteFile(filepath.Join(base, "file"), nil, 0o600),
		os.Symlink(elsewhere, filepath.Join(base, "link")), os.Symlink("there", filepath.Join(base, "inside"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"there": "there", "new": "new", "new/../new2": "new2", base + "/a/b": "a/b", base + "//a/./c/": "a/c", "..a": "..a", "...": "...",
	} {
		f, err := b.project(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if f.Name() != want || real != filepath.Join(base, want) || err != nil {
			t.Errorf("%s: name %s, link %s, %v", path, f.Name(), real, err)
		}
		f.Close()
	}
	for path, want := range map[string]Code{
		"link": Permission, "link/new": Permission, "inside": Permission, "inside/new": Permission, "file": NotDirectory, "file/x": NotDirectory,
		"..": Permission, ".": Permission, "/": Permission, base: Permission, base + "/..": Permission, base + "2": Permission, "there/../../x": Permission, "/proc/self/cwd": Permission,
	} {
		if f, err := b.project(path); CodeOf(err) != want {
			t.Errorf("%s: %v, %v, want %s", path, f, err, want)
		}
	}
	if made, err := os.ReadDir(elsewhere); err != nil || len(made) > 0 {
		t.Error(made, err)
	}
}

// A guest exchanges a folder of its project with a link while another sandbox is created
// below it. No folder is created outside the base. With os.MkdirAll, which resolves paths,
// one is: the race is real.
func TestProjectRace(t *testing.T) {
	base, elsewhere := t.TempDir(), t.TempDir()
	b := newTestToolbox(t, Options{ProjectBase: base})
	swapped, link := filepath.Join(base, "p"), filepath.Join(base, "other")
	if err := errors.Join(os.Mkdir(swapped, 0o755), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var guest sync.WaitGroup
	guest.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, swapped, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	defer guest.Wait()
	defer close(stop)
	var created, refused int
	for i := 0; i < 100_000 && (i < 5000 || created == 0 || refused == 0); i++ {
		f, err := b.project("p/new")
		switch {
		case err == nil:
			created++
			f.Close()
		case CodeOf(err) == Permission:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if created == 0 || refused == 0 {
		t.Errorf("%d created, %d refused: no race took place", created, refused)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("created outside the base: %v, %v", left, err)
	}
	for range 100_000 {
		_ = os.MkdirAll(filepath.Join(swapped, "new"), 0o755)
		if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
			return
		}
	}
	t.Error("MkdirAll did not follow the link either: this test cannot fail")
}
