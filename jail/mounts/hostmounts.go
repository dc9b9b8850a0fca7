package mounts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/kernel"
)

// mountSources mounts the host's folders and files in the root, outer ones first.
func (s *Stage) mountSources() error {
	sources, err := s.clones.sources()
	if err != nil {
		return err
	}
	b := newBuilder(s)
	asked := s.tree.ReadOnly
	for i := range s.tree.Mounts {
		m := &s.tree.Mounts[i]
		if err := b.mountSource(m, sources[i], i, asked); err != nil {
			return pathError(m.Target, &os.PathError{Op: "mount", Path: m.Target, Err: err})
		}
	}
	return nil
}

// mountSource mounts one source. asked are the read-only places of the tree, without those
// that were added for mounts.
func (b *builder) mountSource(m *Mount, source *os.File, number int, asked []Place) error {
	var info unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &info); err != nil {
		return err
	}
	at := Place{m.Target, info.Mode&unix.S_IFMT == unix.S_IFDIR}
	t := &b.tree
	// setFlags sets flags recursively. So a writable mount inside a ReadOnly one, and a ReadOnly
	// mount inside a writable place, each need a Place. The slices are copied, because the
	// caller owns the tree's.
	switch {
	case m.Access != ReadOnly && len(asked) > 0 && !isAmong(m.Target, asked, t.Writable):
		t.Writable = slices.Concat(t.Writable, []Place{at})
	case m.Access == ReadOnly && len(t.ReadOnly) > 0:
		t.ReadOnly = slices.Concat(t.ReadOnly, []Place{at})
	}
	target, err := b.open(at, nil)
	if err != nil {
		return err
	}
	defer target.Close()
	if !m.Overlay && m.Access != CopyOnWrite {
		if t.noExec(m.Target) {
			if err := setMountAttr(int(source.Fd()), "", unix.AT_EMPTY_PATH, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC}); err != nil {
				return err
			}
		}
		if !at.Tree && kernel.Probe().Lacks(kernel.MountAttr) { // see cloneSources
			if err := unix.Mount(m.Source.Name(), descriptorPath(target), "", unix.MS_BIND, ""); err != nil {
				return os.NewSyscallError("mount", err)
			}
			return bindFlags(m)
		}
		return attach(source, int(target.Fd()), "")
	}
	if !at.Tree {
		return fmt.Errorf("overlay: %w", unix.ENOTDIR)
	}
	return b.mountThroughOverlay(m, source, target, filepath.Join(sourcesDir, strconv.Itoa(number)), &info)
}

// bindFlags sets the flags of the mount of a file, which is no clone.
func bindFlags(m *Mount) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if m.Access != ReadWrite {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return os.NewSyscallError("mount", remount(filepath.Join(Root, m.Target), attr))
}

// attach mounts a detached mount at path, relative to dirfd, or at the file or folder of
// dirfd if path is empty.
func attach(source *os.File, dirfd int, path string) error {
	err := unix.MoveMount(int(source.Fd()), "", dirfd, path, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return os.NewSyscallError("move_mount", err)
}

// mountThroughOverlay mounts an overlay over the source. Its layers are in dir; the guest
// sees their names in its list of mounts.
//
// The cost of CopyOnWrite is that new files go through two file systems: creating, renaming and
// removing small ones takes the kernel 1.65 times as long as on tmpfs alone, 8 µs more
// each. Of that, 37 % is for lookups in the upper folder, as tmpfs does not cache missing
// names, 20 % for a second inode, 15 % for a second open file, 13 % for permissions and credentials.
// On Linux 6.18 none of these options changed that by more than the noise: redirect_dir,
// volatile, xino, index, metacopy, uuid, userxattr, noatime; nor did the lower folder's
// file system, id map, depth or number. New files can't bypass it, because a rename from a new
// folder to an existing one works in one file system only. A copy instead of the
// overlay takes 12 µs a file; this mount takes 2 ms.
func (b *builder) mountThroughOverlay(m *Mount, source, target *os.File, dir string, info *unix.Stat_t) error {
	lower, empty, upper, work := dir+"/lower", dir+"/empty", dir+"/upper", dir+"/work"
	folders := []string{dir, lower, empty} // an overlay needs two lower layers, or an upper one
	options, flags := "lowerdir="+lower+":"+empty, uintptr(unix.MS_RDONLY)
	if m.Access == CopyOnWrite {
		// With redirects the guest can rename folders of the source, which is EXDEV otherwise.
		folders, flags = []string{dir, lower, upper, work}, 0
		options = fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s"+redirects, lower, upper, work)
	}
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	if err := attach(source, unix.AT_FDCWD, lower); err != nil {
		return err
	}
	if m.Access == CopyOnWrite { // the owner and mode of upper are what shows
		if err := errors.Join(os.Lchown(upper, int(info.Uid), int(info.Gid)), os.Chmod(upper, os.FileMode(info.Mode&0o777))); err != nil {
			return err
		}
	}
	if b.tree.noExec(m.Target) {
		flags |= unix.MS_NOEXEC
	}
	return mountOverlay(descriptorPath(target), flags, options)
}

// PathError is the error of a guest folder, file, mount or place whose path the tree cannot have, because of the path
// itself or of the image's file there. It names paths of the guest only.
type PathError struct {
	Path string
	Err  error
}

// Error returns "path: cause".
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Err }

// pathCauses are the system's errors that a path causes.
var pathCauses = []syscall.Errno{
	syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL, syscall.EBUSY, syscall.EXDEV,
}

// pathError returns an error of a path that the jail's creator has chosen as a [*PathError], and other errors as they
// are.
func pathError(path string, err error) error {
	if _, known := errors.AsType[*PathError](err); known || err == nil {
		return err
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && slices.Contains(pathCauses, errno) {
		return &PathError{path, errno}
	}
	return err
}

// clones are detached mounts: clones of the mounts of the image and of the host's folders.
// Goroutines make them while the cgroups are made and the stage is filled, because
// the id maps take as long as both. They run in the host's mount namespace: a thread can't
// clone a mount of another namespace, and the stage's is one. The functions wait for them.
type clones struct {
	image   func() (imageClone, error)
	sources func() ([]*os.File, error) // in the order of Tree.Mounts; on error, those made before
	disk    func() (*os.File, error)   // returns nil if the tree is in memory
}

// begin calls f on a new goroutine, and returns a function that waits for its result.
func begin[T any](f func() (T, error)) func() (T, error) {
	var done sync.WaitGroup
	var value T
	var err error
	done.Go(func() { value, err = f() })
	return func() (T, error) {
		done.Wait()
		return value, err
	}
}

// mountImage attaches the image in the stage.
func (c *clones) mountImage() error {
	image, err := c.image()
	if err != nil {
		return err
	}
	return attach(cmp.Or(image.owned, image.File), unix.AT_FDCWD, imageDir)
}

func (c *clones) close() {
	image, _ := c.image()
	image.close()
	sources, _ := c.sources()
	for _, f := range sources {
		f.Close()
	}
	disk, _ := c.disk()
	disk.Close() // nil if it failed, and in memory
}

// cloneSources clones the mounts of the host's folders. Without an id map a guest could not
// write to its files, so only a ReadOnly mount does without.
func cloneSources(protected []string, list []Mount, firstID int) (sources []*os.File, err error) {
	maps := idMaps{}
	defer maps.close()
	for _, m := range list {
		if err := checkTarget(m.Target, protected); err != nil {
			return sources, pathError(m.Target, err)
		}
		f, err := cloneMount(int(m.Source.Fd()), "", unix.AT_EMPTY_PATH, m.Access != ReadWrite)
		if errors.Is(err, unix.ENOTDIR) && kernel.Probe().Lacks(kernel.MountAttr) { // gVisor clones mounts of folders only
			f, err = kernfile.Open(m.Source.Name(), unix.O_PATH)
		}
		if err == nil {
			sources = append(sources, f)
			err = mapOwner(f, m.Owner, firstID, maps)
		}
		if err != nil && !(errors.Is(err, ErrNoIDMap) && m.Access == ReadOnly) {
			return sources, &os.PathError{Op: "mount", Path: m.Target, Err: err}
		}
	}
	return sources, nil
}

// cloneMount makes a detached mount of the file or folder at path, without mounts below it.
func cloneMount(dirfd int, path string, flags uint, readOnly bool) (*os.File, error) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	isLayer := flags == 0
	if !isLayer && kernel.Probe().Lacks(kernel.MountAttr) { // the mount is this jail's, see CloneOutside, and the clone gets its flags
		if err := remount("/proc/thread-self/fd/"+strconv.Itoa(dirfd), attr); err != nil {
			return nil, os.NewSyscallError("mount", err)
		}
	}
	fd, err := unix.OpenTree(dirfd, path, flags|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("open_tree", err)
	}
	if err = setMountAttr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil && !errors.Is(err, unix.ENOSYS) { // the overlay of a layer has these flags
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// checkTarget rejects mount points that would hide parts of the jail itself.
func checkTarget(target string, protected []string) error {
	if err := checkNotProtected(target, protected); err != nil {
		return err
	}
	for _, p := range mountPoints {
		if isIn(target, p) {
			return &os.PathError{Op: "mount", Path: target, Err: syscall.EBUSY}
		}
	}
	return nil
}

// mapOwner maps the ids of an owner, by default the source's, to the guest's.
func mapOwner(source *os.File, owner *Owner, firstID int, maps idMaps) error {
	if owner != nil && *owner == GuestOwner(firstID) && kernel.Probe().Lacks(kernel.MountAttr) { // see CloneOutside
		return nil
	}
	owner, err := ownerOf(source, owner)
	if err != nil {
		return err
	}
	users, err := maps.get(owner.UID, owner.GID, firstID)
	if err != nil {
		return err
	}
	return setIDMap(source, users)
}

// ownerOf returns an owner, by default the source's.
func ownerOf(source *os.File, owner *Owner) (*Owner, error) {
	if owner != nil {
		return owner, nil
	}
	var info unix.Stat_t
	err := unix.Fstat(int(source.Fd()), &info)
	return &Owner{int(info.Uid), int(info.Gid)}, err
}

// imageClone is a detached, read-only mount of an image.
type imageClone struct {
	*os.File
	rootID int      // host id of root's files: the guest's root, or 0 without an id map
	owned  *os.File // another one, in which root's files are the guest's; nil without Tree.Owned
}

// close closes the mounts, which may be nil.
func (c imageClone) close() {
	c.Close()
	c.owned.Close()
}

// cloneImage clones the mount of the image. In the clone, root's files belong to the guest's
// root, except where the kernel or the file system can't map ids: there the guest sees uid 65534
// as their owner. Hidden places, and /proc except the folders of processes, have that owner, too.
func cloneImage(image string, firstID int, owned bool) (c imageClone, err error) {
	if c.File, err = cloneMount(unix.AT_FDCWD, image, 0, true); err != nil {
		return c, err
	}
	err = mapLayer(c.File, AllIDs(firstID))
	if errors.Is(err, ErrNoIDMap) {
		var info unix.Stat_t
		if unix.Fstat(int(c.Fd()), &info) == nil && int(info.Uid) == firstID { // see ImageOutside
			err = nil
		}
	}
	if err == nil {
		c.rootID = firstID
	}
	if owned && err == nil {
		if c.owned, err = cloneMount(unix.AT_FDCWD, image, 0, true); err == nil {
			err = mapLayer(c.owned, swapIDs(0, GuestUID, firstID)) // and GuestGID, the same number
		}
	}
	if err == nil || errors.Is(err, ErrNoIDMap) && !owned {
		return c, nil
	}
	c.close()
	return imageClone{}, err
}

// GuestOwner returns the owner whose files are the guest's already.
func GuestOwner(firstID int) Owner { return Owner{firstID + GuestUID, firstID + GuestGID} }

// CloneOutside makes a detached mount of m for a jail of another kernel, which does not support id maps: there m.Owner is [GuestOwner]. The
// processes of the other kernel make files as root of this one.
func CloneOutside(m Mount, firstID int) (*os.File, error) {
	f, err := cloneMount(int(m.Source.Fd()), "", unix.AT_EMPTY_PATH, m.Access != ReadWrite)
	if err != nil {
		return nil, err
	}
	if err = mapOutside(f, m.Owner, firstID); err == nil || errors.Is(err, ErrNoIDMap) && m.Access == ReadOnly {
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// mapOutside maps the ids of an owner as mapOwner, and root's to some others, so that root can make files.
func mapOutside(source *os.File, owner *Owner, firstID int) error {
	owner, err := ownerOf(source, owner)
	if err != nil {
		return err
	}
	ids := func(owner, guest int) []syscall.SysProcIDMap {
		spare := IDsPerJail
		if owner == spare {
			spare++
		}
		return append(swapIDs(owner, guest, firstID), syscall.SysProcIDMap{ContainerID: spare, Size: 1})
	}
	users, err := newIDMap(ids(owner.UID, GuestUID), ids(owner.GID, GuestGID))
	if err != nil {
		return err
	}
	defer users.Close()
	return setIDMap(source, users)
}

// ImageOutside is [CloneOutside] for an image.
func ImageOutside(path string, firstID int) (*os.File, error) {
	c, err := cloneImage(path, firstID, false)
	return c.File, err
}

// mapLayer maps the user and group ids of a detached mount.
func mapLayer(mount *os.File, ids []syscall.SysProcIDMap) error {
	if !canMapLayers() {
		return fmt.Errorf("%w (an overlay of such mounts requires Linux 5.19)", ErrNoIDMap)
	}
	users, err := newIDMap(ids, ids)
	if err != nil {
		return err
	}
	defer users.Close()
	return setIDMap(mount, users)
}

// canMapLayers reports whether the layers of an overlay can have id maps.
var canMapLayers = sync.OnceValue(func() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && isSince(unix.ByteSliceToString(name.Release[:]), 5, 19)
})

// isSince reports whether a kernel release, such as "5.19.0-1-amd64", is that version or
// a later one.
func isSince(release string, major, minor int) bool {
	var m, n int
	_, err := fmt.Sscanf(release, "%d.%d", &m, &n)
	return err == nil && (m > major || m == major && n >= minor)
}

// CheckOwners returns an error that wraps ErrNoIDMap if guests would see uid 65534 as the
// owner of the files of an image in the folder dir. firstID is the first host id of any jail.
func CheckOwners(dir string, firstID int) error {
	image, err := cloneImage(dir, firstID, false)
	image.close()
	if err == nil && image.rootID == 0 {
		err = ErrNoIDMap
	}
	return err
}
