package jail

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// What belongs to root in a guest's tree shows as its own root's, the first of the jail's
// ids, because programs refuse folders of an owner whom nobody knows. No guest can become
// that user: it has neither capabilities nor set-user-ID programs. Only pid 1 is, which
// is the image's reaper without capabilities.
//
// The image shows so by a map of ids on its mount, where kernel and file system can do
// that; otherwise its files show as those of uid 65534. So do places that are hidden,
// and /proc, but for the folders of processes.

// detachImage makes a mount of the image, read-only and with root's files as those of
// the guest's root. owner is the host id that these files then have.
func detachImage(image string, firstID int) (f *os.File, owner int, err error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, image, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, 0, os.NewSyscallError("open_tree", err)
	}
	f = os.NewFile(uintptr(fd), image)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		f.Close()
		return nil, 0, os.NewSyscallError("mount_setattr", err)
	}
	switch err := mapRoot(f, firstID); {
	case err == nil:
		return f, firstID, nil
	case errors.Is(err, ErrNoIDMap):
		return f, 0, nil
	default:
		f.Close()
		return nil, 0, err
	}
}

// mapRoot maps the ids of a mount that is nowhere yet to the jail's.
func mapRoot(mount *os.File, firstID int) error {
	if !mapsLayers() {
		return fmt.Errorf("%w (an overlay of such mounts takes Linux 5.19)", ErrNoIDMap)
	}
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: idsEach}}
	users, err := idMap(all, all)
	if err != nil {
		return err
	}
	defer users.Close()
	return setIDMap(int(mount.Fd()), users)
}

// mapsLayers reports whether the layers of an overlay can have a map of ids.
var mapsLayers = sync.OnceValue(func() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && isSince(unix.ByteSliceToString(name.Release[:]), 5, 19)
})

// isSince reports whether a kernel's release, such as "5.19.0-1-amd64", is that version
// or a later one.
func isSince(release string, major, minor int) bool {
	first, rest, _ := strings.Cut(release, ".")
	second := strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if len(second) == 0 {
		return false
	}
	m, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second[0])
	return err1 == nil && err2 == nil && (m > major || m == major && n >= minor)
}

// CheckOwners returns an error that wraps ErrNoIDMap if an image in the folder dir would
// show its files as those of uid 65534.
func CheckOwners(dir string) error {
	f, owner, err := detachImage(dir, firstID)
	if err != nil {
		return err
	}
	f.Close()
	if owner == 0 {
		return ErrNoIDMap
	}
	return nil
}
