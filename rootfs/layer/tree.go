package layer

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// Tree is the folder that layers are unpacked into. It is not safe for concurrent use.
type Tree struct {
	root   *os.File // O_PATH
	path   string   // of root, as the kernel reports it
	budget budget

	// Dropped counts the devices, pipes and sockets that were dropped.
	Dropped int
}

// Open opens the host folder dir. No other process may write to it meanwhile.
func Open(dir string, l Limits) (*Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	t := &Tree{root: os.NewFile(uintptr(fd), dir), budget: newBudget(l)}
	if t.path, err = realPath(fd); err != nil {
		return nil, errors.Join(err, t.root.Close())
	}
	return t, nil
}

// Close closes the folder. It does not remove it.
func (t *Tree) Close() error { return t.root.Close() }

func realPath(fd int) (string, error) { return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)) }

// open opens the guest path p. No link leads out of the tree: absolute links start at its
// root, and ".." stops there.
func (t *Tree) open(p string, flags uint64) (*os.File, error) {
	f, err := mounts.OpenIn(t.root, path.Join(".", p), flags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	return f, nil
}

// folder opens the folder p. It makes missing folders.
func (t *Tree) folder(p string) (*os.File, error) {
	d, err := t.open(p, unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) && p != "." {
		if err := t.mkdir(p); err != nil {
			return nil, err
		}
		d, err = t.open(p, unix.O_PATH|unix.O_DIRECTORY)
	}
	return t.checkDepth(d, p, err)
}

// mkdir makes the folder p and its missing parents.
func (t *Tree) mkdir(p string) error {
	parent, err := t.folder(path.Dir(p))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := t.budget.entry(); err != nil {
		return err
	}
	if err := unix.Mkdirat(int(parent.Fd()), path.Base(p), 0o755); err != nil {
		// It exists but cannot be opened: a dangling link.
		return fmt.Errorf("%w: folder %q: %w", ErrRefused, p, err)
	}
	return nil
}

// checkDepth closes and refuses a folder that is too deep to be opened by a path.
func (t *Tree) checkDepth(d *os.File, p string, err error) (*os.File, error) {
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG) {
		return nil, fmt.Errorf("%w: folder %q: %w", ErrRefused, p, err)
	}
	if err != nil {
		return nil, err
	}
	real, err := t.GuestPath(d) // a second line of defense: RESOLVE_IN_ROOT ensures that d is below the root
	if err == nil && (len(real) > maxPath || strings.Count(real, "/") > maxDepth) {
		err = fmt.Errorf("%w: folder %.80q… is too deep", ErrRefused, p)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// kind returns the type of name in the folder d, such as S_IFREG; 0 if it does not exist.
func kind(d *os.File, name string) (uint32, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return st.Mode & unix.S_IFMT, nil
}

// prune removes name and everything in it from the folder d, except the names for which
// keep returns true, and their parents. It reports whether name was removed.
func prune(d *os.File, name string, keep func(d *os.File, name string) bool) (gone bool, err error) {
	is, err := kind(d, name)
	if err != nil || is == 0 {
		return err == nil, err
	}
	kept, flags := keep(d, name), 0
	if is == unix.S_IFDIR {
		inside, err := pruneInside(d, name, keep)
		if err != nil {
			return false, err
		}
		kept, flags = kept || !inside, unix.AT_REMOVEDIR
	}
	if kept {
		return false, nil
	}
	if err := unix.Unlinkat(int(d.Fd()), name, flags); err != nil {
		return false, &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return true, nil
}

// pruneInside prunes everything in a folder, and reports whether the folder is empty now.
func pruneInside(d *os.File, name string, keep func(*os.File, string) bool) (empty bool, err error) {
	fd, err := unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: name, Err: err}
	}
	inner := os.NewFile(uintptr(fd), name)
	defer inner.Close()
	names, err := inner.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	empty = true
	for _, n := range names {
		gone, err := prune(inner, n, keep)
		if err != nil {
			return false, err
		}
		empty = empty && gone
	}
	return empty, nil
}

func keepNothing(*os.File, string) bool { return false }
