package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/resultjson"
)

// maxNamed bounds the sandboxes or processes that an error names.
const maxNamed = 10

// explained is an error with advice for a model.
type explained struct {
	error
	advice string
}

func (e *explained) Error() string { return e.error.Error() + ". " + e.advice }
func (e *explained) Unwrap() error { return e.error }

// explain adds advice for a model to an error of a call.
func explain(ctx context.Context, c *operation.Call, err error) error {
	failed, ok := errors.AsType[*service.Error](err)
	if _, done := errors.AsType[*explained](err); done || !ok {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && failed.Code == service.NotFound:
		return &explained{err, "list_files shows what exists"}
	case errors.Is(err, syscall.EISDIR):
		return &explained{err, "Use list_files"}
	case failed.Code == service.NotFound:
		return &explained{err, sandboxHint(ctx, c)}
	case failed.Code == service.Closed:
		return &explained{err, "Create a new one"}
	case failed.Code == service.Exceeded && failed.RetryAfter > 0:
		return &explained{err, fmt.Sprintf("Close sandboxes that are no longer needed with close_sandbox, or try again in %d s", int(math.Ceil(failed.RetryAfter.Seconds())))}
	}
	return err
}

// sandboxHint lists the newest sandboxes.
func sandboxHint(ctx context.Context, c *operation.Call) string {
	list, err := operation.Perform[operation.SandboxList](ctx, c, "listSandboxes", &struct{}{})
	if err != nil || len(list.Sandboxes) == 0 {
		return "There are no sandboxes, or they have expired: create one with create_sandbox"
	}
	return "Your sandboxes: " + newest(list.Sandboxes, func(sb *resultjson.SandboxInfo) string { return sb.ID }) + ". Create another one with create_sandbox"
}

// newest returns the last ids of a list.
func newest[T any](list []T, id func(T) string) string {
	var ids []string
	for _, v := range list[max(0, len(list)-maxNamed):] {
		ids = append(ids, id(v))
	}
	return strings.Join(ids, ", ")
}
