package runtime

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gaol/jail"
	"gaol/vfs"
)

// initFiles collects the files of Options.Files and Options.Folders.
type initFiles struct {
	limits Limits
	bytes  int64
	files  []jail.File
}

// reservedForFiles are folders that cannot have files of the caller, except for /dev/shm.
var reservedForFiles = append([]vfs.Path{"/sys"}, reservedForMounts...)

// initFiles returns the files that the tree begins with.
func (o Options) initFiles(l Limits) ([]jail.File, error) {
	g := &initFiles{limits: l}
	for name, text := range o.Files {
		if err := g.add(name, 0o644, slices.Clone(text)); err != nil {
			return nil, optionError("Files", "%w", err)
		}
	}
	for dir, from := range o.Folders {
		if err := g.folder(dir, from); err != nil {
			return nil, optionError("Folders", "%w", err)
		}
	}
	// Sorted, because the order of maps is random and the jail's files should not be. Two paths
	// of the two options can be the same.
	slices.SortFunc(g.files, func(a, b jail.File) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(g.files); i++ {
		if g.files[i].Path == g.files[i-1].Path {
			return nil, fmt.Errorf("options Files and Folders: %s twice", g.files[i].Path)
		}
	}
	return g.files, nil
}

func (g *initFiles) folder(dir string, from fs.FS) error {
	if _, err := vfs.ParsePath(dir); err != nil {
		return err
	}
	return fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return &fs.PathError{Op: "copy", Path: name, Err: fs.ErrInvalid}
		}
		text, err := g.read(from, name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		return g.add(path.Join(dir, name), mode, text)
	})
}

// read reads at most one byte more than the limit allows.
func (g *initFiles) read(from fs.FS, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, g.limits.Disk-g.bytes+1))
}

func (g *initFiles) add(name string, mode fs.FileMode, text []byte) error {
	at, err := vfs.ParsePath(name)
	if err != nil {
		return err
	}
	if err := checkReserved(at, reservedForFiles); err != nil && checkReserved(at, vfs.Shared()) == nil {
		return err
	}
	g.bytes += int64(len(text))
	if g.bytes > g.limits.Disk {
		return fmt.Errorf("%s: the files have more than %s in all, the limit of the disk", name, formatBytes(g.limits.Disk))
	}
	if int64(len(g.files)) == g.limits.Inodes {
		return fmt.Errorf("%s: there are more than %d files, the limit of the tree", name, g.limits.Inodes)
	}
	g.files = append(g.files, jail.File{Path: name, Mode: mode, Data: text})
	return nil
}
