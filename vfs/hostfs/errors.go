package hostfs

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// LimitError says that there is more than was asked to be dealt with at most.
type LimitError struct {
	What  string // such as "bytes" or "entries"
	Limit int64
}

// Error reads "more than 10 entries".
func (e *LimitError) Error() string { return fmt.Sprintf("more than %d %s", e.Limit, e.What) }

// ErrSpecial is why sockets, FIFOs and devices are left alone.
var ErrSpecial = fmt.Errorf("neither a file nor a folder: %w", fs.ErrInvalid)

var (
	errPath     = fmt.Errorf("not an absolute, clean path: %w", fs.ErrInvalid)
	errRoot     = fmt.Errorf("the root itself: %w", fs.ErrInvalid)
	errKernel   = fmt.Errorf("the kernel's own files are out of reach: %w", fs.ErrPermission)
	errMode     = fmt.Errorf("more than permissions and the sticky bit: %w", fs.ErrInvalid)
	errLink     = fmt.Errorf("no text of a link: %w", fs.ErrInvalid)
	errIdentity = fmt.Errorf("can't act with the guest's ids: %w", fs.ErrPermission)
)

// pathError names the operation and the guest's path, once.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if _, named := errors.AsType[*fs.PathError](err); named {
		return err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func isLimit(err error) bool {
	_, is := errors.AsType[*LimitError](err)
	return is
}

// unwrapped is the cause in a *fs.PathError.
func unwrapped(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func isMissing(err error) bool { return err == unix.ENOENT || err == unix.ENOTDIR }
