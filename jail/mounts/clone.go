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
// clone a mount of another namespace, and the stage's is one.
type clones struct {
	imageDone sync.WaitGroup
	image     *os.File
	imageRoot int // host id of the image's root files: the guest's root, or 0 without an id map
	imageErr  error

	sourcesDone sync.WaitGroup
	sources     []*os.File // in the order of Tree.Mounts
	sourcesErr  error
}

func beginClones(t Tree, firstID int) *clones {
	c := &clones{}
	c.imageDone.Go(func() { c.image, c.imageRoot, c.imageErr = cloneImage(t.Image, firstID) })
	c.sourcesDone.Go(func() { c.sourcesErr = c.cloneSources(t.Protected, t.Mounts, firstID) })
	return c
}

// mountImage attaches the image in the stage.
func (c *clones) mountImage() error {
	c.imageDone.Wait()
	if c.imageErr != nil {
		return c.imageErr
	}
	return attach(c.image, unix.AT_FDCWD, imageDir)
}

func (c *clones) wait() error {
	c.sourcesDone.Wait()
	return c.sourcesErr
}

func (c *clones) close() {
	c.imageDone.Wait()
	c.sourcesDone.Wait()
	c.image.Close() // nil if it failed
	for _, f := range c.sources {
		f.Close()
	}
}

func (c *clones) cloneSources(protected []string, list []Mount, firstID int) error {
	maps := idMaps{}
	defer maps.close()
	for _, m := range list {
		if err := checkTarget(m.Target, protected); err != nil {
			return err
		}
		f, err := cloneMount(int(m.Source.Fd()), "", unix.AT_EMPTY_PATH, m.Access != ReadWrite)
		if err == nil {
			c.sources = append(c.sources, f)
			err = mapOwner(f, firstID, maps)
		}
		if err != nil && !(errors.Is(err, ErrNoIDMap) && m.Access == ReadOnly) {
			return &os.PathError{Op: "mount", Path: m.Target, Err: err}
		}
	}
	return nil
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
		if target == p || isBelow(target, p) {
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
