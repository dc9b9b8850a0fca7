package hostfs

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// FS is the file tree of a guest. Its methods are safe for concurrent use. Their paths are
// guest paths, absolute and clean, see [vfs.ParsePath]. Their errors are *fs.PathError with
// such a path.
type FS struct {
	guest     credentials
	ids       IDs
	limits    Limits
	closedErr error  // the error of operations after Close
	key       []byte // of the MAC in temporary names

	mu     sync.RWMutex // each step of an operation holds it for reading
	root   *os.File     // O_PATH
	closed bool

	open sync.Map // set of io.Closer: closed together with the FS, and stored only in a step
}

// Options configure an FS.
type Options struct {
	// UID and GID are the host's ids of the guest's user. All operations use them. The
	// process must be root unless they are its own.
	UID, GID int

	// IDs is the range of host ids in the guest's user namespace. Zero: all ids,
	// unchanged.
	IDs IDs

	// Limits bound each call. A zero field means its default.
	Limits Limits

	// Closed is the error of operations after Close. Nil: fs.ErrClosed.
	Closed error
}

// IDs is a range of host ids. The guest sees the first of them as 0.
type IDs struct {
	First, Count uint32
}

// overflowID is the id that the guest sees for an owner outside its range.
const overflowID = 65534

func (r IDs) guest(host uint32) int {
	switch {
	case r.Count == 0:
		return int(host)
	case host >= r.First && host-r.First < r.Count:
		return int(host - r.First)
	}
	return overflowID
}

// Limits bound each call.
type Limits struct {
	File    int64 // bytes that ReadFile returns; default 64 MiB
	Entries int   // listed, visited or removed; default 100,000
	Depth   int   // of folders below the one that is walked, each of which needs a descriptor; default 256
}

// New returns an FS of the tree whose root is open as root, preferably with O_PATH. The FS
// takes ownership of root, unless New fails.
func New(root *os.File, o Options) (*FS, error) {
	l := o.Limits
	if o.UID < 0 || o.GID < 0 || l.File < 0 || l.Entries < 0 || l.Depth < 0 {
		return nil, fs.ErrInvalid
	}
	creds := credentialsOf(o.UID, o.GID)
	if err := creds.act(func() error { return nil }); err != nil {
		return nil, err
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &FS{
		key: key, guest: creds, ids: o.IDs, closedErr: cmp.Or(o.Closed, fs.ErrClosed),
		root: root, limits: Limits{cmp.Or(l.File, 64<<20), cmp.Or(l.Entries, 100_000), cmp.Or(l.Depth, 256)},
	}, nil
}

// Close closes all open files and watchers. Running operations fail at their next step.
// Close is idempotent.
func (f *FS) Close() error {
	f.mu.Lock()
	before := f.closed
	f.closed = true
	f.mu.Unlock()
	if before {
		return nil
	}
	for c := range f.open.Range {
		_ = c.(io.Closer).Close() // nothing is lost, and its owner may have closed it already
	}
	return f.root.Close()
}

// fail wraps an error of an open file or watcher. If the FS has been closed, that is the
// cause.
func (f *FS) fail(op, path string, err error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		err = f.closedErr
	}
	return &fs.PathError{Op: op, Path: path, Err: unwrapped(err)}
}

// step calls do with the guest's credentials, and wraps its error. do makes system calls. It
// must not call code of the caller, and steps must not be nested.
func (f *FS) step(op, path string, do func(root base) error) error {
	return f.stepAs(f.guest, op, path, do)
}

// stepAs is step with other credentials.
func (f *FS) stepAs(creds credentials, op, path string, do func(root base) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return &fs.PathError{Op: op, Path: path, Err: f.closedErr}
	}
	return pathError(op, path, creds.act(func() error { return do(base{int(f.root.Fd()), inRoot}) }))
}

// at is step for a path from the caller, which it checks.
func (f *FS) at(op, path string, do func(root base) error) error {
	if _, err := vfs.ParsePath(path); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: errPath}
	}
	return f.step(op, path, do)
}

func closeFD(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
