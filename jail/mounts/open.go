package mounts

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenIn opens path relative to root as if root were the root directory: links and ".."
// can't lead out of it.
func OpenIn(root *os.File, path string, flags uint64) (*os.File, error) {
	return openat2(root, path, flags, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenBeneath opens path, which is relative to dir, without following any link.
func OpenBeneath(dir *os.File, path string, flags uint64) (*os.File, error) {
	return openat2(dir, path, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}

func openat2(dir *os.File, path string, flags, resolve uint64) (*os.File, error) {
	const retries = 100 // renames and mounts anywhere can make the kernel unsure about a ".." (EAGAIN)
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	for i := 0; ; i++ {
		fd, err := unix.Openat2(int(dir.Fd()), path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case i == retries || err != unix.EAGAIN && err != unix.EINTR:
			return nil, err
		}
	}
}
