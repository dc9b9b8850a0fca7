package hostfs

import (
	"io"
	"io/fs"
	"os"
	"sync"

	"gaol/internal/kernfile"

	"golang.org/x/sys/unix"
)

// File is a regular file or a folder that is open for reading. It stays the same file
// when the guest renames or replaces it. Reads see the guest's concurrent writes.
type File struct {
	fs   *FS
	path string
	file *os.File

	mu   sync.Mutex
	rest []fs.DirEntry // entries that ReadDir has not returned yet
	read bool          // ReadDir has read the folder
}

var (
	_ fs.ReadDirFile = (*File)(nil)
	_ io.ReadSeeker  = (*File)(nil)
	_ io.ReaderAt    = (*File)(nil)
)

// Open opens a regular file or a folder. It fails for other types.
func (f *FS) Open(path string) (*File, error) { return f.openAs(path, path) }

// openAs is Open with another name for the errors of the file.
func (f *FS) openAs(path, name string) (file *File, err error) {
	err = f.onNode("open", path, 0, func(n *node) (err error) {
		file, err = f.openNode(n, name)
		return err
	})
	return file, err
}

// openNode opens a node for reading. It must be called in a step, so that FS.Close closes the
// file.
func (f *FS) openNode(n *node, name string) (*File, error) {
	opened, err := n.reopen(unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	file := &File{fs: f, path: name, file: opened}
	f.open.Store(file, nil)
	return file, nil
}

// Close closes the file.
func (o *File) Close() error {
	o.fs.open.Delete(o)
	return o.fail("close", o.file.Close())
}

// fail is FS.fail, except that io.EOF stays as it is.
func (o *File) fail(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return o.fs.fail(op, o.path, err)
}

// Read implements io.Reader.
func (o *File) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	return n, o.fail("read", err)
}

// ReadAt implements io.ReaderAt.
func (o *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.file.ReadAt(p, off)
	return n, o.fail("read", err)
}

// Seek implements io.Seeker. It fails for a folder.
func (o *File) Seek(offset int64, whence int) (int64, error) {
	n, err := o.file.Seek(offset, whence)
	return n, o.fail("seek", err)
}

// Stat describes the open file. The result is an *Info.
func (o *File) Stat() (fs.FileInfo, error) {
	var st unix.Statx_t
	if err := kernfile.Control(o.file, func(fd int) (err error) {
		st, err = statAt(fd, "")
		return err
	}); err != nil {
		return nil, o.fail("stat", err)
	}
	return o.fs.info(o.path, &st), nil
}

// ReadDir implements fs.ReadDirFile. The first call reads the whole folder, up to
// Limits.Entries. The entries' type is *Info.
func (o *File) ReadDir(n int) ([]fs.DirEntry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read {
		if err := o.fs.step("readdir", o.path, func(base) (err error) {
			o.rest, err = o.fs.entries(o.file, o.fs.limits.Entries)
			o.read = err == nil
			return err
		}); err != nil {
			return nil, err
		}
	}
	if n > 0 && len(o.rest) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(o.rest) {
		n = len(o.rest)
	}
	next := o.rest[:n:n]
	o.rest = o.rest[n:]
	return next, nil
}
