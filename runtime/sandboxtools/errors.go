package sandboxtools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"gaol/jail"
	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// Code says what kind of error it is. Codes are for programs, and stay as they are.
type Code string

const (
	InvalidArgument Code = "invalid_argument" // the call itself is wrong: Error.Place says where
	UnknownTool     Code = "unknown_tool"     // there is no tool with that name
	NotFound        Code = "not_found"        // no such sandbox, image (in the store, or at its source), file or program
	Exists          Code = "exists"           // the id is taken, or there is something at the path
	NotDirectory    Code = "not_directory"    // a folder was needed
	IsDirectory     Code = "is_directory"     // a file was needed
	NotEmpty        Code = "not_empty"        // a folder that is to be deleted without recursive
	Busy            Code = "busy"             // it is mounted on, as /<rootPath> may be, or in use
	Permission      Code = "permission"       // the guest may not, or the host's options say no
	Limit           Code = "limit"            // too many sandboxes, too large a file, too many entries
	NoSpace         Code = "no_space"         // the guest's disk is full
	Unauthorized    Code = "unauthorized"     // a registry wants credentials of the host, or other ones
	BadImage        Code = "bad_image"        // the image is for other machines, not what its digest says, cut short, or malformed
	Timeout         Code = "timeout"          // the call's own deadline passed; a command's timeout is no error
	Canceled        Code = "canceled"         // the caller gave up
	Closed          Code = "closed"           // the toolbox is closed, or the sandbox was destroyed or stopped
	Internal        Code = "internal"         // gaol could not do its job; the text may name the host's paths
)

// Error is what all that fails here returns.
type Error struct {
	Tool  string // such as "sandbox_exists"; empty where no tool is at work
	Code  Code
	Place string // the argument that is to blame, such as "args[3]"; may be empty
	Err   error
}

// Error reads "gaol: sandbox_exists: path: it has a NUL".
func (e *Error) Error() string {
	text := "gaol: "
	for _, part := range []string{e.Tool, e.Place} {
		if part != "" {
			text += part + ": "
		}
	}
	return text + strings.TrimPrefix(e.Err.Error(), "gaol: ") // which package runtime begins its own with
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of an error that came from here; Internal of another one, and
// empty of nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

func refuse(code Code, place, format string, args ...any) *Error {
	return &Error{Code: code, Place: place, Err: fmt.Errorf(format, args...)}
}

// inTool gives an error its tool, and its code if it has none.
func inTool(tool string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Code: codeFor(err), Err: err}
	}
	e.Tool = tool
	return e
}

// codes are of causes that have one, wherever they come from. The first that matches counts.
var codes = []struct {
	cause error
	code  Code
}{
	{runtime.ErrClosed, Closed},
	{context.DeadlineExceeded, Timeout},
	{context.Canceled, Canceled},
}

// fileCodes are of causes that are the guest's: from its files, and from starting a program.
var fileCodes = []struct {
	cause error
	code  Code
}{
	{syscall.ENOTDIR, NotDirectory},
	{syscall.EISDIR, IsDirectory},
	{syscall.ENOTEMPTY, NotEmpty}, // before fs.ErrExist, which it is one of
	{syscall.EBUSY, Busy},
	{syscall.ETXTBSY, Busy},
	{syscall.ENOSPC, NoSpace},
	{syscall.EDQUOT, NoSpace},
	{syscall.EROFS, Permission},
	{syscall.EFBIG, Limit},
	{syscall.EMLINK, Limit},
	{syscall.E2BIG, Limit},
	{syscall.ELOOP, InvalidArgument},
	{syscall.ENAMETOOLONG, InvalidArgument},
	{syscall.EINVAL, InvalidArgument},
	{syscall.ENOEXEC, InvalidArgument},
	{fs.ErrNotExist, NotFound},
	{fs.ErrExist, Exists},
	{fs.ErrPermission, Permission},
	{fs.ErrInvalid, InvalidArgument},
}

// codeFor tells what is the guest's from what is the host's: that a folder of the
// host's is missing is none of the caller's business.
func codeFor(err error) Code {
	for _, c := range codes {
		if errors.Is(err, c.cause) {
			return c.code
		}
	}
	if _, ok := errors.AsType[*hostfs.LimitError](err); ok {
		return Limit
	}
	step, started := errors.AsType[*jail.StepError](err)
	_, file := errors.AsType[*fs.PathError](err)
	if started && step.Step != "exec" && step.Step != "chdir" || !started && !file {
		return Internal
	}
	for _, c := range fileCodes {
		if errors.Is(err, c.cause) {
			return c.code
		}
	}
	return Internal
}
