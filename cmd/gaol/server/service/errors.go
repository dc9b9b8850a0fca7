package service

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
	"gaol/jail"
	"gaol/jail/mounts"
	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/vfs/hostfs"
)

// Code is a stable name of a kind of error, for programs.
type Code string

// The codes.
const (
	Invalid   Code = "invalid"   // the request, with details
	Forbidden Code = "forbidden" // by the server's settings
	NotFound  Code = "not_found"
	Conflict  Code = "conflict" // it exists already, or is in use
	Exceeded  Code = "quota"    // with a time to retry, unless the request can never be served
	TooLarge  Code = "too_large"
	Closed    Code = "closed"   // the sandbox, context or process has ended
	Paused    Code = "paused"   // the sandbox is
	Draining  Code = "draining" // the server is being stopped, and has not begun
	Internal  Code = "internal"
	Canceled  Code = "canceled"

	Stopped Code = "interrupted" // the server was stopped after it had begun

	NoProgram     Code = "no_program"     // the program or its working directory does not exist
	NotExecutable Code = "not_executable" // the program may not be executed

	StepFailed Code = "step_failed" // a command of a step failed

	NoSpace      Code = "no_space"      // the sandbox's disk is full
	NotListening Code = "not_listening" // nothing listens on the guest's port
	BadGateway   Code = "bad_gateway"   // the guest's server did not reply, or not with HTTP

	SandboxLost       Code = "sandbox_lost"       // its node is dead
	Unreachable       Code = "unreachable"        // the node of the sandbox cannot be reached now
	NodeLost          Code = "node_lost"          // the node was lost during the operation, which may have had effects
	EngineUnavailable Code = "engine_unavailable" // the fleet's engine cannot be reached now
)

// statuses are the HTTP statuses of the codes.
var statuses = map[Code]int{
	Invalid: http.StatusUnprocessableEntity, Forbidden: http.StatusForbidden, NotFound: http.StatusNotFound, Conflict: http.StatusConflict,
	Exceeded: http.StatusTooManyRequests, TooLarge: http.StatusRequestEntityTooLarge, Closed: http.StatusGone,
	Paused:   http.StatusConflict,
	Draining: http.StatusServiceUnavailable, Stopped: http.StatusServiceUnavailable, Internal: http.StatusInternalServerError,
	NoProgram: http.StatusUnprocessableEntity, NotExecutable: http.StatusUnprocessableEntity,
	NoSpace: http.StatusInsufficientStorage, NotListening: http.StatusBadGateway, BadGateway: http.StatusBadGateway,
	SandboxLost: http.StatusGone, Unreachable: http.StatusServiceUnavailable, NodeLost: http.StatusBadGateway,
	EngineUnavailable: http.StatusServiceUnavailable,
	Canceled:          499, // as nginx has it: HTTP defines none

	// Codes of tools.
	Code(sandboxtools.UnknownTool): http.StatusNotFound, Code(sandboxtools.Permission): http.StatusForbidden,
	Code(sandboxtools.Exists): http.StatusConflict, Code(sandboxtools.NotEmpty): http.StatusConflict, Code(sandboxtools.Busy): http.StatusConflict,
}

// Error is an error of a request. Its text is for the tenant.
type Error struct {
	Code Code
	Err  error

	// RetryAfter is when the request may succeed; zero if that is unknown.
	RetryAfter time.Duration
}

// Error returns the text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Status returns the HTTP status.
func (e *Error) Status() int { return cmp.Or(statuses[e.Code], http.StatusUnprocessableEntity) }

// Refuse returns an error with a code.
func Refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// AsError returns an error of this package, of a quota, of a tool or of the SDK as an *Error, unless the tenant has not caused it.
func AsError(err error) (*Error, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e, true
	}
	if e, ok := errors.AsType[*sandboxtools.Error](err); ok && e.Code != sandboxtools.Internal {
		return &Error{Code: Code(e.Code), Err: e}, true
	}
	if e, ok := errors.AsType[*quota.Exceeded](err); ok {
		return &Error{Code: Exceeded, Err: e, RetryAfter: e.RetryAfter}, true
	}
	if code := startCode(err); code != "" {
		return &Error{Code: code, Err: err}, true
	}
	switch {
	case isInvalid(err):
		return &Error{Code: Invalid, Err: err}, true
	case errors.Is(err, runtime.ErrPaused):
		return &Error{Code: Paused, Err: err}, true
	case isAny(err, runtime.ErrClosed, runtime.ErrContextEnded):
		return &Error{Code: Closed, Err: err}, true
	}
	return nil, false
}

// Convert returns the error of an operation as an [*Error], unless it was canceled. It logs an error that the tenant has
// not caused, because its text may name files of the host.
func (s *Service) Convert(ctx context.Context, operation string, t *tenant.Tenant, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Code == Draining && ctx.Err() != nil {
		return Refuse(Stopped, "the server was stopped during the operation, which may have had effects")
	}
	if errors.Is(err, context.Canceled) || sandboxtools.CodeOf(err) != sandboxtools.Internal { // the error of a tool
		return err
	}
	if e, ok := AsError(err); ok {
		return e
	}
	if !s.trusted {
		s.log.ErrorContext(ctx, "an operation failed", "operation", operation, "tenant", t.Name, "err", err)
		err = errInternal
	}
	return &Error{Code: Internal, Err: err}
}

// Recover turns a panic into an error of one operation, because it must not end the other tenants' operations. It must be
// deferred.
func (s *Service) Recover(ctx context.Context, operation string, t *tenant.Tenant, err *error) {
	if p := recover(); p != nil {
		s.log.ErrorContext(ctx, "panic", "operation", operation, "tenant", t.Name, "panic", p, "stack", string(debug.Stack()))
		*err = &Error{Code: Internal, Err: errInternal}
	}
}

var errInternal = errors.New("the server failed: see its log")

// isAny reports whether an error is one of some.
func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// isInvalid reports whether an error of the SDK is about the caller's options.
func isInvalid(err error) bool {
	return is[*runtime.OptionError](err) || is[*runtime.LimitError](err) || is[*policy.RuleError](err) || is[*policy.FormatError](err) || is[*mounts.PathError](err) ||
		isAny(err, rootfs.ErrNotFound, jail.ErrNoIDMap, jail.ErrNotInMount, mounts.ErrProtected)
}

// startErrors are the system's errors that a tenant's choice of a program or a folder causes.
var startErrors = []error{
	unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.ENAMETOOLONG,
	unix.ENOEXEC, unix.E2BIG,
}

// startCode returns the code of the error of a program that could not be started because it, or its working directory, is
// missing in the sandbox or cannot be used; empty for other errors. The text of such an error names paths of the guest only.
func startCode(err error) Code {
	step, ok := errors.AsType[*jail.StepError](err)
	switch {
	case !ok || step.Step != "exec" && step.Step != "chdir" || !isAny(step.Err, startErrors...):
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return NoProgram
	case errors.Is(err, fs.ErrPermission):
		return NotExecutable
	}
	return Invalid
}

// startError converts an error of starting a process or a context if other runs cannot fail for the
// same reason.
func startError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runtime.ErrManyContexts):
		return exceeded("the sandbox has as many contexts as it may have")
	case errors.Is(err, unix.ENOSPC):
		return exceeded("the sandbox cannot hold another terminal")
	case errors.Is(err, context.DeadlineExceeded):
		return Refuse(Invalid, "timeoutMs: the process has not started within it")
	}
	return err
}

// exceeded returns the error of a request that exceeds the current room in a sandbox, process or
// context.
func exceeded(format string, args ...any) *Error {
	return &Error{Code: Exceeded, Err: fmt.Errorf(format, args...), RetryAfter: retryLater}
}

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
	return Refuse(TooLarge, "%w: your quota is uploadBytes", &http.MaxBytesError{Limit: limit})
}

// fileError converts an error of package hostfs, which names paths of the guest only.
func fileError(err error) error {
	if err == nil {
		return nil
	}
	if is[*hostfs.LimitError](err) {
		return &Error{Code: TooLarge, Err: err}
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return UploadTooLarge(large.Limit)
	}
	for _, row := range fileErrors {
		if isAny(err, row.errs...) {
			if row.code == NoSpace {
				err = fmt.Errorf("%w: the sandbox has reached limits.diskBytes or limits.files", err)
			}
			return &Error{Code: row.code, Err: err}
		}
	}
	return err
}
