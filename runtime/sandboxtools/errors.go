package sandboxtools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"gaol/jail"
	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// Code classifies an error for programs. Codes never change.
type Code string

const (
	InvalidArgument Code = "invalid_argument" // the call is wrong; Error.Place is where
	UnknownTool     Code = "unknown_tool"     // no tool has that name
	NotFound        Code = "not_found"        // no such sandbox, image (in the store, or at its source), file or program
	Exists          Code = "exists"           // the id or the path exists
	NotDirectory    Code = "not_directory"    // not a folder
	IsDirectory     Code = "is_directory"     // a folder, not a file
	NotEmpty        Code = "not_empty"        // deleting a folder with content needs recursive
	Busy            Code = "busy"             // in use, or a mount point, as /<rootPath> may be
	Permission      Code = "permission"       // denied to the guest, or by the host's options
	Limit           Code = "limit"            // too many sandboxes, too large a file, too many entries
	NoSpace         Code = "no_space"         // the guest's disk is full
	Unauthorized    Code = "unauthorized"     // a registry needs credentials, or other ones, on the host
	BadImage        Code = "bad_image"        // the image is malformed, truncated, for another architecture, or does not match its digest
	Timeout         Code = "timeout"          // the deadline of the call has passed; a command's timeout is not an error
	Canceled        Code = "canceled"         // the caller canceled the call
	Closed          Code = "closed"           // the toolbox is closed, or the sandbox was destroyed or stopped
	Internal        Code = "internal"         // gaol failed; the text may contain paths of the host
)

// Error is the type of all errors of this package's tools.
type Error struct {
	Tool  string // such as "sandbox_exists"; may be empty
	Code  Code
	Place string // the invalid argument, such as "args[3]"; may be empty
	Err   error
}

// Error returns a text such as "gaol: sandbox_exists: path: contains a NUL byte".
func (e *Error) Error() string {
	text := "gaol: "
	for _, part := range []string{e.Tool, e.Place} {
		if part != "" {
			text += part + ": "
		}
	}
	return text + strings.TrimPrefix(e.Err.Error(), "gaol: ") // the prefix that package runtime uses too
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an error of this package, Internal for any other error, and
// "" for nil.
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

// codeCauses are the causes of a code. In a table the first row that matches applies.
type codeCauses struct {
	code   Code
	causes []error
}

// codes apply to all errors.
var codes = []codeCauses{
	{Closed, []error{runtime.ErrClosed}},
	{Timeout, []error{context.DeadlineExceeded}},
	{Canceled, []error{context.Canceled}},
}

// guestCodes apply to errors of the guest's files, and of starting a program in the guest.
var guestCodes = []codeCauses{
	{NotDirectory, []error{syscall.ENOTDIR}},
	{IsDirectory, []error{syscall.EISDIR}},
	{NotEmpty, []error{syscall.ENOTEMPTY}}, // before fs.ErrExist, which it matches too
	{Busy, []error{syscall.EBUSY, syscall.ETXTBSY}},
	{NoSpace, []error{syscall.ENOSPC, syscall.EDQUOT}},
	{Limit, []error{syscall.EFBIG, syscall.EMLINK, syscall.E2BIG}},
	{InvalidArgument, []error{fs.ErrInvalid, syscall.EINVAL, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENOEXEC}},
	{NotFound, []error{fs.ErrNotExist}},
	{Exists, []error{fs.ErrExist}},
	{Permission, []error{fs.ErrPermission, syscall.EROFS}},
}

// codeFor returns the code of an error that has none yet. Causes such as a missing file
// have a code only if the file is the guest's: the host's files do not concern the caller.
func codeFor(err error) Code {
	if code := findCode(codes, err); code != "" {
		return code
	}
	if _, ok := errors.AsType[*hostfs.LimitError](err); ok {
		return Limit
	}
	if _, ok := errors.AsType[*runtime.OptionError](err); ok { // of a command
		return InvalidArgument
	}
	step, isStep := errors.AsType[*jail.StepError](err)
	_, isFile := errors.AsType[*fs.PathError](err)
	if isStep && step.Step != "exec" && step.Step != "chdir" || !isStep && !isFile {
		return Internal
	}
	return cmp.Or(findCode(guestCodes, err), Internal)
}

func findCode(table []codeCauses, err error) Code {
	for _, row := range table {
		if slices.ContainsFunc(row.causes, func(cause error) bool { return errors.Is(err, cause) }) {
			return row.code
		}
	}
	return ""
}
