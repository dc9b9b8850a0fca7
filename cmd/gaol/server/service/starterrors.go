package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/runtime"
)

// startErrors are the system's errors that a tenant's choice of a program or a folder causes.
var startErrors = []error{
	unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.ENAMETOOLONG,
	unix.ENOEXEC, unix.E2BIG,
}

// isStart reports whether a program could not be started because it, or its working directory, is
// missing in the sandbox or cannot be used. The text of such an error names paths of the guest only.
func isStart(err error) bool {
	step, ok := errors.AsType[*jail.StepError](err)
	if !ok || step.Step != "exec" && step.Step != "chdir" {
		return false
	}
	return slices.ContainsFunc(startErrors, func(e error) bool { return errors.Is(step.Err, e) })
}

// startCode returns the code of an error of isStart.
func startCode(err error) Code {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NoProgram
	case errors.Is(err, fs.ErrPermission):
		return NotExecutable
	}
	return Invalid
}

// startError converts an error of starting a process or a context where it has a reason that other
// runs do not have.
func startError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runtime.ErrManyContexts):
		return exceeded("the sandbox has as many contexts as it may have")
	case errors.Is(err, unix.ENOSPC):
		return exceeded("the sandbox has no room for another terminal")
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(Invalid, "timeoutMs: the process has not started within it")
	}
	return err
}

// exceeded returns the error of a request that exceeds what a sandbox, process or context has room
// for now.
func exceeded(format string, args ...any) *Error {
	return &Error{Code: Exceeded, Err: fmt.Errorf(format, args...), RetryAfter: retryLater}
}
