package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Tree is the file tree of an image that is being made.
type Tree struct{ root *os.Root }

// Open opens the tree in the folder dir.
func Open(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{root}, nil
}

// Close closes the tree's folder.
func (t *Tree) Close() error { return t.root.Close() }

// FS returns the tree as a file system for reading.
func (t *Tree) FS() fs.FS { return t.root.FS() }

// HostPath returns the host path of p. Links in p have not been resolved.
func (t *Tree) HostPath(p string) string { return filepath.Join(t.root.Name(), p) }

// local turns an absolute guest path into the relative one that os.Root expects.
func local(p string) string { return path.Join(".", p) }

// Mkdir makes the folder p and its missing parents. [Seal] sets the modes of folders.
func (t *Tree) Mkdir(p string) error { return t.root.MkdirAll(local(p), 0o755) }

// Has reports whether p exists. It does not follow a link at p.
func (t *Tree) Has(p string) bool {
	_, err := t.root.Lstat(local(p))
	return err == nil
}

// CheckProgram returns an error unless p is a regular file that everyone may execute.
func (t *Tree) CheckProgram(p string) error {
	info, err := t.root.Lstat(local(p))
	if err == nil && info.Mode() != 0o755 {
		err = fmt.Errorf("%s is not an executable file", p)
	}
	return err
}

// Symlink makes a symbolic link at p, and the missing parents of p.
func (t *Tree) Symlink(p, target string) error {
	if err := t.Mkdir(path.Dir(p)); err != nil {
		return err
	}
	return t.root.Symlink(target, local(p))
}

// Link makes p a hard link to the existing file target.
func (t *Tree) Link(p, target string) error {
	if err := t.Mkdir(path.Dir(p)); err != nil {
		return err
	}
	return t.root.Link(local(target), local(p))
}

// WriteFile writes the content of r to the new file p. It sets the permission bits of mode,
// whatever the umask is.
func (t *Tree) WriteFile(p string, mode fs.FileMode, r io.Reader) error {
	if err := t.Mkdir(path.Dir(p)); err != nil {
		return err
	}
	f, err := t.root.OpenFile(local(p), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(mode.Perm()), f.Close())
}

// WriteText writes a new file with mode 0644.
func (t *Tree) WriteText(p, content string) error {
	return t.WriteFile(p, 0o644, strings.NewReader(content))
}

// CopyFile copies the file at the host path host, following links there, to p.
func (t *Tree) CopyFile(host, p string, mode fs.FileMode) error {
	f, err := os.Open(host)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.WriteFile(p, mode, f)
}
