package mounts

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// setMountAttr changes the flags of a mount and, with AT_RECURSIVE, of those below it. Where the kernel lacks mount_setattr(2), it
// remounts them one by one.
func setMountAttr(dirfd int, path string, flags uint, attr unix.MountAttr) error {
	err := unix.MountSetattr(dirfd, path, flags, &attr)
	if err != unix.ENOSYS || path == "" || attr.Attr_set&unix.MOUNT_ATTR_IDMAP != 0 {
		return os.NewSyscallError("mount_setattr", err)
	}
	points := []string{path}
	if flags&unix.AT_RECURSIVE != 0 {
		if points, err = mountsFrom(path); err != nil {
			return err
		}
	}
	for _, point := range points {
		if err := remount(point, attr); err != nil {
			return &os.PathError{Op: "remount", Path: point, Err: err}
		}
	}
	return nil
}

// remount changes the flags of a mount. The bits of mount_setattr(2), mount(2) and statfs(2) are the same.
func remount(point string, attr unix.MountAttr) error {
	const all = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	var now unix.Statfs_t
	if err := unix.Statfs(point, &now); err != nil {
		return err
	}
	flags := (uint64(now.Flags)&^attr.Attr_clr | attr.Attr_set) & all
	return unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_BIND|uintptr(flags), "")
}

// mountsFrom returns a mount point and those below it.
func mountsFrom(path string) (points []string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	text, err := kernfile.ReadFile("/proc/thread-self/mountinfo")
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && isIn(unescape(fields[4]), path) {
			points = append(points, unescape(fields[4]))
		}
	}
	return points, err
}

// unescape returns a path of mountinfo, in which some characters are octal.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
