package kernfile

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Open is [os.OpenFile] without the poller, for files that exist. The file is closed on exec.
func Open(path string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case unix.EINTR:
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// ReadFile reads a whole file.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteFile replaces the content of an existing file. It does not create one: on a cgroup
// mount that fails with "permission denied" instead of "no such file".
func WriteFile(path, text string) error {
	f, err := Open(path, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
