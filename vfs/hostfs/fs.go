package hostfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	goruntime "runtime"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/vfs"
)

// Files are the operations on the file tree of a guest. FS implements them, and documents them; so may a tree that is
// in another kernel.
type Files interface {
	Open(path string) (File, error)
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, data []byte, o WriteOptions) error
	WriteFrom(path string, r io.Reader, o WriteOptions) (int64, error)
	Append(path string, data []byte, o WriteOptions) error

	Stat(path string) (*Info, error)
	Lstat(path string) (*Info, error)
	Exists(path string) (bool, error)
	ReadLink(path string) (string, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	List(ctx context.Context, path string, o ListOptions) (list []Entry, truncated bool, err error)
	Walk(path string, visit WalkFunc) error
	View(dir string) fs.FS

	Mkdir(path string, mode fs.FileMode) error
	MkdirAll(path string, mode fs.FileMode) error
	Symlink(text, path string) error
	Rename(from, to string) error
	Chmod(path string, mode fs.FileMode) error
	Remove(path string) error
	RemoveAll(path string) error

	Tar(w io.Writer, dir string, o TarOptions) (TarReport, error)
	Untar(r io.Reader, dir string, o UntarOptions) (UntarReport, error)
	Close() error
}

var _ Files = (*FS)(nil)

// FS is the file tree of a guest. Its methods are safe for concurrent use. Their paths are
// guest paths, absolute and clean, see [vfs.ParsePath]. Their errors are *fs.PathError with
// such a path.
type FS struct {
	guest     credentials
	ids       IDs
	limits    Limits
	closedErr error // the error of operations after Close

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
	File    int64 // bytes that ReadFile returns; default DefaultFile
	Entries int   // listed, visited or removed; default DefaultEntries
	Depth   int   // of folders below the root of a walk, each of which needs a descriptor; default 256
}

// Defaults of Limits.
const (
	DefaultFile    = 64 << 20
	DefaultEntries = 100_000
)

// New returns an FS of the tree whose root is open as root, preferably with O_PATH. The FS
// takes ownership of root, unless New fails.
func New(root *os.File, o Options) (*FS, error) {
	l := o.Limits
	if o.UID < 0 || o.GID < 0 || l.File < 0 || l.Entries < 0 || l.Depth < 0 {
		return nil, fs.ErrInvalid
	}
	creds := credentials{o.UID, o.GID, o.UID == os.Geteuid() && o.GID == os.Getegid()}
	if err := creds.act(func() error { return nil }); err != nil {
		return nil, err
	}
	return &FS{
		guest: creds, ids: o.IDs, closedErr: cmp.Or(o.Closed, fs.ErrClosed),
		root: root, limits: Limits{cmp.Or(l.File, DefaultFile), cmp.Or(l.Entries, DefaultEntries), cmp.Or(l.Depth, 256)},
	}, nil
}

// Close closes all open files. Running operations fail at their next step.
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

// fail wraps an error of an open file. If the FS has been closed, that is the
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

// LimitError is the error of an operation that exceeds a limit.
type LimitError struct {
	What  string // such as "bytes" or "entries"
	Limit int64
}

// Error reads "more than 10 entries".
func (e *LimitError) Error() string { return fmt.Sprintf("more than %d %s", e.Limit, e.What) }

// ErrSpecial is the error for sockets, FIFOs and devices.
var ErrSpecial = fmt.Errorf("neither a file nor a folder: %w", fs.ErrInvalid)

var (
	errPath        = fmt.Errorf("not an absolute, clean path: %w", fs.ErrInvalid)
	errRoot        = fmt.Errorf("the root itself: %w", fs.ErrInvalid)
	errKernel      = fmt.Errorf("the kernel's own file systems are not accessible: %w", fs.ErrPermission)
	errLink        = fmt.Errorf("not a valid link text: %w", fs.ErrInvalid)
	errCredentials = fmt.Errorf("cannot switch to the guest's ids: %w", fs.ErrPermission)
)

// pathError wraps err in a *fs.PathError, unless it is one already.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if _, named := errors.AsType[*fs.PathError](err); named {
		return err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func isLimit(err error) bool {
	_, is := errors.AsType[*LimitError](err)
	return is
}

// unwrapped returns the cause of a *fs.PathError.
func unwrapped(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func isMissing(err error) bool { return err == unix.ENOENT || err == unix.ENOTDIR }

// kernelFileSystems lists file systems without user data. Reading them, or even a stat, may
// have effects on the host, reveal facts about it, or block.
var kernelFileSystems = map[int64]string{
	unix.PROC_SUPER_MAGIC:     "processes and settings, including the host's",
	unix.SYSFS_MAGIC:          "devices of the host",
	unix.CGROUP_SUPER_MAGIC:   "limits of the jail",
	unix.CGROUP2_SUPER_MAGIC:  "limits of the jail",
	unix.DEVPTS_SUPER_MAGIC:   "terminals",
	unix.AUTOFS_SUPER_MAGIC:   "a lookup triggers a mount",
	unix.DEBUGFS_MAGIC:        "kernel internals",
	unix.TRACEFS_MAGIC:        "kernel internals",
	unix.SECURITYFS_MAGIC:     "kernel internals",
	unix.SELINUX_MAGIC:        "kernel internals",
	unix.BPF_FS_MAGIC:         "programs in the kernel",
	unix.NSFS_MAGIC:           "namespaces",
	unix.EFIVARFS_MAGIC:       "firmware",
	unix.PSTOREFS_MAGIC:       "records of crashes",
	unix.BINFMTFS_MAGIC:       "how the host executes files",
	unix.BINDERFS_SUPER_MAGIC: "devices",
	unix.RDTGROUP_SUPER_MAGIC: "shares of processors",
	unix.HUGETLBFS_MAGIC:      "memory of the host",
	unix.PIPEFS_MAGIC:         "pipes of processes",
	unix.SOCKFS_MAGIC:         "sockets of processes",
	unix.ANON_INODE_FS_MAGIC:  "descriptors of processes",
	unix.DEVMEM_MAGIC:         "memory of devices",
	unix.DMA_BUF_MAGIC:        "memory of devices",
}

// checkFileSystem closes and refuses a descriptor on one of the kernel's file systems.
func checkFileSystem(fd int) error {
	var st unix.Statfs_t
	err := unix.Fstatfs(fd, &st)
	if _, isKernels := kernelFileSystems[int64(uint32(st.Type))]; err == nil && isKernels {
		err = errKernel
	}
	if err != nil {
		closeFD(fd)
	}
	return err
}

// credentials are the user and group that the kernel uses for file access.
type credentials struct {
	uid, gid int
	own      bool // they are the process's own ids and need no switch
}

// act calls do with the credentials on its thread, without the process's supplementary groups.
func (i credentials) act(do func() error) error {
	if i.own {
		return do()
	}
	goruntime.LockOSThread() // these ids are per thread
	defer goruntime.UnlockOSThread()
	groups, err := unix.Getgroups()
	if err != nil {
		return err
	}
	// Not the standard library's Setgroups, which changes all threads.
	if err := unix.Setgroups(nil); err != nil {
		return errCredentials
	}
	uid, gid, err := kernfile.SetFileIDs(i.uid, i.gid)
	defer func() {
		if _, _, err := kernfile.SetFileIDs(uid, gid); err != nil || unix.Setgroups(groups) != nil {
			panic("hostfs: cannot restore the host's credentials") // other goroutines will run on this thread
		}
	}()
	if err != nil {
		return errCredentials
	}
	return do()
}
