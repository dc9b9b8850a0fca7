package layer

import (
	"archive/tar"
	"bufio"
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

// Apply unpacks a layer, a tar archive, over the existing files, and reads r to its end. After an
// error the tree is incomplete.
func (t *Tree) Apply(ctx context.Context, r io.Reader) error {
	return t.budget.eachEntry(ctx, r, newApplier(t).entry)
}

// ApplyPackage is Apply for a package's archive, in which no name deletes files. place returns where an
// entry belongs, and may change its link's target; with an empty path the entry is left out.
func (t *Tree) ApplyPackage(ctx context.Context, r io.Reader, place func(h *tar.Header, content *bufio.Reader) (string, error)) error {
	a := newApplier(t)
	a.plain = true
	return t.budget.eachEntry(ctx, r, func(h *tar.Header, content io.Reader) (err error) {
		in := bufio.NewReader(content)
		if h.Name, err = place(h, in); err != nil || h.Name == "" {
			return err
		}
		return a.entry(h, in)
	})
}

// eachEntry calls do for each entry of the tar archive r, except global headers, and reads r to its end. It fails if
// the archive exceeds the budget.
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
	plain bool // a package or a folder of the host, in which no name is a whiteout
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
	defer d.close()
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

// key identifies a name in a folder.
func (a *applier) key(d openFolder, name string) uint64 {
	return maphash.Comparable(a.seed, [2]string{d.path, name})
}

func (a *applier) isMade(d openFolder, name string) bool {
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
	d, err := a.existing(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	if a.isMade(d, name) {
		return nil // a repeated whiteout: only this layer's files are left, and searching them may take long
	}
	a.made[a.key(d, name)] = struct{}{}
	if name == opaque {
		_, err = a.hideAll(d)
	} else {
		_, err = a.hide(d, hidden)
	}
	return err
}

// hide removes name and everything in it from the folder d, except this layer's files and their
// parents. It reports whether name is gone.
func (a *applier) hide(d openFolder, name string) (gone bool, err error) {
	info, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	gone = !a.isMade(d, name)
	if info.IsDir() {
		inside, err := d.OpenRoot(name)
		if err != nil {
			return false, err
		}
		defer func() { _ = inside.Close() }()
		all, err := a.hideAll(openFolder{Root: inside, path: path.Join(d.path, name)})
		if err != nil {
			return false, err
		}
		gone = gone && all
	}
	if gone {
		err = d.Remove(name)
	}
	return gone, err
}

// hideAll hides everything in a folder, and reports whether the folder is empty now.
func (a *applier) hideAll(d openFolder) (empty bool, err error) {
	entries, err := fs.ReadDir(d.FS(), ".")
	empty = true
	for _, e := range entries {
		gone, err := a.hide(d, e.Name())
		if err != nil {
			return false, err
		}
		empty = empty && gone
	}
	return empty, err
}

// place creates the entry h in the folder d.
func (a *applier) place(d openFolder, name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return d.ensure(name)
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		if h.Size < 0 || h.Size > a.budget.stored {
			return fmt.Errorf("%w of %d bytes", ErrTooLarge, a.budget.limits.Bytes)
		}
		a.budget.stored -= h.Size
		return d.write(name, fileMode(h.Mode), io.LimitReader(content, h.Size))
	case tar.TypeSymlink:
		if len(h.Linkname) == 0 || len(h.Linkname) >= unix.PathMax || strings.ContainsRune(h.Linkname, 0) {
			return fmt.Errorf("%w: target %.80q", ErrRefused, h.Linkname)
		}
		return d.symlink(name, h.Linkname)
	case tar.TypeLink:
		return a.placeLink(d, name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		a.Dropped++
		return d.RemoveAll(name)
	}
	return fmt.Errorf("%w: type %q", ErrRefused, h.Typeflag)
}

// write makes a new file. It does not write to an existing one, which may have other names by
// hard links.
func (d openFolder) write(name string, mode fs.FileMode, content io.Reader) error {
	if err := d.RemoveAll(name); err != nil {
		return err
	}
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// fileMode returns the mode of a file in an image for the mode in an archive: 0o755 if anyone
// may execute it, and 0o644 otherwise.
func fileMode(mode int64) fs.FileMode {
	if mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// placeLink makes a hard link to a file or symbolic link of the tree.
func (a *applier) placeLink(d openFolder, name, target string) error {
	dir, base, err := split(target)
	if err != nil {
		return err
	}
	if base == "" {
		return fmt.Errorf("%w: hard link to the root", ErrRefused)
	}
	from, err := a.existing(dir)
	if err != nil {
		return fmt.Errorf("%w: hard link to %.80q: %w", ErrRefused, target, err)
	}
	defer from.close()
	if info, err := from.Lstat(base); err != nil || info.Mode().Type()&^fs.ModeSymlink != 0 {
		return errors.Join(err, fmt.Errorf("%w: hard link to %.80q, which is not a file", ErrRefused, target))
	}
	if from.path == d.path && base == name {
		return nil // the link is its own target
	}
	if err := d.RemoveAll(name); err != nil {
		return err
	}
	// If the removed folder held the target, Linkat fails with ENOENT.
	return unix.Linkat(int(from.file.Fd()), base, int(d.file.Fd()), name, 0)
}
