package tree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs/layer"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// listed makes a sealed tree and returns its folder and list.
func listed(t *testing.T) (root string, list []byte) {
	t.Helper()
	root = t.TempDir()
	tr, err := layer.Open(root, layer.Limits{})
	must(t, err)
	defer tr.Close()
	for _, name := range []string{"/a/file", "/a/more/deep", "/a-b/file", "/a\nb \"c\"\xff/file", "/!"} {
		must(t, tr.WriteText(name, "content"))
	}
	must(t, tr.EnsureFolder("/tmp"))
	must(t, tr.Symlink("/link", "a/file"))
	var text bytes.Buffer
	id, _, err := Seal(root, &text)
	must(t, err)
	if got := ListID(text.Bytes()); got != id {
		t.Errorf("the list's id is %s, the tree's %s", got, id)
	}
	return root, text.Bytes()
}

func owner() CompareOptions { return CompareOptions{UID: uint32(os.Geteuid())} }

const (
	dirMode    = "drwxr-xr-x"
	fileMode   = "-rw-r--r--"
	contentSHA = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	emptySHA   = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, in func(string) string)
		want   []Difference
	}{
		"nothing": {func(*testing.T, func(string) string) {}, nil},
		"added folder": {func(t *testing.T, in func(string) string) {
			must(t, os.MkdirAll(in("a.d/x/y"), 0o755))
		}, []Difference{{"/a.d", Added, "", dirMode}}},
		"added files": {func(t *testing.T, in func(string) string) {
			must(t, os.WriteFile(in("\x01"), nil, 0o644))
			must(t, os.WriteFile(in("a/z"), nil, 0o644))
			must(t, os.WriteFile(in("z"), nil, 0o644))
		}, []Difference{{"/\x01", Added, "", fileMode}, {"/a/z", Added, "", fileMode}, {"/z", Added, "", fileMode}}},
		"removed folders": {func(t *testing.T, in func(string) string) {
			must(t, os.RemoveAll(in("a")))
			must(t, os.RemoveAll(in("tmp")))
		}, []Difference{{"/a", Removed, dirMode, ""}, {"/tmp", Removed, "dtrwxrwxrwx", ""}}},
		"emptied": {func(t *testing.T, in func(string) string) {
			must(t, os.RemoveAll(in("a/more/deep")))
			must(t, os.RemoveAll(in("a\nb \"c\"\xff/file")))
		}, []Difference{{"/a/more/deep", Removed, fileMode, ""}, {"/a\nb \"c\"\xff/file", Removed, fileMode, ""}}},
		"file to link": {func(t *testing.T, in func(string) string) {
			must(t, os.Remove(in("a/file")))
			must(t, os.Symlink("/etc/passwd", in("a/file")))
		}, []Difference{{"/a/file", Type, fileMode, "Lrwxrwxrwx"}}},
		"file to folder": {func(t *testing.T, in func(string) string) {
			must(t, os.Remove(in("a/file")))
			must(t, os.MkdirAll(in("a/file/x"), 0o755))
		}, []Difference{{"/a/file", Type, fileMode, dirMode}}},
		"folder to pipe": {func(t *testing.T, in func(string) string) {
			must(t, os.RemoveAll(in("a")))
			must(t, unix.Mkfifo(in("a"), 0o600))
		}, []Difference{{"/a", Type, dirMode, "prw-------"}}},
		"folder to link to itself": {func(t *testing.T, in func(string) string) {
			must(t, os.Rename(in("a"), in("moved")))
			must(t, os.Symlink("moved", in("a")))
		}, []Difference{{"/a", Type, dirMode, "Lrwxrwxrwx"}, {"/moved", Added, "", dirMode}}},
		"mode": {func(t *testing.T, in func(string) string) {
			must(t, os.Chmod(in("a/file"), os.ModeSetuid|0o755))
			must(t, os.Chmod(in("tmp"), 0o755))
			must(t, os.Chmod(in("."), 0o700))
		}, []Difference{{"/", Mode, dirMode, "drwx------"}, {"/a/file", Mode, fileMode, "urwxr-xr-x"}, {"/tmp", Mode, "dtrwxrwxrwx", dirMode}}},
		"content": {func(t *testing.T, in func(string) string) {
			must(t, os.Truncate(in("!"), 0))
		}, []Difference{{"/!", Content, contentSHA, emptySHA}}},
		"target": {func(t *testing.T, in func(string) string) {
			must(t, os.Remove(in("link")))
			must(t, os.Symlink("a\nb", in("link")))
		}, []Difference{{"/link", Target, "a/file", "a\nb"}}},
		"time": {func(t *testing.T, in func(string) string) {
			must(t, os.Remove(in("!")))
			must(t, os.WriteFile(in("!"), []byte("content"), 0o644))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root, list := listed(t)
			c.change(t, func(name string) string { return filepath.Join(root, name) })
			got, err := Compare(t.Context(), root, list, owner())
			must(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompareAttributes needs root and a file system with extended attributes.
func TestCompareAttributes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("owners and capabilities need root")
	}
	root, list := listed(t)
	must(t, os.Lchown(filepath.Join(root, "link"), 0, 7))
	must(t, os.Lchown(filepath.Join(root, "a/file"), 1000, 0))
	capability := []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00") // cap_net_bind_service
	must(t, unix.Lsetxattr(filepath.Join(root, "!"), "security.capability", capability, 0))
	must(t, unix.Lsetxattr(filepath.Join(root, "tmp"), "trusted.overlay.opaque", []byte("y"), 0))
	must(t, unix.Lsetxattr(filepath.Join(root, "a-b"), "security.other", []byte("label"), 0))
	got, err := Compare(t.Context(), root, list, owner())
	must(t, err)
	want := []Difference{
		{"/!", Xattrs, "", "security.capability"}, {"/a/file", Owner, "0:0", "1000:0"},
		{"/link", Owner, "0:0", "0:7"}, {"/tmp", Xattrs, "", "trusted.overlay.opaque"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompareReads(t *testing.T) {
	root, list := listed(t)
	must(t, os.Truncate(filepath.Join(root, "!"), 0))
	must(t, os.Truncate(filepath.Join(root, "a/file"), 0))
	o := owner()
	o.Reads = func(info fs.FileInfo) bool { return info.Name() == "file" }
	got, err := Compare(t.Context(), root, list, o)
	if must(t, err); len(got) != 1 || got[0].Path != "/a/file" {
		t.Errorf("%+v", got)
	}
}

func TestCompareFails(t *testing.T) {
	root, list := listed(t)
	for _, bad := range []string{"x", "- \"", "- \"a\"", "- \"a\" b", "- \"a\" \"b\" \"c\""} {
		if _, err := Compare(t.Context(), root, []byte(bad+"\n"), owner()); !errors.Is(err, errList) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := Compare(t.Context(), root, append(bytes.Clone(list), bad...), owner()); !errors.Is(err, errList) {
			t.Errorf("%q at the end: %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, err := Compare(ctx, root, list, owner()); !errors.Is(err, stop) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := Compare(t.Context(), filepath.Join(root, "none"), list, owner()); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "\n") {
		t.Errorf("no tree: %v", err)
	}
}
