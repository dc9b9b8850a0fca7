package hostfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestView(t *testing.T) {
	f, dir := newFS(t, Limits{})
	for name, data := range map[string]string{
		"/file": "x", "/dir/sub/file": "y", "/dir/empty": "", "/dir/new\nline": "z", "/dir/*?[]": "a", "/-": "",
	} {
		if err := f.WriteFile(name, []byte(data), WriteOptions{Parents: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Symlink("/dir/sub/file", "/dir/link"), f.MkdirAll("/none", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"/", "/dir"} {
		names := []string{"dir/sub/file", "file", "dir/link", "none"}
		if at == "/dir" {
			names = []string{"sub/file", "empty", "link"}
		}
		if err := fstest.TestFS(f.View(at), names...); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	if data, err := fs.ReadFile(f.View("/"), "dir/link"); string(data) != "y" || err != nil {
		t.Errorf("a link that is absolute in the guest's tree: %q, %v", data, err)
	}
	if _, err := f.View("/").Open("../" + dir); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	sub, err := fs.Sub(f.View("/"), "dir")
	if data, readErr := fs.ReadFile(sub, "sub/file"); string(data) != "y" || err != nil || readErr != nil {
		t.Error(data, err, readErr)
	}
}

// TestPaths checks that every method refuses a path that is not absolute and clean, and names
// it in its error.
func TestPaths(t *testing.T) {
	f, _ := newFS(t, Limits{})
	for _, p := range []string{"", "a", "/a/", "/a/../b", "//a", "/a\x00", "/./a", "/" + strings.Repeat("a", 4096)} {
		for name, op := range operations(f, p) {
			err := op()
			e, ok := errors.AsType[*fs.PathError](err)
			if !ok || !errors.Is(err, fs.ErrInvalid) || e.Path != p {
				t.Errorf("%s %.20q: %v", name, p, err)
			}
		}
	}
	for name, op := range operations(f, "/"+strings.Repeat("n", 256)) {
		if err := op(); !errors.Is(err, unix.ENAMETOOLONG) && name != "exists" && name != "to" {
			t.Errorf("%s of a long name: %v", name, err)
		}
	}
}

// operations has all methods with a path.
func operations(f *FS, p string) map[string]func() error {
	return map[string]func() error{
		"open":     func() error { return opened(f.Open(p)) },
		"read":     func() error { _, err := f.ReadFile(p); return err },
		"readdir":  func() error { _, err := f.ReadDir(p); return err },
		"write":    func() error { return f.WriteFile(p, []byte("data"), WriteOptions{}) },
		"from r":   func() error { _, err := f.WriteFrom(p, strings.NewReader("data"), WriteOptions{}); return err },
		"append":   func() error { return f.Append(p, []byte("data"), WriteOptions{}) },
		"stat":     func() error { _, err := f.Stat(p); return err },
		"lstat":    func() error { _, err := f.Lstat(p); return err },
		"exists":   func() error { _, err := f.Exists(p); return err },
		"mkdir":    func() error { return f.MkdirAll(p, 0) },
		"remove":   func() error { return f.Remove(p) },
		"clear":    func() error { return f.RemoveAll(p) },
		"from":     func() error { return f.Rename(p, "/to") },
		"to":       func() error { return f.Rename("/", p) },
		"symlink":  func() error { return f.Symlink("text", p) },
		"readlink": func() error { _, err := f.ReadLink(p); return err },
		"chmod":    func() error { return f.Chmod(p, 0o600) },
		"walk":     func() error { return f.Walk(p, func(string, *Info, error) error { return nil }) },
		"list":     func() error { _, _, err := f.List(context.Background(), p, ListOptions{}); return err },
		"tar":      func() error { _, err := f.Tar(io.Discard, p, TarOptions{}); return err },
		"untar":    func() error { _, err := f.Untar(strings.NewReader(""), p, UntarOptions{}); return err },
	}
}

func opened(file File, err error) error {
	if err != nil {
		return err
	}
	return file.Close()
}

func TestClosed(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the end")
	f, err := New(os.NewFile(uintptr(fd), dir), Options{UID: os.Geteuid(), GID: os.Getegid(), Closed: gone})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("/file", []byte("abc"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open("/file")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Walk("/", func(string, *Info, error) error { return f.Close() }); !errors.Is(err, gone) {
		t.Errorf("walk: %v", err)
	}
	if _, err := file.Read(make([]byte, 1)); !errors.Is(err, gone) {
		t.Errorf("an open file: %v", err)
	}
	for name, op := range operations(f, "/file") {
		if err := op(); !errors.Is(err, gone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestRights checks that the host has only the guest's rights, and that new files belong to the
// guest.
func TestRights(t *testing.T) {
	f, dir := newFS(t, Limits{})
	for p, mode := range map[string]fs.FileMode{"/theirs": 0o755, "/open": 0o777} {
		if err := errors.Join(os.Mkdir(dir+p, 0), os.Chmod(dir+p, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for p, mode := range map[string]fs.FileMode{"/theirs/secret": 0o600, "/theirs/note": 0o644, "/theirs/group": 0o660, "/theirs/all": 0o666} {
		if err := errors.Join(os.WriteFile(dir+p, []byte("old"), 0o600), os.Chmod(dir+p, mode)); err != nil {
			t.Fatal(err)
		}
	}
	denied := map[string]error{}
	for _, p := range []string{"/theirs/secret", "/theirs/group"} {
		_, denied["read "+p] = f.ReadFile(p)
	}
	for _, p := range []string{"/theirs/secret", "/theirs/note", "/theirs/new"} {
		denied["write "+p] = f.WriteFile(p, []byte("new"), WriteOptions{})
		denied["append "+p] = f.Append(p, []byte("new"), WriteOptions{})
		denied["remove "+p] = f.Remove("/theirs/note")
		denied["chmod "+p] = f.Chmod("/theirs", 0o777)
	}
	for what, err := range denied {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A file that everyone may write to keeps its owner and is written in place.
	if err := f.WriteFile("/theirs/all", []byte("new content"), WriteOptions{}); err != nil {
		t.Error(err)
	}
	if i, err := f.Stat("/theirs/all"); err != nil || i.Owner() != overflowID || i.Size() != 11 || i.Mode() != 0o666 {
		t.Error(i, err)
	}
	if err := f.WriteFile("/open/mine", nil, WriteOptions{Mode: 0o640}); err != nil {
		t.Fatal(err)
	}
	i, err := f.Stat("/open/mine")
	if err != nil || i.Owner() != 1000 || i.Group() != 1001 || i.Mode() != 0o640 || time.Since(i.CreateTime()) > time.Minute {
		t.Error(i, i.Owner(), i.Group(), i.CreateTime(), err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir+"/open/mine", &st); err != nil || st.Uid != testUID || st.Gid != testGID {
		t.Error(st, err)
	}
	groups, _ := os.Getgroups()
	now, _ := unix.Getgroups()
	if diff := cmp.Diff(groups, now); diff != "" || os.Geteuid() != 0 {
		t.Error("the host's credentials have changed:", diff)
	}
	if uid, _ := unix.SetfsuidRetUid(-1); uid != 0 {
		t.Error("the host's fsuid is", uid)
	}
}

func TestWriteFrom(t *testing.T) {
	f, dir := newFS(t, Limits{})
	if err := f.WriteFile("/old", []byte("old"), WriteOptions{Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the network is down")
	if _, err := f.WriteFrom("/old", io.MultiReader(strings.NewReader("half"), errorReader{failed}), WriteOptions{}); !errors.Is(err, failed) {
		t.Error(err)
	}
	if data, err := f.ReadFile("/old"); string(data) != "old" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	const size = 5 << 20
	if n, err := f.WriteFrom("/old", io.LimitReader(zeros{}, size), WriteOptions{}); n != size || err != nil {
		t.Error(n, err)
	}
	if i, err := f.Stat("/old"); err != nil || i.Size() != size || i.Mode() != 0o600 || i.Owner() != 1000 {
		t.Error(i, err)
	}
	if n, err := f.WriteFrom("/a/new", strings.NewReader("new"), WriteOptions{Parents: true, Mode: 0o755}); n != 3 || err != nil {
		t.Error(n, err)
	}
	if err := os.Link(dir+"/old", dir+"/other"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteFrom("/old", strings.NewReader("x"), WriteOptions{}); !errors.Is(err, errShared) {
		t.Error(err)
	}
	if list, truncated, err := f.List(t.Context(), "/", ListOptions{}); len(list) != 4 || truncated || err != nil {
		t.Error(list, err)
	}
}

// TestCloseWhileWriting closes the FS in the middle of WriteFrom: the old content must stay.
func TestCloseWhileWriting(t *testing.T) {
	f, dir := newFS(t, Limits{})
	r := io.MultiReader(strings.NewReader("half"), closing{f})
	if _, err := f.WriteFrom("/file", r, WriteOptions{}); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
}

type closing struct{ f *FS }

func (c closing) Read([]byte) (int, error) {
	if err := c.f.Close(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

func TestWriteFile(t *testing.T) {
	f, dir := newFS(t, Limits{})
	write := func(p, data string, o WriteOptions) {
		t.Helper()
		if err := f.WriteFile(p, []byte(data), o); err != nil {
			t.Fatal(err)
		}
	}
	write("/a/b/c", "one", WriteOptions{Parents: true, Mode: 0o755})
	write("/a/b/c", "two", WriteOptions{Mode: 0o600}) // an existing file keeps its permissions
	if i, err := f.Stat("/a/b/c"); err != nil || i.Mode() != 0o755 {
		t.Error(i, err)
	}
	if err := os.Link(dir+"/a/b/c", dir+"/other"); err != nil {
		t.Fatal(err)
	}
	write("/a/b/c", "three", WriteOptions{})
	if data, err := f.ReadFile("/other"); string(data) != "three" || err != nil {
		t.Errorf("a file's other name has %q, %v", data, err)
	}
	write("/a/b/c", "4", WriteOptions{}) // shorter, in place
	if data, err := f.ReadFile("/other"); string(data) != "4" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if err := f.WriteFile("/x/y", nil, WriteOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, mode := range []fs.FileMode{0o4755, fs.ModeSetuid | 0o755, fs.ModeSetgid, fs.ModeDir | 0o755} {
		if err := f.WriteFile("/new", nil, WriteOptions{Mode: mode}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%v: %v", mode, err)
		}
		if err := f.Chmod("/other", mode); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%v: %v", mode, err)
		}
	}
	names, _, err := f.List(t.Context(), "/", ListOptions{})
	var got []string
	for _, e := range names {
		got = append(got, e.Path)
	}
	if diff := cmp.Diff([]string{"/a", "/a/b", "/a/b/c", "/other"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestMkdir checks that Mkdir makes one folder and never replaces a file.
func TestMkdir(t *testing.T) {
	f, _ := newFS(t, Limits{})
	if err := errors.Join(f.WriteFile("/file", nil, WriteOptions{}), f.Symlink("/noPlace", "/link"), f.Mkdir("/made", fs.ModeSticky|0o750)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		want error
	}{
		{"/made/in", nil}, {"/made", fs.ErrExist}, {"/file", fs.ErrExist}, {"/link", fs.ErrExist}, {"/", fs.ErrExist},
		{"/none/in", fs.ErrNotExist}, {"/link/in", fs.ErrNotExist}, {"/file/in", unix.ENOTDIR},
		{"in", fs.ErrInvalid}, {"/made/../in", fs.ErrInvalid}, {"/in/", fs.ErrInvalid}, {"/in\x00", fs.ErrInvalid},
	} {
		if err := f.Mkdir(tc.path, 0); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.path, err, tc.want)
		}
	}
	for p, want := range map[string]fs.FileMode{"/made": 0o750 | fs.ModeSticky, "/made/in": 0o755} {
		if i, err := f.Stat(p); err != nil || i.Mode() != want|fs.ModeDir {
			t.Error(i, err)
		}
	}
	if err := f.Mkdir("/set", fs.ModeSetuid|0o755); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
}
