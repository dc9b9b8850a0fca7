package hostfs

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// LimitError is the error of an operation that exceeds a limit.
type LimitError struct {
	What  string // such as "bytes" or "entries"
	Limit int64
}

// Error reads "more than 10 entries".
func (e *LimitError) Error() string { return fmt.Sprintf("more than %d %s", e.Limit, e.What) }

// ErrSpecial is the error for sockets, FIFOs and devices.
var ErrSpecial = fmt.Errorf("neither a file nor a folder: %w", fs.ErrInvalid)

var (
	errPath        = fmt.Errorf("not an absolute, clean path: %w", fs.ErrInvalid)
	errRoot        = fmt.Errorf("the root itself: %w", fs.ErrInvalid)
	errKernel      = fmt.Errorf("the kernel's own file systems are not accessible: %w", fs.ErrPermission)
	errMode        = fmt.Errorf("only permissions and the sticky bit can be set: %w", fs.ErrInvalid)
	errLink        = fmt.Errorf("not a valid link text: %w", fs.ErrInvalid)
	errCredentials = fmt.Errorf("cannot switch to the guest's ids: %w", fs.ErrPermission)
)

// pathError wraps err in a *fs.PathError, unless it is one already.
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

// unwrapped returns the cause of a *fs.PathError.
func unwrapped(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func isMissing(err error) bool { return err == unix.ENOENT || err == unix.ENOTDIR }
