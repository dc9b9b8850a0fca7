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

// Names of entries that delete files of lower layers, from the OCI image specification.
const (
	whiteout = ".wh."
	reserved = ".wh..wh." // for tools that make layers
	opaque   = ".wh..wh..opq"
)

// Apply unpacks a tar archive over the existing files, and reads r to its end. After an
// error the tree is incomplete.
func (t *Tree) Apply(ctx context.Context, r io.Reader) error {
	return t.budget.eachEntry(ctx, r, newApplier(t).entry)
}

// EachEntry calls do for each entry of the tar archive r, except global headers, and reads r
// to its end. It fails if the archive exceeds the limits.
func EachEntry(ctx context.Context, r io.Reader, l Limits, do func(h *tar.Header, content io.Reader) error) error {
	b := newBudget(l)
	return b.eachEntry(ctx, r, do)
}

func (b *budget) eachEntry(ctx context.Context, r io.Reader, do func(*tar.Header, io.Reader) error) error {
	in := b.reader(ctx, r)
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, in) // an archive's digest covers the rest, too
			return err
		}
		if err == nil && h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err == nil {
			err = b.entry()
		}
		if err == nil {
			err = do(h, archive)
		}
		if err != nil {
			return err
		}
	}
}

// applier unpacks one layer.
type applier struct {
	*Tree
	plain bool // a folder of the host, in which no name is a whiteout
	seed  maphash.Seed
	made  map[uint64]struct{} // hashes of this layer's files and whiteouts: a whiteout deletes only files of lower layers
}

func newApplier(t *Tree) *applier {
	return &applier{Tree: t, seed: maphash.MakeSeed(), made: map[uint64]struct{}{}}
}

// entry unpacks one entry.
func (a *applier) entry(h *tar.Header, content io.Reader) error {
	dir, name, err := split(h.Name)
	switch {
	case err != nil:
		return err
	case name == "":
		if h.Typeflag != tar.TypeDir {
			return fmt.Errorf("%w: the root is of type %q", ErrRefused, h.Typeflag)
		}
		return nil
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

// split splits a path of an archive. The name is "" for the root.
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

// key identifies a name in a folder, independent of the path to the folder.
func (a *applier) key(d *os.File, name string) uint64 {
	var st unix.Stat_t
	_ = unix.Fstat(int(d.Fd()), &st) // it cannot fail for an open descriptor
	return maphash.Comparable(a.seed, struct {
		folder uint64
		name   string
	}{st.Ino, name})
}

func (a *applier) isMade(d *os.File, name string) bool {
	_, made := a.made[a.key(d, name)]
	return made
}

// whiteout removes files of lower layers.
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
	if d, err = a.checkDepth(d, dir, err); err != nil {
		return err
	}
	defer d.Close()
	if a.isMade(d, name) {
		return nil // a repeated whiteout: only this layer's files are left, and searching them may take long
	}
	a.made[a.key(d, name)] = struct{}{}
	if name != opaque {
		_, err = prune(d, hidden, a.isMade)
		return err
	}
	_, err = pruneInside(d, ".", a.isMade)
	return err
}

// place creates the entry h in the folder d.
func (a *applier) place(d *os.File, name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return placeFolder(d, name)
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

// placeFolder makes a folder. It keeps an existing folder, but replaces a link to one.
func placeFolder(d *os.File, name string) error {
	is, err := kind(d, name)
	if err != nil || is == unix.S_IFDIR {
		return err
	}
	if _, err := prune(d, name, keepNothing); err != nil {
		return err
	}
	return unix.Mkdirat(int(d.Fd()), name, 0o755)
}

// placeFile makes a new file. It does not write to an existing one, which may have other
// names by hard links.
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
	_, err = io.Copy(f, io.LimitReader(content, h.Size))
	return errors.Join(err, f.Chmod(FileMode(h.Mode)), f.Close())
}

// FileMode returns the mode of a file in an image for the mode in an archive: 0o755 if anyone
// may execute it, and 0o644 otherwise.
func FileMode(mode int64) fs.FileMode {
	if mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// placeLink makes a hard link to a file or symbolic link of the tree.
func (a *applier) placeLink(d *os.File, name, target string) error {
	dir, base, err := split(target)
	if err != nil {
		return err
	}
	if base == "" {
		return fmt.Errorf("%w: hard link to the root", ErrRefused)
	}
	from, err := a.open(dir, unix.O_PATH|unix.O_DIRECTORY)
	if from, err = a.checkDepth(from, dir, err); err != nil {
		return fmt.Errorf("%w: hard link to %.80q: %w", ErrRefused, target, err)
	}
	defer from.Close()
	if is, err := kind(from, base); err != nil || is != unix.S_IFREG && is != unix.S_IFLNK {
		return errors.Join(err, fmt.Errorf("%w: hard link to %.80q, which is not a file", ErrRefused, target))
	}
	if a.key(from, base) == a.key(d, name) {
		return nil // the link is its own target
	}
	if _, err := prune(d, name, keepNothing); err != nil {
		return err
	}
	// If the pruned folder held the target, Linkat fails with ENOENT.
	return unix.Linkat(int(from.Fd()), base, int(d.Fd()), name, 0)
}
