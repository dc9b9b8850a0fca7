package mounts

import (
	"errors"
	"slices"
	"syscall"
)

// PathError is the error of a guest folder, file, mount or place whose path the tree cannot have, because of the path
// itself or of what the image has there. It names paths of the guest only.
type PathError struct {
	Path string
	Err  error
}

// Error returns "path: cause".
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Err }

// pathCauses are the system's errors that a path causes.
var pathCauses = []syscall.Errno{
	syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL, syscall.EBUSY, syscall.EXDEV,
}

// pathError returns an error of a path that the jail's creator has chosen as a [*PathError], and other errors as they
// are.
func pathError(path string, err error) error {
	if _, known := errors.AsType[*PathError](err); known || err == nil {
		return err
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && slices.Contains(pathCauses, errno) {
		return &PathError{path, errno}
	}
	return err
}
