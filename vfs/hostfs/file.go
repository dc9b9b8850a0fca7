package hostfs

import (
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// File is a regular file or a folder that is open for reading: the one that bore the
// name when it was opened, whatever becomes of the name. Its reads see what the guest
// writes meanwhile.
type File struct {
	fs   *FS
	path string
	file *os.File

	mu   sync.Mutex
	rest []fs.DirEntry // what ReadDir has not returned yet
	read bool          // ReadDir has read the folder
}

var (
	_ fs.ReadDirFile = (*File)(nil)
	_ io.ReadSeeker  = (*File)(nil)
	_ io.ReaderAt    = (*File)(nil)
)

// Open opens a regular file or a folder. Nothing else can be opened.
func (f *FS) Open(path string) (*File, error) { return f.openAs(path, path) }

// openAs names the file in its errors.
func (f *FS) openAs(path, name string) (file *File, err error) {
	err = f.at("open", path, func(root int) error {
		fd, _, err := openFor(root, path, unix.O_RDONLY)
		if err != nil {
			return err
		}
		file = &File{fs: f, path: name, file: os.NewFile(uintptr(fd), name)}
		f.keep(file)
		return nil
	})
	return file, err
}

// openFor opens what path leads to, and tells what it is.
func openFor(root int, path string, flags int) (int, *unix.Statx_t, error) {
	n, err := lookup(root, path, false)
	if err != nil {
		return -1, nil, err
	}
	defer n.close()
	fd, err := n.reopen(flags)
	return fd, &n.stat, err
}

// Close closes the file.
func (o *File) Close() error {
	o.fs.drop(o)
	return o.fail("close", o.file.Close())
}

// fail names the guest's path, and the end of the whole tree as such.
func (o *File) fail(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	o.fs.mu.RLock()
	defer o.fs.mu.RUnlock()
	if o.fs.closed {
		return &fs.PathError{Op: op, Path: o.path, Err: o.fs.gone}
	}
	return pathError(op, o.path, err)
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

// Seek implements io.Seeker. A folder can't be sought in.
func (o *File) Seek(offset int64, whence int) (int64, error) {
	n, err := o.file.Seek(offset, whence)
	return n, o.fail("seek", err)
}

// Stat tells about the open file. Its type is *Info.
func (o *File) Stat() (fs.FileInfo, error) {
	var st unix.Statx_t
	if err := control(o.file, func(fd int) (err error) {
		st, err = statAt(fd, "")
		return err
	}); err != nil {
		return nil, o.fail("stat", err)
	}
	return o.fs.info(o.path, &st), nil
}

// control uses a file's descriptor, which is not closed meanwhile.
func control(file *os.File, do func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return fs.ErrClosed
	}
	return failed
}

// ReadDir implements fs.ReadDirFile. The first call reads the whole folder, at most
// Limits.Entries of it. The entries' type is *Info.
func (o *File) ReadDir(n int) ([]fs.DirEntry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.readOnce(); err != nil {
		return nil, err
	}
	if n <= 0 || n > len(o.rest) {
		if n > 0 && len(o.rest) == 0 {
			return nil, io.EOF
		}
		n = len(o.rest)
	}
	next := o.rest[:n:n]
	o.rest = o.rest[n:]
	return next, nil
}

func (o *File) readOnce() error {
	if o.read {
		return nil
	}
	var list []*Info
	if err := o.fs.step("readdir", o.path, func(int) error {
		return control(o.file, func(fd int) (err error) {
			list, err = o.fs.entries(fd, o.fs.limits.Entries)
			return err
		})
	}); err != nil {
		return err
	}
	o.rest, o.read = dirEntries(list), true
	return nil
}

func dirEntries(list []*Info) []fs.DirEntry {
	out := make([]fs.DirEntry, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}
