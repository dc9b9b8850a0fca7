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

// FS is a guest's tree of files. Its methods may be called from several goroutines at
// once. Their paths are the guest's, absolute and clean, see [vfs.ParsePath]; their
// errors are *fs.PathError with such a path.
type FS struct {
	who    identity
	ids    IDs
	limits Limits
	gone   error  // what is answered after Close
	key    []byte // see draftName

	mu     sync.RWMutex // held for reading by each step of an operation
	root   *os.File     // O_PATH
	closed bool

	openMu sync.Mutex
	open   map[io.Closer]struct{} // what ends with the FS
}

// Options are what an FS needs to know.
type Options struct {
	// UID and GID are the host's ids of the guest's user, whom all is done as. The
	// process must be root where they are not its own.
	UID, GID int

	// IDs are the host's ids that the guest's user namespace has. Zero: all, as they
	// are.
	IDs IDs

	// Limits bound what one call deals with. A zero field takes its default.
	Limits Limits

	// Closed is what is answered once the FS is closed. Nil: fs.ErrClosed.
	Closed error
}

// IDs is a range of ids. In it the guest's ids begin at 0.
type IDs struct {
	First, Count uint32
}

// overflowID is what the guest sees of an owner that it has no id for.
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

// Limits bound what one call deals with.
type Limits struct {
	File    int64 // bytes that ReadFile returns; default 64 MiB
	Entries int   // that are listed, visited or removed; default 100,000
	Depth   int   // folders below the one that is walked, each of which takes a descriptor; default 256
}

func (l Limits) defaults() Limits {
	return Limits{
		File:    cmp.Or(l.File, 64<<20),
		Entries: cmp.Or(l.Entries, 100_000),
		Depth:   cmp.Or(l.Depth, 256),
	}
}

// New makes an FS of the tree whose root was opened as root, best with O_PATH, and
// closes it in the end; if it fails, the caller does.
func New(root *os.File, o Options) (*FS, error) {
	l := o.Limits
	if o.UID < 0 || o.GID < 0 || l.File < 0 || l.Entries < 0 || l.Depth < 0 {
		return nil, fs.ErrInvalid
	}
	who := identityOf(o.UID, o.GID)
	if err := who.act(func() error { return nil }); err != nil {
		return nil, err
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // which never fails
	return &FS{
		key: key, who: who, ids: o.IDs, limits: l.defaults(), gone: cmp.Or(o.Closed, fs.ErrClosed),
		root: root, open: map[io.Closer]struct{}{},
	}, nil
}

// Close ends all that is open. Operations that are under way fail at their next step.
// Closing twice is no error.
func (f *FS) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()
	for _, c := range f.taken() {
		_ = c.Close() // it was only read, and its owner may have closed it just now
	}
	return f.root.Close()
}

func (f *FS) taken() []io.Closer {
	f.openMu.Lock()
	defer f.openMu.Unlock()
	var all []io.Closer
	for c := range f.open {
		all = append(all, c)
	}
	return all
}

// keep has Close close c. It is called in a step, so that none is kept after Close.
func (f *FS) keep(c io.Closer) {
	f.openMu.Lock()
	defer f.openMu.Unlock()
	f.open[c] = struct{}{}
}

func (f *FS) drop(c io.Closer) {
	f.openMu.Lock()
	defer f.openMu.Unlock()
	delete(f.open, c)
}

// step makes system calls with the guest's ids and names what failed. It calls nothing
// of the caller's, and is not nested.
func (f *FS) step(op, path string, do func(root int) error) error {
	return f.stepAs(f.who, op, path, do)
}

// stepAs is step with the ids of who.
func (f *FS) stepAs(who identity, op, path string, do func(root int) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return &fs.PathError{Op: op, Path: path, Err: f.gone}
	}
	return pathError(op, path, who.act(func() error { return do(int(f.root.Fd())) }))
}

// at is step for a path of the caller's.
func (f *FS) at(op, path string, do func(root int) error) error {
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
