package hostfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// View is a guest's folder as a file system of io/fs, to be read. Links in it lead where
// they lead the guest, also out of the folder. Names that are no UTF-8 are listed, and
// can't be used: paths of io/fs don't have them. Globs are those of [FS.Glob].
type View struct {
	fs  *FS
	dir string
}

var (
	_ fs.StatFS     = (*View)(nil)
	_ fs.ReadDirFS  = (*View)(nil)
	_ fs.ReadFileFS = (*View)(nil)
	_ fs.GlobFS     = (*View)(nil)
	_ fs.ReadLinkFS = (*View)(nil)
)

// View gives a folder's. That it doesn't exist shows when it is used.
func (f *FS) View(dir string) *View { return &View{f, dir} }

// in runs an operation with the guest's path for a name, and gives its error the name.
func (v *View) in(op, name string, do func(p string) error) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	p := v.dir
	if name != "." {
		p = join(v.dir, name)
	}
	err := do(p)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return err
}

// Open implements fs.FS. Its files are *File.
func (v *View) Open(name string) (fs.File, error) {
	var file *File
	if err := v.in("open", name, func(p string) (err error) {
		file, err = v.fs.openAs(p, name)
		return err
	}); err != nil {
		return nil, err
	}
	return file, nil
}

// ReadFile implements fs.ReadFileFS.
func (v *View) ReadFile(name string) (data []byte, err error) {
	err = v.in("open", name, func(p string) (err error) {
		data, err = v.fs.ReadFile(p)
		return err
	})
	return data, err
}

// ReadDir implements fs.ReadDirFS.
func (v *View) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = v.in("open", name, func(p string) (err error) {
		list, err = v.fs.ReadDir(p)
		return err
	})
	return list, err
}

// Stat implements fs.StatFS.
func (v *View) Stat(name string) (fs.FileInfo, error) { return v.stat("stat", name, v.fs.Stat) }

// Lstat implements fs.ReadLinkFS.
func (v *View) Lstat(name string) (fs.FileInfo, error) { return v.stat("lstat", name, v.fs.Lstat) }

func (v *View) stat(op, name string, of func(string) (*Info, error)) (fs.FileInfo, error) {
	var info *Info
	if err := v.in(op, name, func(p string) (err error) {
		info, err = of(p)
		return err
	}); err != nil {
		return nil, err
	}
	info.name = path.Base(name)
	return info, nil
}

// ReadLink implements fs.ReadLinkFS.
func (v *View) ReadLink(name string) (text string, err error) {
	err = v.in("readlink", name, func(p string) (err error) {
		text, err = v.fs.ReadLink(p)
		return err
	})
	return text, err
}

// Glob implements fs.GlobFS.
func (v *View) Glob(pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	if !fs.ValidPath(pattern) {
		return nil, nil // nothing has such a name
	}
	if pattern == "." {
		return []string{pattern}, nil
	}
	found, err := v.fs.globIn(v.dir, strings.Split(pattern, "/"))
	for i := range found {
		found[i] = strings.TrimPrefix(found[i][len(v.dir):], "/")
	}
	return found, err
}
