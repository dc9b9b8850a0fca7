package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs/layer"
)

// TestHostileArchive checks that each archive is refused and leaves nothing outside the tree.
func TestHostileArchive(t *testing.T) {
	typed := func(kind byte, name, target string) entry {
		return entry{Header: tar.Header{Typeflag: kind, Name: name, Linkname: target, Mode: 0o644}}
	}
	for name, entries := range map[string][]entry{
		"absolute":         {file("/package/x", "", 0o644)},
		"parent":           {file("package/../../x", "", 0o644)},
		"parent first":     {file("../package/x", "", 0o644)},
		"parent folder":    {typed(tar.TypeDir, "package/../../d/", "")},
		"dot":              {file("package/./x", "", 0o644)},
		"empty part":       {file("package//x", "", 0o644)},
		"backslash":        {file(`package\..\x`, "", 0o644)},
		"no top folder":    {file("x", "", 0o644)},
		"symbolic link":    {typed(tar.TypeSymlink, "package/x", "/etc")},
		"link within":      {typed(tar.TypeSymlink, "package/x", "y")},
		"hard link":        {typed(tar.TypeLink, "package/x", "/etc/passwd")},
		"device":           {typed(tar.TypeChar, "package/x", "")},
		"block device":     {typed(tar.TypeBlock, "package/x", "")},
		"fifo":             {typed(tar.TypeFifo, "package/x", "")},
		"setuid":           {file("package/x", "", 0o4755)},
		"setgid":           {file("package/x", "", 0o2755)},
		"sticky":           {file("package/x", "", 0o1644)},
		"file as folder":   {file("package/x", "", 0o644), file("package/x/y", "", 0o644)},
		"too many entries": make100(),
		"too many bytes":   {file("package/x", strings.Repeat("x", 1<<20), 0o644)},
		"bomb, skipped":    {file("package/skip", strings.Repeat("x", 1<<20), 0o644)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Mkdir(filepath.Join(dir, "tree"), 0o755))
			tr, err := layer.Open(filepath.Join(dir, "tree"), small)
			must(t, err)
			defer tr.Close()
			must(t, os.Symlink("../..", filepath.Join(dir, "tree/out")))
			if err := unpackInto(t, tr, pack(entries...)); err == nil {
				t.Error("not refused")
			}
			outside, err := os.ReadDir(dir)
			must(t, err)
			if len(outside) != 1 {
				t.Errorf("outside the tree: %v", outside)
			}
		})
	}
}

func make100() (entries []entry) {
	for n := range 100 {
		entries = append(entries, file("package/"+strings.Repeat("x", n+1), "", 0o644))
	}
	return entries
}

var small = layer.Limits{Entries: 50, Bytes: 1 << 19}

func unpackInto(t *testing.T, tr *layer.Tree, archive []byte) error {
	place := func(name string) string {
		if name == "skip" {
			return ""
		}
		return path.Join("/", name)
	}
	return unpackPackage(t.Context(), bytes.NewReader(archive), tr, place)
}

func TestUnpack(t *testing.T) {
	tr, err := layer.Open(t.TempDir(), small)
	must(t, err)
	defer tr.Close()
	must(t, unpackInto(t, tr, pack(
		entry{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax", PAXRecords: map[string]string{"comment": "x"}}},
		entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "any/", Mode: 0o700}},
		file("any/deep/er/plain", "1", 0o600),
		file("any/script", "2", 0o700),
		file("any/skip", "3", 0o644),
	)))
	for name, want := range map[string]fs.FileMode{"deep/er/plain": 0o644, "script": 0o755} {
		info, err := os.Lstat(tr.HostPath(name))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
		}
	}
	if _, err := os.Lstat(tr.HostPath("skip")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the skipped file: %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack(file("package/x", "1", 0o644)))
	f.Add(pack(file("package/../x", "1", 0o644)))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "tree"), 0o755))
		tr, err := layer.Open(filepath.Join(dir, "tree"), small)
		must(t, err)
		defer tr.Close()
		_ = unpackInto(t, tr, archive)
		if outside, _ := os.ReadDir(dir); len(outside) != 1 {
			t.Errorf("outside the tree: %v", outside)
		}
	})
}
