package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/procfs"
)

// The ids of guest processes, as they see them.
const (
	GuestUID = 1000
	GuestGID = 1000
)

// IDsPerJail is the number of host user and group ids that a jail has.
const IDsPerJail = 65536

// Tree describes the file tree of a jail. Guest paths are absolute paths in this tree;
// all others are paths of the host.
type Tree struct {
	// Image is the folder that guests see as their root directory, read-only. It must
	// come from a trusted builder: its entry program runs with the host's rights. Its
	// files should belong to the host's root; guests see them as files of a root user that
	// no guest can become, see [CheckOwners].
	Image string

	// OneOverlay makes the tree a single overlay, whose upper folder has all changes of Image: see [Stage.Changes].
	OneOverlay bool

	// Owned gives the guest, in a tree with OneOverlay, the files of Image and all folders but /proc and /dev. Programs
	// with the host's rights are always those of Image itself. It requires id maps, see [CheckOwners].
	Owned bool

	// Layer contains files that are shown over Image. The guest can read and execute them, and
	// can't change them.
	Layer []File

	// Dirs are folders in the writable layer that the guest owns, made in this order. None
	// may contain a protected program or hide a file of the image.
	Dirs []string // guest paths

	// Sealed is the subset of Dirs that belongs to the guest's root: the guest can't create
	// anything in them.
	Sealed []string

	// Mounts are folders and files of the host that are mounted in the tree.
	Mounts []Mount

	// Make and Keep are places that are created, empty, if they are missing. The guest
	// owns the places in Make; the owner of the parent folder owns the places in Keep.
	Make, Keep []Place

	// Files are owned by the guest, and so are missing folders above them, which are created.
	// They do not count against Disk.
	Files []File

	// NotOwn, if not nil, reports whether a file that is created at a guest path belongs to
	// the guest's root instead of the guest, which then can't change its mode. It does not
	// apply in ReadWrite mounts, where everything belongs to the owner of the source.
	NotOwn func(path string) bool

	// Hide are places that appear as an empty file or folder without permissions. Show
	// are exceptions: of the places in both lists that contain a path, the longest
	// decides. Folders that lead to a shown place can be entered. /proc can't be hidden.
	Hide, Show []Place

	// ReadOnly are places where nothing can be changed (EROFS). Writable are exceptions,
	// each of which becomes a mount point.
	ReadOnly, Writable []Place

	// NoExec are places from which nothing can be executed or mapped as code. Exec are
	// exceptions: the longest place that contains a path decides.
	NoExec, Exec []Place

	// Pinned are folders and files that the guest can't rename or remove (EBUSY), and so
	// can't replace. Folders that lead to a hidden or restricted place are pinned, too.
	Pinned []string // guest paths

	// Disk and Inodes limit the guest's writes.
	Disk   int64 // bytes
	Inodes int64

	// DiskDir is the host's folder with the guest's files, in an unnamed file. Empty: they are in memory.
	DiskDir string

	// Commands, if not nil, are the names of the first commands in hostcommand.Dir, see
	// [Stage.Commands].
	Commands []string

	// Protected are programs that the guest must not be able to replace. The folders that
	// contain them can't be in Dirs and can't be covered by Mounts.
	Protected []string // guest paths

	// Proc defines the contents of the files that replace entries of /proc.
	Proc procfs.Config
}

// File is a file to create in the tree.
type File struct {
	Path string      // guest path
	Mode os.FileMode // of a regular file, or os.ModeSymlink in Tree.Layer
	Data []byte      // the target of a link
}

// Access is a guest's access to a folder of the host.
type Access int

// The zero value allows the least.
const (
	ReadOnly    Access = iota
	CopyOnWrite        // folders only: the guest changes a copy, and the host's files stay as they are
	ReadWrite
)

// Owner is a user and a group of the host.
type Owner struct{ UID, GID int }

// Mount shows a folder or a file of the host in the tree. Files of the source's owner, or of
// Owner, appear as the guest's, and new files of the guest belong to that owner, if the kernel
// supports that for the file system ([ErrNoIDMap] otherwise). Mounts of the host below the
// source are not shown.
//
// The guest's /proc/self/mountinfo shows the path of the source in its file system, unless
// the access is CopyOnWrite. No kind of clone hides it: neither open_tree(2), of a mount or
// of a clone, nor an idmapped mount, nor one of a file handle. An overlay does, but a
// read-only overlay shows later changes of the host in part, or not at all.
type Mount struct {
	Source *os.File // opened with O_PATH. The caller closes it
	Target string   // guest path; created if missing
	Access Access

	// Owner contains the ids of the host that appear as the guest's, and that new files of the
	// guest get. Nil: the source's owner and group.
	Owner *Owner

	// Overlay shows a ReadOnly folder through an overlay, as CopyOnWrite does. Sockets then
	// are inodes of the overlay: the guest can't connect to a socket that a process of the
	// host listens on. Later changes by the host may not show.
	Overlay bool
}

// ErrNoIDMap is wrapped by the error of a mount whose files can't be given to the guest.
// ReadOnly mounts work without.
var ErrNoIDMap = errors.New("the source's file system can't map the owner of its files to another user: this requires Linux 5.12 (ext4, XFS), 5.15 (Btrfs), 6.3 (tmpfs) or later")

// ErrNotInMount is wrapped by the error of a place in a mount that its source does not
// have, and that the guest may not create there.
var ErrNotInMount = errors.New("can't be made in the mount of")

// ErrProtected is wrapped by the error of a guest folder, or a mount, from which a
// protected program could be replaced.
var ErrProtected = errors.New("holds the program that installs the system call filter, so it can't belong to the guest")

// Place is a part of the guest's tree.
type Place struct {
	Path string // guest path
	Tree bool   // the folder and everything below it; otherwise this one file
}

// isIn reports whether path is dir or inside it.
func isIn(path, dir string) bool { return path == dir || isBelow(path, dir) }

// isBelow reports whether path is inside dir.
func isBelow(path, dir string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+"/")
}

// isAmong reports whether the longest place that contains path is in list, and not in
// the list of exceptions.
func isAmong(path string, list, except []Place) bool {
	longest := func(list []Place) (n int) {
		for _, p := range list {
			if path == p.Path || p.Tree && isBelow(path, p.Path) {
				n = max(n, len(p.Path))
			}
		}
		return n
	}
	n := longest(list)
	return n > 0 && n >= longest(except)
}

func (t *Tree) hides(path string) bool { return isAmong(path, t.Hide, t.Show) }

// noExec reports whether programs at path can't be executed.
func (t *Tree) noExec(path string) bool { return isAmong(path, t.NoExec, t.Exec) }

// leadsToShown reports whether a hidden folder contains a shown place, or is or contains
// a guest folder.
func (t *Tree) leadsToShown(dir string) bool {
	return slices.ContainsFunc(t.Show, func(p Place) bool { return isBelow(p.Path, dir) }) ||
		slices.ContainsFunc(t.Dirs, func(d string) bool { return isIn(d, dir) })
}

// setFlags sets the flags that the tree asks for on the mount at a guest path, and on
// the mounts below it.
func (t *Tree) setFlags(path string) error {
	if len(t.NoExec)+len(t.ReadOnly) == 0 {
		return nil
	}
	mount := t.mountAt(path)
	isReadOnly := mount != nil && mount.Access == ReadOnly
	var attr unix.MountAttr
	switch {
	case t.noExec(path):
		attr.Attr_set = unix.MOUNT_ATTR_NOEXEC
	case !isBelow(path, "/dev"): // nothing in /dev can be executed, even if it is in Exec
		attr.Attr_clr = unix.MOUNT_ATTR_NOEXEC
	}
	switch {
	case isAmong(path, t.ReadOnly, t.Writable):
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	case isAmong(path, t.Writable, nil) && !isReadOnly: // which only the host may change
		attr.Attr_clr |= unix.MOUNT_ATTR_RDONLY
	}
	err := setMountAttr(unix.AT_FDCWD, filepath.Join(Root, path), unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, attr)
	if err == nil && isIn(ProgramDir, path) { // even if it is in Exec or Writable
		err = setMountAttr(unix.AT_FDCWD, filepath.Join(Root, ProgramDir), 0, unix.MountAttr{Attr_set: programAttrs})
	}
	return err
}

// mountAt returns the innermost mount of a host folder that contains path, or nil.
func (t *Tree) mountAt(path string) *Mount {
	for i := range slices.Backward(t.Mounts) { // outer ones come first, see Prepare
		if m := &t.Mounts[i]; isIn(path, m.Target) {
			return m
		}
	}
	return nil
}
