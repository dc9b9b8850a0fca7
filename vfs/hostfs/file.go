package hostfs

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// File is a regular file or a folder that is open for reading. It stays the same file
// when the guest renames or replaces it. Reads see the guest's concurrent writes. Seek fails for a folder. The first
// ReadDir reads the whole folder, up to Limits.Entries. Stat and ReadDir return an *Info.
type File interface {
	fs.ReadDirFile
	io.ReadSeeker
	io.ReaderAt
}

// file is a File of this kernel.
type file struct {
	fs   *FS
	path string
	file *os.File

	mu   sync.Mutex
	rest []fs.DirEntry // entries that ReadDir has not returned yet
	read bool          // ReadDir has read the folder
}

// Open opens a regular file or a folder. It fails for other types.
func (f *FS) Open(path string) (File, error) { return f.openAs(path, path) }

// openAs is Open with another name for the errors of the file.
func (f *FS) openAs(path, name string) (opened File, err error) {
	err = f.onNode("open", path, 0, func(n *node) (err error) {
		opened, err = f.openNode(n, name)
		return err
	})
	if err != nil {
		return nil, err // no nil *file
	}
	return opened, nil
}

// openNode opens a node for reading. It must be called in a step, so that FS.Close closes the
// file.
func (f *FS) openNode(n *node, name string) (*file, error) {
	opened, err := n.reopen(unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	o := &file{fs: f, path: name, file: opened}
	f.open.Store(o, nil)
	return o, nil
}

// Close closes the file.
func (o *file) Close() error {
	o.fs.open.Delete(o)
	return o.fail("close", o.file.Close())
}

// fail is FS.fail, except that io.EOF stays as it is.
func (o *file) fail(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return o.fs.fail(op, o.path, err)
}

// Read implements io.Reader.
func (o *file) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	return n, o.fail("read", err)
}

// ReadAt implements io.ReaderAt.
func (o *file) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.file.ReadAt(p, off)
	return n, o.fail("read", err)
}

// Seek implements io.Seeker.
func (o *file) Seek(offset int64, whence int) (int64, error) {
	n, err := o.file.Seek(offset, whence)
	return n, o.fail("seek", err)
}

// Stat implements fs.File.
func (o *file) Stat() (fs.FileInfo, error) {
	var st unix.Statx_t
	if err := kernfile.Control(o.file, func(fd int) (err error) {
		st, err = statAt(fd, "")
		return err
	}); err != nil {
		return nil, o.fail("stat", err)
	}
	return o.fs.info(o.path, &st), nil
}

// ReadDir implements fs.ReadDirFile.
func (o *file) ReadDir(n int) ([]fs.DirEntry, error) {
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

// tempFile is a new file that replaces the file at a place when it is complete.
type tempFile struct {
	at   place
	temp string // its name until then
	file *os.File
	bits uint32 // its permissions

	modified time.Time // zero: now
}

func newTempFile(at place, bits uint32) (*tempFile, error) {
	d := &tempFile{at: at, temp: ".gaol-" + rand.Text(), bits: bits}
	var err error
	d.file, err = openFile(at.dir, d.temp, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY)
	return d, err
}

// finish moves the file to its place if err is nil, and removes it otherwise. It returns the
// first error. The file has its permissions and its time before it is moved, so that no
// program sees it without them.
func (d *tempFile) finish(err error) error {
	if err == nil {
		err = unix.Fchmod(int(d.file.Fd()), d.bits)
	}
	if err == nil && !d.modified.IsZero() {
		err = setTime(int(d.file.Fd()), "", d.modified, unix.AT_EMPTY_PATH)
	}
	if err == nil {
		err = unix.Renameat(d.at.dir, d.temp, d.at.dir, d.at.name)
	}
	_ = d.file.Close() // reports no failed write on the file systems of a guest
	if err != nil {
		// If the guest has replaced the file, this removes the replacement.
		_ = unix.Unlinkat(d.at.dir, d.temp, 0)
	}
	return err
}

// replace replaces the file at a place by a new one.
func replace(p place, data []byte, bits uint32) error {
	d, err := newTempFile(p, bits)
	if err != nil {
		return err
	}
	_, err = d.file.Write(data)
	return d.finish(unwrapped(err))
}

// isShared reports whether the node must not be replaced by a new file: it has other names
// or another owner, or is a mount point.
func (f *FS) isShared(n *node) bool {
	return n.stat.Nlink > 1 || n.isMount() || int(n.stat.Uid) != f.guest.uid || int(n.stat.Gid) != f.guest.gid
}

var errShared = fmt.Errorf("has other names or another owner, and cannot be replaced: %w", fs.ErrInvalid)

// WriteFrom is like WriteFile for the content of r, of any length. The new content appears
// when all of it has been written. If reading or writing fails, the file does not change.
// WriteFrom returns the number of bytes written. It fails for a file that has other names or
// another owner, because it cannot replace that.
func (f *FS) WriteFrom(path string, r io.Reader, o WriteOptions) (int64, error) {
	var d *tempFile
	if err := f.write("write", path, o, func(p place, n *node, bits uint32) (err error) {
		if n != nil && f.isShared(n) {
			return errShared
		}
		if p.dir, err = unix.FcntlInt(uintptr(p.dir), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return err
		}
		if d, err = newTempFile(p, bits); err != nil {
			p.close()
		}
		return err
	}); err != nil {
		return 0, err
	}
	n, err := f.fill(d, r)
	return n, pathError("write", path, err)
}

// fill writes the content of a new file, moves the file to its place, and closes the place.
func (f *FS) fill(d *tempFile, r io.Reader) (int64, error) {
	defer d.at.close()
	n, err := io.Copy(stepWriter{f, d.file}, r)
	if err == nil { // fails if the FS has been closed
		err = unwrapped(f.stepAs(host, "write", "", func(base) error { return nil }))
	}
	// Even if the FS has been closed: no temporary file must remain in a folder of the host.
	return n, f.guest.act(func() error { return d.finish(err) })
}

// stepWriter writes to a file in steps, so that closing the FS stops it.
type stepWriter struct {
	fs   *FS
	file *os.File
}

func (w stepWriter) Write(b []byte) (n int, err error) {
	err = w.fs.step("write", "", func(base) (err error) {
		n, err = w.file.Write(b)
		return err
	})
	return n, unwrapped(err)
}
