package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"gaol/internal/session"
	"gaol/runtime"
)

// Error is a refusal of the server. It matches [fs.ErrNotExist], [fs.ErrPermission] and
// [runtime.ErrClosed], if its code means that.
type Error struct {
	Code       string // a stable name, such as "quota"; docs/session.md lists them
	Status     int    // the HTTP status of the same error
	Detail     string
	Fields     []string      // which fields of the request are invalid, and why
	RetryAfter time.Duration // when the request may succeed; zero if that is unknown
}

// sdkPrefix begins the errors of package runtime, which name what failed.
const sdkPrefix = "gaol: "

// Error returns the detail.
func (e *Error) Error() string {
	if strings.HasPrefix(e.Detail, sdkPrefix) {
		return e.Detail
	}
	text := e.Detail
	if text == "" {
		text = strings.ToLower(http.StatusText(e.Status))
	}
	return "server: " + text
}

// Is matches the errors that package runtime returns in the same situation.
func (e *Error) Is(target error) bool {
	switch e.Code {
	case "not_found", "no_program":
		return target == fs.ErrNotExist
	case "forbidden", "not_executable":
		return target == fs.ErrPermission
	case "closed", "draining", "interrupted":
		return target == runtime.ErrClosed
	case "canceled":
		return target == context.Canceled
	}
	return false
}

// parseError returns nil if the text is no problem.
func parseError(text []byte) *Error {
	var p session.Problem
	if json.Unmarshal(text, &p) != nil || p.Code == "" {
		return nil
	}
	e := &Error{Code: p.Code, Status: p.Status, Detail: p.Detail, RetryAfter: time.Duration(p.RetryAfterMs) * time.Millisecond}
	var fields []struct{ Message, Location string }
	if json.Unmarshal(p.Errors, &fields) == nil {
		for _, f := range fields {
			e.Fields = append(e.Fields, f.Location+": "+f.Message)
		}
	}
	return e
}

// canceled returns the error of a run that its context has ended, as package runtime does.
func canceled(ctx context.Context, doing string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("gaol: %s: %w", doing, cause)
	}
	return fmt.Errorf("gaol: %s: %w: %w", doing, err, cause)
}

// unsupported is the error for an option that servers do not have.
func unsupported(option string) error {
	return &runtime.OptionError{Option: option, Err: fmt.Errorf("servers do not have it: %w", errors.ErrUnsupported)}
}
