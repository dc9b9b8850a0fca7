package layer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFolders(t *testing.T) {
	p := newPlace(t)
	must(t, p.apply(t, Limits{}, []entry{
		link("tmp", "../../tmp"), file("workspace", ""), link("home", "/nowhere"),
		folder("usr/libexec/gaol/"), file("usr/libexec/gaol/enter", "evil"), link("usr/libexec/gaol/x", "../../../.."),
		link("opt", "usr"), file("bin/node", "node"), link("usr/node", "../bin/node"), link("usr/out", "../../secret"),
	}))
	tree, err := Open(p.root, Limits{})
	must(t, err)
	defer tree.Close()
	for _, dir := range []string{"/tmp", "/workspace", "/home/node", "/"} {
		must(t, tree.EnsureFolder(dir))
	}
	must(t, tree.EmptyFolder("/usr/libexec/gaol"))
	must(t, tree.EmptyFolder("/new/place"))
	if err := tree.EmptyFolder("/opt/libexec"); !errors.Is(err, ErrRefused) {
		t.Errorf("empty a folder below a link: %v", err)
	}
	must(t, tree.EnsureFolder("/usr/local"))
	must(t, os.Symlink("/usr/node", filepath.Join(p.root, "usr/local/node")))
	if f, err := tree.OpenFile("/opt/local/node"); err != nil {
		t.Error(err)
	} else if is, err := tree.GuestPath(f); err != nil || is != "/bin/node" || f.Close() != nil {
		t.Errorf("its guest path is %q, %v", is, err)
	}
	for name, want := range map[string]bool{"/usr": true, "/opt": false, "/bin/node": false, "/none": false} {
		if tree.IsFolder(name) != want {
			t.Errorf("%s is a folder: %v", name, !want)
		}
	}
	const want = "bin/ bin/node=node home/ home/node/ new/ new/place/ opt>usr tmp/ usr/ usr/libexec/ usr/libexec/gaol/ " +
		"usr/local/ usr/local/node>/usr/node usr/node>../bin/node usr/out>../../secret workspace/"
	if got := p.list(t); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	must(t, unix.Mkfifo(filepath.Join(p.root, "pipe"), 0o644))
	for name, found := range map[string]bool{
		"/usr/node": true, "/opt/local/node": true, "/usr": false, "/pipe": false, "/usr/out": false,
		"/../secret": false, "/bin/node/x": false,
	} {
		f, err := tree.OpenFile(name)
		if (err == nil) != found || !found && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f.Close()
		}
	}
	p.checkOutside(t)
}

func TestCopy(t *testing.T) {
	from, p := newPlace(t), newPlace(t)
	must(t, from.apply(t, Limits{}, []entry{file("a/x", "1"), link("l", "/etc/passwd"), file("a/\xff/y", "2"), folder("skip/"), file("skip/z", "")}))
	must(t, os.Chmod(filepath.Join(from.root, "a/x"), 0o700|os.ModeSetuid))
	must(t, unix.Mkfifo(filepath.Join(from.root, "pipe"), 0o644))
	must(t, os.Mkdir(filepath.Join(from.root, "a/.wh.x"), 0o755)) // in a plain folder, this is an ordinary name
	must(t, os.WriteFile(filepath.Join(from.root, "a/.wh.x/f"), []byte("3"), 0o644))
	must(t, os.WriteFile(filepath.Join(from.root, ".wh.l"), nil, 0o644))
	skip, err := os.Stat(filepath.Join(from.root, "skip"))
	must(t, err)
	tree, err := Open(p.root, Limits{})
	must(t, err)
	defer tree.Close()
	must(t, tree.Copy(t.Context(), from.root, skip))
	if got, want := p.list(t), ".wh.l= a/ a/.wh.x/ a/.wh.x/f=3 a/x=1 a/\xff/ a/\xff/y=2 l>/etc/passwd skip/"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if info, err := os.Stat(filepath.Join(p.root, "a/x")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info, err)
	}
	if tree.Dropped != 1 {
		t.Errorf("%d dropped", tree.Dropped)
	}
	small, err := Open(newPlace(t).root, Limits{Entries: 2})
	must(t, err)
	defer small.Close()
	if err := small.Copy(t.Context(), from.root, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}
