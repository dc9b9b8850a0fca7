package hostfs

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"

	"gaol/internal/kernfile"

	"golang.org/x/sys/unix"
)

const (
	inRoot  = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	noLinks = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS
)

// base is an open folder, and how paths below it are resolved.
type base struct {
	fd      int
	resolve uint64
}

// open opens a path with O_PATH, which does not affect the opened file. A leading slash refers
// to b, the root. It refuses the kernel's own file systems.
func (b base) open(path string, flags uint64) (int, error) {
	if path = strings.TrimLeft(path, "/"); path == "" || path == "." { // openat2 would need the right to search the folder
		return unix.FcntlInt(uintptr(b.fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	fd, err := kernfile.Openat2FD(b.fd, path, unix.O_PATH|flags, b.resolve)
	if err == nil {
		err = checkFileSystem(fd)
	}
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// node is an open file of any type, independent of its names.
type node struct {
	fd   int // O_PATH
	stat unix.Statx_t
}

func (n *node) close()         { closeFD(n.fd) }
func (n *node) kind() uint16   { return n.stat.Mode & unix.S_IFMT }
func (n *node) isFolder() bool { return n.kind() == unix.S_IFDIR }

// isMount reports whether the node is the root of a mount.
func (n *node) isMount() bool { return n.stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 }

// link returns a host path that leads to the node, whatever its names are.
func (n *node) link() string { return descriptorPath(n.fd) }

func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// chmod changes the permissions of the node. fchmod(2) fails on a descriptor with O_PATH.
func (n *node) chmod(bits uint32) error { return unix.Chmod(n.link(), bits) }

// reopen opens a node for reading or writing, through its link in /proc: a descriptor with
// O_PATH cannot be read, and the node's names may be others by now. It opens only regular
// files and folders: the type of an inode never changes.
func (n *node) reopen(flags int) (*os.File, error) {
	switch {
	case n.isFolder():
	case flags&unix.O_DIRECTORY != 0:
		return nil, unix.ENOTDIR
	case n.kind() != unix.S_IFREG:
		return nil, ErrSpecial
	}
	return openFile(unix.AT_FDCWD, n.link(), flags)
}

// openFile opens a file for reading or writing. O_NONBLOCK: otherwise the open would wait for
// the guest to release a lease (F_SETLEASE).
//
// The file's name is a host path that leads to it, by which os.File stats an entry of unknown type.
func openFile(dir int, name string, flags int) (*os.File, error) {
	for {
		if fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600); err != unix.EINTR {
			return os.NewFile(uintptr(fd), descriptorPath(fd)), err // nil after an error
		}
	}
}

// onNode calls do, in a step, with the node that a guest path leads to.
func (f *FS) onNode(op, path string, flags uint64, do func(n *node) error) error {
	return f.at(op, path, func(root base) error { return onNode(root, path, flags, do) })
}

func onNode(b base, path string, flags uint64, do func(n *node) error) error {
	n, err := lookup(b, path, flags)
	if err != nil {
		return err
	}
	defer n.close()
	return do(n)
}

// onChild calls do with an entry of a folder, or the folder itself if name is ".". It does
// not follow a link.
func onChild(dir int, name string, do func(n *node) error) error {
	return onNode(base{dir, noLinks}, name, unix.O_NOFOLLOW, do)
}

// lookup opens the node that a path below b leads to; with O_NOFOLLOW in flags, a link
// itself. The path may contain "..".
func lookup(b base, path string, flags uint64) (*node, error) {
	fd, err := b.open(path, flags)
	if err != nil {
		return nil, err
	}
	n := &node{fd: fd}
	if n.stat, err = statAt(fd, ""); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

// statAt describes the entry name of a folder, or the descriptor dir if name is empty. It
// does not follow a link.
func statAt(dir int, name string) (st unix.Statx_t, err error) {
	const flags = unix.AT_EMPTY_PATH | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	err = unix.Statx(dir, name, flags, statMask, &st)
	return st, err
}

// place is a name in an open folder. The name may not exist.
type place struct {
	dir  int // O_PATH
	name string
}

// noPlace is returned with an error. It can be closed.
var noPlace = place{dir: -1}

func (p place) close() { closeFD(p.dir) }

// checkUnmounted returns EBUSY if the place is a mount point. The result stays true: a guest
// can neither mount anything nor move a mount point.
func (p place) checkUnmounted() error {
	st, err := statAt(p.dir, p.name)
	if err == unix.ENOENT {
		return nil
	}
	isMount := st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	if err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 { // in gVisor
		var above unix.Statx_t
		above, err = statAt(p.dir, "")
		isMount = st.Mnt_id != above.Mnt_id
	}
	if err == nil && isMount {
		return unix.EBUSY
	}
	return err
}

// onPlace calls do, in a step, with the place that find returns for a guest path.
func (f *FS) onPlace(op, path string, find func(root base, path string) (place, error), do func(p place) error) error {
	return f.at(op, path, func(root base) error {
		p, err := find(root, path)
		if err != nil {
			return err
		}
		defer p.close()
		return do(p)
	})
}

// locate opens the folder of a path's last component.
func locate(root base, path string) (place, error) {
	i := strings.LastIndexByte(path, '/')
	dir, name := path[:i+1], path[i+1:]
	switch name {
	case "":
		return noPlace, errRoot
	case ".", "..": // only from a guest's link
		return noPlace, cmp.Or(checkFolder(root, path), error(unix.EISDIR))
	}
	fd, err := root.open(dir, unix.O_DIRECTORY)
	return place{fd, name}, err // fd is -1 after an error
}

// locateNew is locate for a file to be made. The root exists already.
func locateNew(root base, path string) (place, error) {
	p, err := locate(root, path)
	if errors.Is(err, errRoot) {
		return noPlace, unix.EEXIST
	}
	return p, err
}

// locateUnmounted is locate for a file to be removed or replaced, which must not be a mount
// point.
func locateUnmounted(root base, path string) (place, error) {
	p, err := locate(root, path)
	if err != nil {
		return noPlace, err
	}
	if err := p.checkUnmounted(); err != nil {
		p.close()
		return noPlace, err
	}
	return p, nil
}

// mostLinks is the kernel's limit of links in a path, path_resolution(7).
const mostLinks = 40

// locateTarget is locate for the file that a path leads to. It also returns the file, or nil
// if it does not exist.
//
// It follows a link in the last component itself, as the kernel would: a write renames a new
// file over the old one, which needs the folder and the name, and the kernel does not report
// to which name a path has led. Each step is resolved by the kernel, so that a wrong step
// leads to no other place than the guest's own link could.
func locateTarget(root base, path string) (place, *node, error) {
	for range mostLinks + 1 {
		p, err := locate(root, path)
		if err != nil {
			return noPlace, nil, err
		}
		n, err := lookup(base{p.dir, noLinks}, p.name, unix.O_NOFOLLOW)
		if err == unix.ENOENT {
			return p, nil, nil
		}
		if err == nil && n.kind() != unix.S_IFLNK {
			return p, n, nil
		}
		p.close()
		if err != nil {
			return noPlace, nil, err
		}
		text, err := readLink(n.fd, "")
		n.close()
		if err == nil {
			path, err = joinLink(path, text)
		}
		if err != nil {
			return noPlace, nil, err
		}
	}
	return noPlace, nil, unix.ELOOP
}

// joinLink returns the path that a link at path leads to. It does not clean it: the meaning
// of ".." depends on the folders before it, which the kernel resolves.
func joinLink(path, text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		text = path[:strings.LastIndexByte(path, '/')+1] + text
	}
	switch {
	case len(text) >= unix.PathMax:
		return "", unix.ENAMETOOLONG
	case strings.HasSuffix(text, "/"):
		return "", unix.EISDIR
	}
	return text, nil
}
