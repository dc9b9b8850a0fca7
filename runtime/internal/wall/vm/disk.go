package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// findDisk returns the path of the file beside an image's folder that contains it as a file system of EROFS. It makes the file if it
// is missing, which takes seconds. The file is removed with the image.
func findDisk(ctx context.Context, mkfs, image string) (string, error) {
	path := image + ".erofs"
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", os.NewSyscallError("flock", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) { // another process has made it
		return path, err
	}
	if err := makeDisk(ctx, mkfs, image, path+".new"); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// makeDisk writes an image to a file. Without compression, which would take longer, also for emulated machines that read it.
func makeDisk(ctx context.Context, mkfs, image, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return err
	}
	text, err := exec.CommandContext(ctx, mkfs, "--quiet", "-x-1", path, image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make a disk of the image: mkfs.erofs: %w: %.200s", err, strings.TrimSpace(string(text)))
	}
	return os.Chmod(path, 0o644) // QEMU reads it as another user
}
