package enter

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// StartError corrects the error of an [os.StartProcess] whose files are open. If the child
// has no descriptor left for one of them, dup3(2) fails with EBADF; StartError returns
// EMFILE instead.
func StartError(err error) error {
	failed, ok := errors.AsType[*os.PathError](err)
	if !ok || !errors.Is(failed.Err, unix.EBADF) {
		return err
	}
	return &os.PathError{Op: failed.Op, Path: failed.Path, Err: unix.EMFILE}
}
