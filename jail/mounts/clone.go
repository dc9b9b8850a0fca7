package mounts

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// clones are detached mounts: clones of the mounts of the image and of the host's folders.
// Goroutines make them while the cgroups are made and the stage is filled, because
// the id maps take as long as both. They run in the host's mount namespace: a thread can't
// clone a mount of another namespace, and the stage's is one. The functions wait for them.
type clones struct {
	image   func() (imageClone, error)
	sources func() ([]*os.File, error) // in the order of Tree.Mounts; on error, those made before
}

func beginClones(t Tree, firstID int) *clones {
	return &clones{
		image:   begin(func() (imageClone, error) { return cloneImage(t.Image, firstID) }),
		sources: begin(func() ([]*os.File, error) { return cloneSources(t.Protected, t.Mounts, firstID) }),
	}
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
	return attach(image.File, unix.AT_FDCWD, imageDir)
}

func (c *clones) close() {
	image, _ := c.image()
	image.Close() // nil if it failed
	sources, _ := c.sources()
	for _, f := range sources {
		f.Close()
	}
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
	fd, err := unix.OpenTree(dirfd, path, flags|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("open_tree", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := setMountAttr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil {
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
	if owner == nil {
		var info unix.Stat_t
		if err := unix.Fstat(int(source.Fd()), &info); err != nil {
			return err
		}
		owner = &Owner{int(info.Uid), int(info.Gid)}
	}
	users, err := maps.get(owner.UID, owner.GID, firstID)
	if err != nil {
		return err
	}
	return setIDMap(source, users)
}

// imageClone is a detached, read-only mount of an image.
type imageClone struct {
	*os.File
	rootID int // host id of root's files: the guest's root, or 0 without an id map
}

// cloneImage clones the mount of the image. In the clone, root's files belong to the guest's
// root, except where the kernel or the file system can't map ids: there the guest sees uid 65534
// as their owner. Hidden places, and /proc except the folders of processes, have that owner, too.
func cloneImage(image string, firstID int) (c imageClone, err error) {
	if c.File, err = cloneMount(unix.AT_FDCWD, image, 0, true); err != nil {
		return c, err
	}
	switch err = mapAll(c.File, firstID); {
	case err == nil:
		c.rootID = firstID
	case !errors.Is(err, ErrNoIDMap):
		c.Close()
		return imageClone{}, err
	}
	return c, nil
}

// mapAll maps the ids of a detached mount to the ids of a jail.
func mapAll(mount *os.File, firstID int) error {
	if !canMapLayers() {
		return fmt.Errorf("%w (an overlay of such mounts requires Linux 5.19)", ErrNoIDMap)
	}
	users, err := newIDMap(AllIDs(firstID), AllIDs(firstID))
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
	image, err := cloneImage(dir, firstID)
	image.Close() // nil if it failed
	if err == nil && image.rootID == 0 {
		err = ErrNoIDMap
	}
	return err
}
