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

// gathering is what Files and Folders come to.
type gathering struct {
	limits Limits
	bytes  int64
	files  []jail.File
}

// noFiles are places without files of the guest's, but for /dev/shm: what is mounted, or
// missing, in every jail.
var noFiles = append([]vfs.Path{"/sys"}, jailsOwn...)

// gather reads the files that are to be in the tree.
func (o Options) gather(l Limits) ([]jail.File, error) {
	g := &gathering{limits: l}
	for name, text := range o.Files {
		if err := g.add(name, 0o644, slices.Clone(text)); err != nil {
			return nil, optionError("Files", "%w", err)
		}
	}
	for dir, from := range o.Folders {
		if err := g.folder(dir, from); err != nil {
			return nil, fmt.Errorf("option Folders: %w", err)
		}
	}
	slices.SortFunc(g.files, func(a, b jail.File) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(g.files); i++ {
		if g.files[i].Path == g.files[i-1].Path {
			return nil, fmt.Errorf("options Files and Folders: %s twice", g.files[i].Path)
		}
	}
	return g.files, nil
}

func (g *gathering) folder(dir string, from fs.FS) error {
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

// read reads no more than there is room for.
func (g *gathering) read(from fs.FS, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, g.limits.Disk-g.bytes+1))
}

func (g *gathering) add(name string, mode fs.FileMode, text []byte) error {
	at, err := vfs.ParsePath(name)
	if err != nil {
		return err
	}
	if own := ownedBy(at, noFiles); own != "" && ownedBy(at, vfs.Shared()) == "" {
		return fmt.Errorf("%s: %w", at, &ownError{own})
	}
	g.bytes += int64(len(text))
	if g.bytes > g.limits.Disk {
		return fmt.Errorf("%s: the files have more than %s in all, the limit of the disk", name, bytesText(g.limits.Disk))
	}
	if int64(len(g.files)) == g.limits.Inodes {
		return fmt.Errorf("%s: there are more than %d files, the limit of the tree", name, g.limits.Inodes)
	}
	g.files = append(g.files, jail.File{Path: name, Mode: mode, Data: text})
	return nil
}
