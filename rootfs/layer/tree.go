package layer

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// Tree is the file tree of an image that is being made: a folder that layers and packages are unpacked into. It is not safe for concurrent use.
type Tree struct {
	root   *os.File // O_PATH
	path   string   // of root, as the kernel reports it
	budget budget

	// Dropped counts the devices, pipes and sockets that were dropped.
	Dropped int
}

// Open opens the host folder dir. No other process may write to it meanwhile.
func Open(dir string, l Limits) (*Tree, error) {
	root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	real, err := os.Readlink(descriptorPath(root))
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	l = l.WithDefaults()
	return &Tree{root: root, path: real, budget: budget{l, l.Entries, l.Bytes, l.Bytes}}, nil
}

// Close closes the folder. It does not remove it.
func (t *Tree) Close() error { return t.root.Close() }

// HostPath returns the host path of p. Links in p have not been resolved.
func (t *Tree) HostPath(p string) string { return filepath.Join(t.path, p) }

// descriptorPath is a path of an open file.
func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// open opens the guest path p. No link leads out of the tree: absolute links start at its
// root, and ".." stops there.
func (t *Tree) open(p string, flags uint64) (*os.File, error) {
	f, err := mounts.OpenIn(t.root, path.Join(".", p), flags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	return f, nil
}

// openFolder is an open folder of the tree. Its entries are made and removed by their last name, which
// leads nowhere else.
type openFolder struct {
	*os.Root
	file *os.File // O_PATH
	path string   // the guest's, without links
}

func (d openFolder) close() {
	_ = d.Close()
	d.file.Close()
}

// folder opens the folder p. It makes missing folders.
func (t *Tree) folder(p string) (openFolder, error) {
	d, err := t.existing(p)
	if errors.Is(err, unix.ENOENT) && p != "." {
		if err := t.mkdir(p); err != nil {
			return openFolder{}, err
		}
		return t.existing(p)
	}
	return d, err
}

// mkdir makes the folder p and its missing parents.
func (t *Tree) mkdir(p string) error {
	return t.in(p, func(parent openFolder, name string) error {
		if err := t.budget.entry(); err != nil {
			return err
		}
		if err := parent.Mkdir(name, 0o755); err != nil {
			// It exists but cannot be opened: a dangling link.
			return fmt.Errorf("%w: folder %q: %w", ErrRefused, p, err)
		}
		return nil
	})
}

// in calls do with the folder that p is in, and the last name of p. It makes missing folders.
func (t *Tree) in(p string, do func(d openFolder, name string) error) error {
	d, err := t.folder(path.Join(".", path.Dir(p)))
	if err != nil {
		return err
	}
	defer d.close()
	return do(d, path.Base(p))
}

// existing opens the folder p. It refuses one that is too deep to be opened by a path.
func (t *Tree) existing(p string) (d openFolder, err error) {
	d.file, err = t.open(p, unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG) {
		err = fmt.Errorf("%w: folder %q: %w", ErrRefused, p, err)
	}
	if err != nil {
		return d, err
	}
	d.path, err = t.GuestPath(d.file) // a second line of defense: RESOLVE_IN_ROOT ensures that d is below the root
	switch {
	case err != nil:
	case len(d.path) > maxPath || strings.Count(d.path, "/") > maxDepth:
		err = fmt.Errorf("%w: folder %.80q… is too deep", ErrRefused, p)
	default:
		d.Root, err = os.OpenRoot(descriptorPath(d.file))
	}
	if err != nil {
		return d, errors.Join(err, d.file.Close())
	}
	return d, nil
}

// symlink makes a symbolic link that replaces any file.
func (d openFolder) symlink(name, target string) error {
	if err := d.RemoveAll(name); err != nil {
		return err
	}
	return d.Symlink(target, name)
}

// ensure makes the folder name. It keeps an existing folder, but replaces a link to one.
func (d openFolder) ensure(name string) error {
	if info, err := d.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	return d.empty(name)
}

// empty makes name an empty folder.
func (d openFolder) empty(name string) error {
	if err := d.RemoveAll(name); err != nil {
		return err
	}
	return d.Mkdir(name, 0o755)
}
