package mounts

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/step"
)

const program = "/usr/libexec/program"

// testTree returns a tree with an image that contains a program and an /etc/file.
func testTree(t *testing.T) Tree {
	t.Helper()
	image := t.TempDir()
	for name, mode := range map[string]os.FileMode{"etc": 0o755, "usr/libexec": 0o755, "tmp": 0o777 | os.ModeSticky} {
		path := filepath.Join(image, name)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"etc/file", program} {
		if err := os.WriteFile(filepath.Join(image, name), []byte("image's\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Tree{Image: image, Dirs: []string{"/work"}, Disk: 1 << 20, Inodes: 64, Protected: []string{program}}
}

// mountTree mounts a tree on a new thread, and calls check there. guest calls a
// function with the guest's rights over files.
func mountTree(t *testing.T, tree Tree, check func(s *Stage, guest func(func() error) error)) error {
	t.Helper()
	s := Prepare(tree, firstID)
	defer s.Close()
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the mounts end with the thread
		err := s.Open(dir)
		if err == nil {
			err = s.Mount()
		}
		if err == nil && check != nil {
			check(s, newBuilder(s).asGuest)
		}
		done <- err
	}()
	return <-done
}

func write(path string) func() error {
	return func() error { return os.WriteFile(Root+path, []byte("guest's\n"), 0o644) }
}

func rename(from, to string) func() error {
	return func() error { return os.Rename(Root+from, Root+to) }
}

func list(path string) func() error {
	return func() error {
		_, err := os.ReadDir(Root + path)
		return err
	}
}

// The guest's rights in a tree with all kinds of places.
func TestPlaces(t *testing.T) {
	host := t.TempDir()
	if err := errors.Join(os.Chmod(host, 0o755), os.Chown(host, 4242, 4242), os.Mkdir(host+"/sub", 0o755), os.Chown(host+"/sub", 4242, 4242)); err != nil {
		t.Fatal(err)
	}
	source, err := os.OpenFile(host, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	tree := testTree(t)
	folder := func(path string) []Place { return []Place{{path, true}} }
	tree.Dirs = append(tree.Dirs, "/sealed")
	tree.Sealed = []string{"/sealed"}
	tree.Hide, tree.Show = folder("/work/hidden"), folder("/work/hidden/shown")
	tree.ReadOnly, tree.Writable = folder("/work/fixed"), folder("/work/fixed/free")
	tree.Make, tree.Pinned = folder("/work/pinned"), []string{"/work/pinned"}
	tree.Files = []File{{Path: "/work/file", Mode: 0o600, Data: []byte("content\n")}}
	tree.Mounts = []Mount{
		{Source: source, Target: "/work/rw/sub/inner"}, {Source: source, Target: "/work/rw", Access: ReadWrite},
		{Source: source, Target: "/data/ro"}, {Source: source, Target: "/data/cow", Access: CopyOnWrite},
	}
	err = mountTree(t, tree, func(_ *Stage, guest func(func() error) error) {
		for _, tc := range []struct {
			name string
			do   func() error
			want error
		}{
			{"own folder", write("/work/new"), nil},
			{"own file", write("/work/file"), nil},
			{"temporary folder", write("/tmp/new"), nil},
			{"file of the image", write("/etc/file"), unix.EACCES},
			{"new file in the image", write("/etc/new"), unix.EACCES},
			{"sealed folder", write("/sealed/new"), unix.EACCES},
			{"list a hidden folder", list("/work/hidden"), unix.EACCES},
			{"write to a hidden folder", write("/work/hidden/new"), unix.EACCES},
			{"rename a hidden folder", rename("/work/hidden", "/work/open"), unix.EBUSY},
			{"shown folder", write("/work/hidden/shown/new"), nil},
			{"read-only folder", write("/work/fixed/new"), unix.EROFS},
			{"writable folder in it", write("/work/fixed/free/new"), nil},
			{"pinned folder", rename("/work/pinned", "/work/other"), unix.EBUSY},
			{"read-only mount", write("/data/ro/new"), unix.EROFS},
			{"mount in another", write("/work/rw/sub/inner/new"), unix.EROFS},
			{"copied mount", write("/data/cow/copied"), nil},
			{"written mount", write("/work/rw/new"), nil},
		} {
			if err := guest(tc.do); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var info unix.Stat_t
	if err := unix.Stat(host+"/new", &info); err != nil || info.Uid != 4242 {
		t.Errorf("the host's new file is of %d, %v", info.Uid, err)
	}
	if _, err := os.Stat(host + "/copied"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the host has what the guest wrote to a copy: %v", err)
	}
}

func TestMountErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Tree)
		step   string
		want   error
	}{
		"no image":             {func(t *Tree) { t.Image = "/nosuch" }, "mount", unix.ENOENT},
		"guest folder":         {func(t *Tree) { t.Dirs = []string{"/usr"} }, "make", ErrProtected},
		"guest file":           {func(t *Tree) { t.Dirs = []string{"/etc/file"} }, "make", unix.ENOTDIR},
		"unclean path":         {func(t *Tree) { t.Dirs = []string{"/a/../b"} }, "make", unix.EINVAL},
		"place below a file":   {func(t *Tree) { t.Hide = []Place{{"/etc/file/x", true}} }, "restrict", unix.ENOTDIR},
		"file in place of dir": {func(t *Tree) { t.Files = []File{{Path: "/etc"}} }, "restrict", unix.EISDIR},
	} {
		tree := testTree(t)
		tc.change(&tree)
		err := mountTree(t, tree, nil)
		if failed, ok := errors.AsType[*step.Error](err); !ok || failed.Step != tc.step || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want a failed %s: %v", name, err, tc.step, tc.want)
		}
	}
}

// Only root may be able to change a program that runs with the host's rights.
func TestOpenProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(path string) error
		fails bool
	}{
		"root's":        {func(string) error { return nil }, false},
		"another's":     {func(path string) error { return os.Chown(path, 1000, 0) }, true},
		"writable":      {func(path string) error { return os.Chmod(path, 0o777) }, true},
		"link":          {func(path string) error { return errors.Join(os.Rename(path, path+"-"), os.Symlink("program-", path)) }, true},
		"missing":       {os.Remove, true},
		"in a link":     {func(path string) error { return relink(filepath.Dir(path)) }, true},
		"not a regular": {func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o700)) }, true},
	} {
		tree := testTree(t)
		if err := tc.spoil(filepath.Join(tree.Image, program)); err != nil {
			t.Fatal(err)
		}
		err := mountTree(t, tree, func(s *Stage, _ func(func() error) error) {
			f, err := s.OpenProgram(program, unix.O_PATH)
			if (err != nil) != tc.fails {
				t.Errorf("%s: %v", name, err)
			}
			f.Close()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// relink replaces a folder by a link to it.
func relink(dir string) error {
	return errors.Join(os.Rename(dir, dir+"-"), os.Symlink(filepath.Base(dir)+"-", dir))
}
