package hostfs

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	inRoot  = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	noLinks = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS
)

// raced is how often a path with ".." is tried that the kernel could not resolve
// safely (EAGAIN), as something was renamed meanwhile. A guest can keep that up.
const raced = 100

// openPath opens with O_PATH, which has no effect on what is opened.
func openPath(dir int, path string, flags, resolve uint64) (int, error) {
	if path == "." { // to resolve it takes the right to look into it
		return unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: resolve}
	for i := 0; ; i++ {
		fd, err := unix.Openat2(dir, path, &how)
		if err == unix.EINTR || err == unix.EAGAIN && i < raced {
			continue
		}
		if err != nil {
			return -1, err
		}
		return fd, nil
	}
}

// node is something in the tree, whatever its names are by now.
type node struct {
	fd   int // O_PATH
	stat unix.Statx_t
}

func (n *node) close()         { closeFD(n.fd) }
func (n *node) kind() uint16   { return n.stat.Mode & unix.S_IFMT }
func (n *node) isFolder() bool { return n.kind() == unix.S_IFDIR }

// lookup opens what a path leads to, or where nofollow is set and that is a link, the
// link. The path is the guest's; it may hold "..".
func lookup(root int, path string, nofollow bool) (*node, error) {
	var flags uint64
	if nofollow {
		flags = unix.O_NOFOLLOW
	}
	return newNode(openPath(root, below(path), flags, inRoot))
}

// child opens an entry of a folder: itself, if it is a link.
func child(dir int, name string) (*node, error) {
	return newNode(openPath(dir, name, unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS))
}

// below makes a path one that Openat2 takes for the root's own, too.
func below(path string) string {
	if path = strings.TrimLeft(path, "/"); path == "" {
		return "."
	}
	return path
}

func newNode(fd int, err error) (*node, error) {
	if err != nil {
		return nil, err
	}
	n := &node{fd: fd}
	if err := checkFileSystem(fd); err != nil {
		n.close()
		return nil, err
	}
	if n.stat, err = statAt(fd, ""); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// statAt is of an entry itself, or of the descriptor where name is empty.
func statAt(dir int, name string) (st unix.Statx_t, err error) {
	const flags = unix.AT_EMPTY_PATH | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	err = unix.Statx(dir, name, flags, statMask, &st)
	return st, err
}

// kernelFileSystems hold what is no one's data: reading it, or asking for it, may have
// effects on the host, tell of it, or block.
var kernelFileSystems = map[int64]string{
	unix.PROC_SUPER_MAGIC:     "processes and settings, of the host's too",
	unix.SYSFS_MAGIC:          "devices of the host",
	unix.CGROUP_SUPER_MAGIC:   "limits of the jail",
	unix.CGROUP2_SUPER_MAGIC:  "limits of the jail",
	unix.DEVPTS_SUPER_MAGIC:   "terminals",
	unix.AUTOFS_SUPER_MAGIC:   "looking makes mounts",
	unix.DEBUGFS_MAGIC:        "the kernel's inside",
	unix.TRACEFS_MAGIC:        "the kernel's inside",
	unix.SECURITYFS_MAGIC:     "the kernel's inside",
	unix.SELINUX_MAGIC:        "the kernel's inside",
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

func checkFileSystem(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	if _, isKernels := kernelFileSystems[int64(uint32(st.Type))]; isKernels {
		return errKernel
	}
	return nil
}

// reopen opens a node for good. Only regular files and folders are: the kind of an
// inode never changes. O_NONBLOCK: a guest's lease would have this wait for its break.
func (n *node) reopen(flags int) (int, error) {
	if k := n.kind(); k != unix.S_IFREG && k != unix.S_IFDIR {
		return -1, ErrSpecial
	}
	for {
		fd, err := unix.Open(n.link(), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// link is a path of the host's that leads to the node and nowhere else.
func (n *node) link() string { return "/proc/self/fd/" + strconv.Itoa(n.fd) }

// isMount tells whether the node is the root of a mount.
func (n *node) isMount() bool { return n.stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 }

// place is an entry of a folder, which may not exist.
type place struct {
	dir  int // O_PATH
	name string
}

// nowhere is what there is instead of a place with an error. It can be closed.
var nowhere = place{dir: -1}

func (p place) close() { closeFD(p.dir) }

// free checks that nothing is mounted on the place. That can't change: a guest mounts
// nothing, and can't move what is mounted on.
func (p place) free() error {
	st, err := statAt(p.dir, p.name)
	if err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return unix.EBUSY
	}
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// locate opens the folder that a path's last component is in.
func locate(root int, path string) (place, error) {
	i := strings.LastIndexByte(path, '/')
	dir, name := path[:i+1], path[i+1:]
	switch name {
	case "":
		return nowhere, errRoot
	case ".", "..": // of a guest's link alone
		return nowhere, folderError(root, path)
	}
	fd, err := openPath(root, below(dir), unix.O_DIRECTORY, inRoot)
	if err != nil {
		return nowhere, err
	}
	if err := checkFileSystem(fd); err != nil {
		closeFD(fd)
		return nowhere, err
	}
	return place{fd, name}, nil
}

// folderError is what a path that can't but name a folder comes to.
func folderError(root int, path string) error {
	n, err := lookup(root, path, false)
	if err != nil {
		return err
	}
	n.close()
	return unix.EISDIR
}

// mostLinks is the kernel's own bound, path_resolution(7).
const mostLinks = 40

// trace is locate for the file that a path leads to, which is returned, too: nil if
// it does not exist. Links are followed as the kernel would.
func trace(root int, path string) (place, *node, error) {
	for range mostLinks + 1 {
		p, err := locate(root, path)
		if err != nil {
			return nowhere, nil, err
		}
		n, err := child(p.dir, p.name)
		if err == unix.ENOENT {
			return p, nil, nil
		}
		if err == nil && n.kind() != unix.S_IFLNK {
			return p, n, nil
		}
		p.close()
		if err != nil {
			return nowhere, nil, err
		}
		text, err := readLink(n.fd, "")
		n.close()
		if err != nil {
			return nowhere, nil, err
		}
		if path, err = joinLink(path, text); err != nil {
			return nowhere, nil, err
		}
	}
	return nowhere, nil, unix.ELOOP
}

// joinLink gives the path that a link at path leads to. It is not cleaned: what ".."
// means in it depends on the folders before it, which the kernel will look at.
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

// readLink is of an entry, or of the descriptor where name is empty.
func readLink(dir int, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, text)
	if err != nil {
		return "", err
	}
	return string(text[:n]), nil
}
