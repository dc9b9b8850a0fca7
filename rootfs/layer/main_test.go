package layer

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"gaol/test/tartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type entry = tartest.Entry

var (
	link = tartest.Link
	pack = tartest.Pack
)

func file(name, content string) entry { return tartest.File(name, content, 0o644) }

func folder(name string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}}
}

func hard(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}}
}

func typed(kind byte, name string) entry {
	return entry{Header: tar.Header{Typeflag: kind, Name: name, Mode: 0o666, Devmajor: 1, Devminor: 3}}
}

// place is a folder with the tree and a file beside it, which must not change.
type place struct{ dir, root string }

const secret = "of the host"

func newPlace(t testing.TB) place {
	t.Helper()
	dir := t.TempDir()
	p := place{dir, filepath.Join(dir, "tree")}
	must(t, os.Mkdir(p.root, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600))
	return p
}

// apply applies the layers in order.
func (p place) apply(t testing.TB, l Limits, layers ...[]entry) error {
	t.Helper()
	tree, err := Open(p.root, l)
	must(t, err)
	defer tree.Close()
	for _, entries := range layers {
		if err := tree.Apply(t.Context(), bytes.NewReader(pack(entries...))); err != nil {
			return err
		}
	}
	return nil
}

// checkOutside fails if anything but the tree has changed.
func (p place) checkOutside(t testing.TB) {
	t.Helper()
	names, err := os.ReadDir(p.dir)
	must(t, err)
	info, err := os.Stat(filepath.Join(p.dir, "secret"))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(p.dir, "secret"))
	must(t, err)
	if len(names) != 2 || string(text) != secret || info.Mode() != 0o600 {
		t.Errorf("outside of the tree: %v, %q, %s", names, text, info.Mode())
	}
}

// list lists the tree: "path", with "/" after a folder, "=content" after a
// file, ">target" after a link.
func (p place) list(t testing.TB) string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(p.root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == p.root {
			return err
		}
		text := strings.TrimPrefix(name, p.root+"/")
		switch e.Type() {
		case fs.ModeDir:
			text += "/"
		case fs.ModeSymlink:
			target, err := os.Readlink(name)
			must(t, err)
			text += ">" + target
		case 0:
			content, err := os.ReadFile(name)
			must(t, err)
			text += "=" + string(content)
		default:
			text += "?"
		}
		all = append(all, text)
		return nil
	}))
	return strings.Join(all, " ")
}
