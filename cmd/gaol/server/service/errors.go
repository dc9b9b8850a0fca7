package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gaol/cmd/gaol/server/quota"
	"gaol/jail"
	"gaol/jail/mounts"
	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
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
	Draining  Code = "draining" // the server is being stopped, and has not begun
	Internal  Code = "internal"

	Interrupted Code = "interrupted" // the server was stopped after it had begun

	NoProgram     Code = "no_program"     // the program or its working directory does not exist
	NotExecutable Code = "not_executable" // the program may not be executed

	NoSpace      Code = "no_space"      // the sandbox's disk is full
	NotListening Code = "not_listening" // nothing listens on the guest's port
	BadGateway   Code = "bad_gateway"   // the guest's server did not reply, or not with HTTP
)

// statuses are the HTTP statuses of the codes.
var statuses = map[Code]int{
	Invalid: http.StatusUnprocessableEntity, Forbidden: http.StatusForbidden, NotFound: http.StatusNotFound, Conflict: http.StatusConflict,
	Exceeded: http.StatusTooManyRequests, TooLarge: http.StatusRequestEntityTooLarge, Closed: http.StatusGone,
	Draining: http.StatusServiceUnavailable, Interrupted: http.StatusServiceUnavailable, Internal: http.StatusInternalServerError,
	NoProgram: http.StatusUnprocessableEntity, NotExecutable: http.StatusUnprocessableEntity,
	NoSpace: http.StatusInsufficientStorage, NotListening: http.StatusBadGateway, BadGateway: http.StatusBadGateway,
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
func (e *Error) Status() int { return statuses[e.Code] }

func refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// convert returns an error of the SDK as an *Error. Internal errors keep their text as the cause
// only: it may name files of the host.
func convert(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*quota.Exceeded](err); ok {
		return &Error{Code: Exceeded, Err: e, RetryAfter: e.RetryAfter}
	}
	if isStart(err) {
		return &Error{Code: startCode(err), Err: err}
	}
	if isInvalid(err) {
		return &Error{Code: Invalid, Err: err}
	}
	if errors.Is(err, runtime.ErrClosed) || errors.Is(err, runtime.ErrContextEnded) {
		return &Error{Code: Closed, Err: err}
	}
	return &Error{Code: Internal, Err: err}
}

// isInvalid reports whether an error of the SDK is about the caller's options.
func isInvalid(err error) bool {
	_, option := errors.AsType[*runtime.OptionError](err)
	_, limit := errors.AsType[*runtime.LimitError](err)
	_, rule := errors.AsType[*policy.RuleError](err)
	_, format := errors.AsType[*policy.FormatError](err)
	_, path := errors.AsType[*mounts.PathError](err)
	if option || limit || rule || format || path {
		return true
	}
	for _, asked := range []error{rootfs.ErrNotFound, jail.ErrNoIDMap, jail.ErrNotInMount, mounts.ErrProtected} {
		if errors.Is(err, asked) {
			return true
		}
	}
	return false
}
