package mounts

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// clones are detached mounts: clones of the image's mount and of those of the host's
// folders. Goroutines make them while the cgroups are made and the stage is filled, because
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

// begin calls f on a goroutine of its own, and returns a function that waits for its result.
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

func cloneSources(protected []string, list []Mount, firstID int) (sources []*os.File, err error) {
	maps := idMaps{}
	defer maps.close()
	for _, m := range list {
		if err := checkTarget(m.Target, protected); err != nil {
			return sources, err
		}
		f, err := cloneMount(int(m.Source.Fd()), "", unix.AT_EMPTY_PATH, m.Access != ReadWrite)
		if err == nil {
			sources = append(sources, f)
			err = mapOwner(f, firstID, maps)
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

// mapOwner gives the files of the source's owner to the guest.
func mapOwner(source *os.File, firstID int, maps idMaps) error {
	var info unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &info); err != nil {
		return err
	}
	users, err := maps.get(int(info.Uid), int(info.Gid), firstID)
	if err != nil {
		return err
	}
	return setIDMap(source, users)
}
