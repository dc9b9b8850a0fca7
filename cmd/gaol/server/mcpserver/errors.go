package mcpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"

	"gaol/cmd/gaol/server/service"
	"gaol/vfs/hostfs"
)

// maxNamed bounds the sandboxes that an error names.
const maxNamed = 10

// explained is an error with what a model can do about it.
type explained struct {
	error
	advice string
}

func (e *explained) Error() string { return e.error.Error() + ". " + e.advice }
func (e *explained) Unwrap() error { return e.error }

// explain adds to an error what a model can do about it.
func (e *endpoint) explain(err error) error {
	if _, ok := errors.AsType[*explained](err); ok || err == nil {
		return err
	}
	failed, ok := errors.AsType[*service.Error](err)
	switch {
	case !ok:
		return err
	case failed.Code == service.NotFound:
		return &explained{err, e.sandboxHint()}
	case failed.Code == service.Closed:
		return &explained{err, "Create a new one"}
	case failed.Code == service.Exceeded && failed.RetryAfter > 0:
		return &explained{err, fmt.Sprintf("Close sandboxes that are no longer needed with close_sandbox, or try again in %d s", int(math.Ceil(failed.RetryAfter.Seconds())))}
	}
	return err
}

// sandboxHint lists the sandboxes that there are.
func (e *endpoint) sandboxHint() string {
	list := e.service.Sandboxes(e.tenant)
	if len(list) == 0 {
		return "There are no sandboxes, or they have expired: create one with create_sandbox"
	}
	var ids []string
	for _, sb := range list[max(0, len(list)-maxNamed):] {
		ids = append(ids, sb.ID)
	}
	return "Your sandboxes: " + strings.Join(ids, ", ") + ". Create another one with create_sandbox"
}

// acquire returns a sandbox, which the caller releases.
func (e *endpoint) acquire(id string) (*service.Sandbox, error) {
	sb, err := e.service.Acquire(e.tenant, id)
	if err != nil {
		return nil, e.explain(err)
	}
	return sb, nil
}

// fileErrors are errors of a sandbox's files, with advice.
var fileErrors = []struct {
	cause error
	text  string
}{
	{syscall.ENOTDIR, "a part of the path is not a folder"},
	{syscall.EISDIR, "it is a folder: use list_files"},
	{syscall.ENOSPC, "the sandbox's disk is full"},
	{syscall.EDQUOT, "the sandbox's disk is full"},
	{syscall.EROFS, "it is read-only"},
	{syscall.ELOOP, "too many links"},
	{syscall.ENAMETOOLONG, "a name is too long"},
	{hostfs.ErrSpecial, "it is neither a file nor a folder"},
	{fs.ErrNotExist, "it does not exist: list_files shows what does"},
	{fs.ErrExist, "it exists"},
	{fs.ErrPermission, "permission denied"},
	{fs.ErrInvalid, "it is invalid"},
}

// fileFailure is a failed operation on a sandbox's file.
type fileFailure struct {
	path, text string
	cause      error
}

func (f *fileFailure) Error() string { return f.path + ": " + f.text }
func (f *fileFailure) Unwrap() error { return f.cause }

// fileError returns the text for a failed operation on a sandbox's file.
func (e *endpoint) fileError(path string, err error) error {
	if err == nil {
		return nil
	}
	if limit, ok := errors.AsType[*hostfs.LimitError](err); ok {
		return &fileFailure{path, limit.Error(), err}
	}
	if own, ok := errors.AsType[advice](err); ok {
		return &fileFailure{path, own.Error(), err}
	}
	for _, row := range fileErrors {
		if errors.Is(err, row.cause) {
			return &fileFailure{path, row.text, err}
		}
	}
	return e.explain(e.service.Convert("use a file", e.tenant, err))
}

// advice is an error that says what to do instead.
type advice string

func (a advice) Error() string { return string(a) }

const (
	errFolder    = advice("it is a folder: use list_files")
	errNoFolder  = advice("it is not a folder: use read_file")
	errLargeFile = advice("it has more than 16 MiB: use read_file with an offset")
)
