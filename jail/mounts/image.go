package mounts

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// imageClone is a detached, read-only mount of an image.
type imageClone struct {
	*os.File
	rootID int // host id of root's files: the guest's root, or 0 without an id map
}

// cloneImage clones the mount of the image. In the clone, root's files belong to the guest's
// root, except where the kernel or the file system can't map ids: there the guest sees them as
// those of uid 65534. So it does hidden places, and /proc apart from the folders of processes.
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
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: IDsPerJail}}
	users, err := newIDMap(all, all)
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

// CheckOwners returns an error that wraps ErrNoIDMap if guests would see the files of an
// image in the folder dir as those of uid 65534. firstID is the first host id of any jail.
func CheckOwners(dir string, firstID int) error {
	image, err := cloneImage(dir, firstID)
	image.Close() // nil if it failed
	if err == nil && image.rootID == 0 {
		err = ErrNoIDMap
	}
	return err
}
