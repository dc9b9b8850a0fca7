package tree

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gaol/rootfs/layer"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sealed makes a tree, changes it and seals it.
func sealed(t *testing.T, change func(root string)) (string, error) {
	t.Helper()
	root := t.TempDir()
	tr, err := layer.Open(root, layer.Limits{})
	must(t, err)
	defer tr.Close()
	must(t, tr.EnsureFolder("/tmp"))
	must(t, tr.WriteText("/a/file", "content"))
	must(t, tr.Symlink("/a/link", "file"))
	change(root)
	id, _, err := Seal(root, io.Discard)
	return id, err
}

// TestSeal checks that the id depends on everything that a guest can see, and on nothing else.
func TestSeal(t *testing.T) {
	want, err := sealed(t, func(string) {})
	must(t, err)
	in := func(name string, change func(path string) error) func(string) {
		return func(root string) { must(t, change(filepath.Join(root, name))) }
	}
	for name, c := range map[string]struct {
		same   bool
		change func(root string)
	}{
		"time":      {true, in("a/file", func(p string) error { return os.Chtimes(p, time.Now(), time.Now()) })},
		"umask":     {true, in("a", func(p string) error { return os.Chmod(p, 0o700) })},
		"content":   {false, in("a/file", func(p string) error { return os.WriteFile(p, []byte("other"), 0o644) })},
		"file mode": {false, in("a/file", func(p string) error { return os.Chmod(p, 0o755) })},
		"name":      {false, in("a/file", func(p string) error { return os.Rename(p, p+"2") })},
		"more":      {false, in("b", func(p string) error { return os.Mkdir(p, 0o755) })},
		"target":    {false, in("a/link", func(p string) error { return errors.Join(os.Remove(p), os.Symlink("x", p)) })},
	} {
		got, err := sealed(t, c.change)
		must(t, err)
		if (got == want) != c.same {
			t.Errorf("%s: %s, the original is %s", name, got, want)
		}
	}
}

func TestSealRefuses(t *testing.T) {
	for name, change := range map[string]func(root string){
		"setuid": func(root string) { must(t, os.Chmod(root+"/a/file", os.ModeSetuid|0o755)) },
		"fifo":   func(root string) { must(t, unix.Mkfifo(root+"/pipe", 0o644)) },
	} {
		if _, err := sealed(t, change); !errors.Is(err, errKind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSealOwns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	var file string
	_, err := sealed(t, func(root string) {
		file = root + "/a/link"
		must(t, os.Lchown(file, 1000, 1000))
	})
	must(t, err)
	var st unix.Stat_t
	must(t, unix.Lstat(file, &st))
	if st.Uid != 0 || st.Gid != 0 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}
