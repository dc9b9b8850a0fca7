package service

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// fileErrors lists which errors of package hostfs have which code. The first that matches counts.
var fileErrors = []struct {
	code Code
	errs []error
}{
	{Closed, []error{runtime.ErrClosed}},
	{NoSpace, []error{unix.ENOSPC, unix.EDQUOT}},
	{TooLarge, []error{unix.EFBIG}},
	{NotFound, []error{fs.ErrNotExist}},
	{Conflict, []error{
		fs.ErrExist, hostfs.ErrSpecial, unix.EISDIR, unix.ENOTDIR, unix.EXDEV, unix.EBUSY, unix.ETXTBSY, unix.ESTALE,
		hostfs.ErrChanged,
	}},
	{Forbidden, []error{fs.ErrPermission, unix.EROFS}},
	{Invalid, []error{
		fs.ErrInvalid, unix.EINVAL, unix.ENAMETOOLONG, unix.ELOOP, unix.EMLINK, tar.ErrHeader, io.ErrUnexpectedEOF,
		hostfs.ErrEntryName, hostfs.ErrEntryType, hostfs.ErrEntryKind,
	}},
}

// UploadTooLarge is the error for a body with more bytes than the tenant's quota.
func UploadTooLarge(limit int64) error {
	return refuse(TooLarge, "%w: your quota is uploadBytes", &http.MaxBytesError{Limit: limit})
}

// fileError converts an error of package hostfs, which names paths of the guest only.
func (sb *Sandbox) fileError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, limit := errors.AsType[*hostfs.LimitError](err); limit {
		return &Error{Code: TooLarge, Err: err}
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return UploadTooLarge(large.Limit)
	}
	for _, row := range fileErrors {
		if slices.ContainsFunc(row.errs, func(target error) bool { return errors.Is(err, target) }) {
			return &Error{Code: row.code, Err: err}
		}
	}
	return sb.service.internal(doing, sb.tenant(), err)
}
