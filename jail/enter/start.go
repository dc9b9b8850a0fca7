package enter

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// StartError returns the error of an [os.StartProcess] whose files are open. Where the child
// has no number left for one of them, dup3(2) says EBADF; that is EMFILE here.
func StartError(err error) error {
	failed, ok := errors.AsType[*os.PathError](err)
	if !ok || !errors.Is(failed.Err, unix.EBADF) {
		return err
	}
	return &os.PathError{Op: failed.Op, Path: failed.Path, Err: unix.EMFILE}
}
