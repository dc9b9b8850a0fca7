package mounts

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// cloneImage makes a detached, read-only mount of the image, in which root's files belong
// to the guest's root. rootID is the host id that these files then have. It is 0 where the
// kernel or the file system can't map ids: the guest sees the files as those of uid 65534.
// So it does hidden places, and /proc apart from the folders of processes.
func cloneImage(image string, firstID int) (f *os.File, rootID int, err error) {
	f, err = cloneMount(unix.AT_FDCWD, image, 0, true)
	if err != nil {
		return nil, 0, err
	}
	switch err := mapAll(f, firstID); {
	case err == nil:
		return f, firstID, nil
	case errors.Is(err, ErrNoIDMap):
		return f, 0, nil
	default:
		f.Close()
		return nil, 0, err
	}
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
	f, rootID, err := cloneImage(dir, firstID)
	if err != nil {
		return err
	}
	f.Close()
	if rootID == 0 {
		return ErrNoIDMap
	}
	return nil
}
