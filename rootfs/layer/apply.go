package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// The names that say what of the layers below is to go, as the OCI image
// specification has them.
const (
	whiteout = ".wh."
	reserved = ".wh..wh." // for the use of whoever makes layers
	opaque   = ".wh..wh..opq"
)

// Apply lays a tar archive over what is there, and reads r to its end. With an error
// the tree is of no use.
func (t *Tree) Apply(ctx context.Context, r io.Reader) error {
	a := newApplier(t)
	bounded := t.budget.reader(ctx, r)
	archive := tar.NewReader(bounded)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		h, err := archive.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, bounded) // its digest covers what follows, too
			return err
		}
		if err != nil {
			return err
		}
		if err := a.entry(h, archive); err != nil {
			return err
		}
	}
}

// applier lays one layer.
type applier struct {
	*Tree
	plain bool // a folder of the host, where no name means a whiteout
	seed  maphash.Seed
	made  map[uint64]struct{} // hashes of what this layer has, whiteouts too, which are for those below
}

func newApplier(t *Tree) *applier {
	return &applier{Tree: t, seed: maphash.MakeSeed(), made: map[uint64]struct{}{}}
}

// entry lays one entry.
func (a *applier) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := a.budget.entry(); err != nil {
		return err
	}
	dir, name, err := split(h.Name)
	switch {
	case err != nil:
		return err
	case name == "":
		return a.rootEntry(h)
	case !a.plain && strings.Contains("/"+dir, "/"+whiteout):
		return fmt.Errorf("%w: path %.80q", ErrRefused, h.Name)
	case !a.plain && strings.HasPrefix(name, whiteout):
		return a.whiteout(dir, name)
	}
	d, err := a.folder(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := a.place(d, name, h, content); err != nil {
		return fmt.Errorf("%.200q: %w", h.Name, err)
	}
	a.made[a.key(d, name)] = struct{}{}
	return nil
}

func (a *applier) rootEntry(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return fmt.Errorf("%w: the root is of type %q", ErrRefused, h.Typeflag)
	}
	return nil
}

// split takes a path of an archive apart. The name is "" for the root.
func split(p string) (dir, name string, err error) {
	var names []string
	for n := range strings.SplitSeq(p, "/") {
		switch {
		case n == "" || n == ".":
			continue
		case n == "..", len(n) > maxName, strings.ContainsRune(n, 0):
			return "", "", fmt.Errorf("%w: path %.80q", ErrRefused, p)
		}
		names = append(names, n)
	}
	if len(p) > maxPath || len(names) > maxDepth {
		return "", "", fmt.Errorf("%w: path %.80q… is too long", ErrRefused, p)
	}
	if len(names) == 0 {
		return ".", "", nil
	}
	last := len(names) - 1
	return path.Join(".", path.Join(names[:last]...)), names[last], nil
}

// key tells one name in one folder from all others, whatever links lead there.
func (a *applier) key(d *os.File, name string) uint64 {
	var st unix.Stat_t
	_ = unix.Fstat(int(d.Fd()), &st) // it can't fail for a descriptor that is open
	return maphash.Comparable(a.seed, struct {
		folder uint64
		name   string
	}{st.Ino, name})
}

func (a *applier) isMade(d *os.File, name string) bool {
	_, made := a.made[a.key(d, name)]
	return made
}

// whiteout removes what the layers below have.
func (a *applier) whiteout(dir, name string) error {
	hidden := strings.TrimPrefix(name, whiteout)
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("%w: whiteout %q", ErrRefused, name)
	}
	if name != opaque && strings.HasPrefix(name, reserved) {
		return nil
	}
	d, err := a.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if d, err = a.inBounds(d, dir, err); err != nil {
		return err
	}
	defer d.Close()
	if a.isMade(d, name) {
		return nil // said before: what is there is this layer's, and may take long to look through
	}
	a.made[a.key(d, name)] = struct{}{}
	if name != opaque {
		_, err = prune(d, hidden, a.isMade)
		return err
	}
	_, err = pruneInside(d, ".", a.isMade)
	return err
}

// place makes what h tells of in the folder d.
func (a *applier) place(d *os.File, name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return a.placeFolder(d, name)
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		if err := a.budget.store(h.Size); err != nil {
			return err
		}
		return a.placeFile(d, name, h, content)
	case tar.TypeSymlink:
		if len(h.Linkname) == 0 || len(h.Linkname) >= unix.PathMax || strings.ContainsRune(h.Linkname, 0) {
			return fmt.Errorf("%w: target %.80q", ErrRefused, h.Linkname)
		}
		if _, err := prune(d, name, keepNothing); err != nil {
			return err
		}
		return unix.Symlinkat(h.Linkname, int(d.Fd()), name)
	case tar.TypeLink:
		return a.placeLink(d, name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		a.Dropped++
		_, err := prune(d, name, keepNothing)
		return err
	}
	return fmt.Errorf("%w: type %q", ErrRefused, h.Typeflag)
}

// placeFolder leaves a folder that is there as it is, and a link to one not.
func (a *applier) placeFolder(d *os.File, name string) error {
	is, err := kind(d, name)
	if err != nil || is == unix.S_IFDIR {
		return err
	}
	if _, err := prune(d, name, keepNothing); err != nil {
		return err
	}
	return unix.Mkdirat(int(d.Fd()), name, 0o755)
}

// placeFile makes a new file: what had its name may be another's, too, by a hard link.
func (a *applier) placeFile(d *os.File, name string, h *tar.Header, content io.Reader) error {
	if _, err := prune(d, name, keepNothing); err != nil {
		return err
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(d.Fd()), name, flags, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	_, err = io.Copy(f, io.LimitReader(content, h.Size))
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// placeLink makes one more name of a file, or of a symbolic link, of the tree.
func (a *applier) placeLink(d *os.File, name, target string) error {
	dir, base, err := split(target)
	if err != nil {
		return err
	}
	if base == "" {
		return fmt.Errorf("%w: hard link to the root", ErrRefused)
	}
	from, err := a.open(dir, unix.O_PATH|unix.O_DIRECTORY)
	if from, err = a.inBounds(from, dir, err); err != nil {
		return fmt.Errorf("%w: hard link to %.80q: %w", ErrRefused, target, err)
	}
	defer from.Close()
	if is, err := kind(from, base); err != nil || is != unix.S_IFREG && is != unix.S_IFLNK {
		return errors.Join(err, fmt.Errorf("%w: hard link to %.80q, which is no file", ErrRefused, target))
	}
	if a.key(from, base) == a.key(d, name) {
		return nil // it is its own target already
	}
	if _, err := prune(d, name, keepNothing); err != nil {
		return err
	}
	// What was pruned may have held the target: the kernel then says that it is missing.
	return unix.Linkat(int(from.Fd()), base, int(d.Fd()), name, 0)
}
