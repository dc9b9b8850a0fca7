package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// tree writes the files of an image. Paths are absolute, as the guest will see
// them. Nothing is ever written outside the tree, whatever links it holds, and
// nothing is written twice.
type tree struct{ root *os.Root }

// newTree makes the folder dir, the root of a new tree.
func newTree(dir string) (*tree, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{root}, nil
}

func (t *tree) Close() error { return t.root.Close() }

// local turns a guest's absolute path into one that os.Root takes.
func local(p string) string { return path.Join(".", p) }

// dir makes a folder and those above it. Modes of folders are set by seal.
func (t *tree) dir(p string) error { return t.root.MkdirAll(local(p), 0o755) }

// has reports whether there is something at p.
func (t *tree) has(p string) bool {
	_, err := t.root.Lstat(local(p))
	return err == nil
}

// link makes a symbolic link.
func (t *tree) link(p, target string) error {
	if err := t.dir(path.Dir(p)); err != nil {
		return err
	}
	return t.root.Symlink(target, local(p))
}

// hardLink makes one more name of a file that is there.
func (t *tree) hardLink(p, target string) error {
	if err := t.dir(path.Dir(p)); err != nil {
		return err
	}
	return t.root.Link(local(target), local(p))
}

// file writes what r gives. Of mode only the permission bits count.
func (t *tree) file(p string, mode fs.FileMode, r io.Reader) error {
	if err := t.dir(path.Dir(p)); err != nil {
		return err
	}
	f, err := t.root.OpenFile(local(p), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	// Chmod, for the umask is none of the image's business.
	return errors.Join(err, f.Chmod(mode.Perm()), f.Close())
}

// text writes a file for all to read.
func (t *tree) text(p, content string) error {
	return t.file(p, 0o644, strings.NewReader(content))
}

// copy writes a copy of a file of the host, which may be a link there.
func (t *tree) copy(host, p string, mode fs.FileMode) error {
	f, err := os.Open(host)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.file(p, mode, f)
}
