package hostfs

import (
	"errors"
	"io/fs"
	"path"
)

// View is a guest's folder as a read-only file system of io/fs. Links in it lead where they
// lead the guest, also out of the folder. Names that are not UTF-8 are listed but cannot be
// used, because paths of io/fs cannot contain them. [fs.Glob], [fs.WalkDir] and [os.CopyFS] work with it.
type View struct {
	fs  *FS
	dir string
}

var (
	_ fs.StatFS     = (*View)(nil)
	_ fs.ReadDirFS  = (*View)(nil)
	_ fs.ReadFileFS = (*View)(nil)
	_ fs.ReadLinkFS = (*View)(nil)
)

// View returns a [View] of a folder. If the folder does not exist, the view's methods fail.
func (f *FS) View(dir string) fs.FS { return &View{f, dir} }

// inView calls do with the guest path of name. An error names name instead of that path.
func inView[T any](v *View, op, name string, do func(p string) (T, error)) (T, error) {
	var none T
	if !fs.ValidPath(name) {
		return none, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	p := v.dir
	if name != "." {
		p = join(v.dir, name)
	}
	out, err := do(p)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return none, &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return out, err
}

// Open implements fs.FS. Its files are a File.
func (v *View) Open(name string) (fs.File, error) {
	return inView(v, "open", name, func(p string) (fs.File, error) { return v.fs.openAs(p, name) })
}

// ReadFile implements fs.ReadFileFS.
func (v *View) ReadFile(name string) ([]byte, error) { return inView(v, "open", name, v.fs.ReadFile) }

// ReadDir implements fs.ReadDirFS.
func (v *View) ReadDir(name string) ([]fs.DirEntry, error) {
	return inView(v, "open", name, v.fs.ReadDir)
}

// Stat implements fs.StatFS.
func (v *View) Stat(name string) (fs.FileInfo, error) { return v.stat("stat", name, v.fs.Stat) }

// Lstat implements fs.ReadLinkFS.
func (v *View) Lstat(name string) (fs.FileInfo, error) { return v.stat("lstat", name, v.fs.Lstat) }

func (v *View) stat(op, name string, of func(string) (*Info, error)) (fs.FileInfo, error) {
	info, err := inView(v, op, name, of)
	if err != nil {
		return nil, err
	}
	info.name = path.Base(name)
	return info, nil
}

// ReadLink implements fs.ReadLinkFS.
func (v *View) ReadLink(name string) (string, error) {
	return inView(v, "readlink", name, v.fs.ReadLink)
}
