package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// maxNamed bounds the sandboxes or processes that an error names.
const maxNamed = 10

// explain adds advice for a model to an error of a call with some arguments.
func explain(ctx context.Context, c *operation.Call, in any, err error) error {
	failed, ok := errors.AsType[*service.Error](err)
	if !ok {
		return err
	}
	advice := ""
	switch {
	case errors.Is(err, fs.ErrNotExist) && failed.Code == service.NotFound:
		advice = "list_files shows what exists"
	case errors.Is(err, syscall.EISDIR):
		advice = "Use list_files"
	case failed.Code == service.NotFound:
		advice = known(ctx, c, in)
	case failed.Code == service.Closed:
		advice = "Create a new one"
	case failed.Code == service.Exceeded && failed.RetryAfter > 0:
		advice = fmt.Sprintf("Close sandboxes that are no longer needed with close_sandbox, or try again in %d s", int(math.Ceil(failed.RetryAfter.Seconds())))
	default:
		return err
	}
	return fmt.Errorf("%w. %s", err, advice)
}

// known lists the newest processes of the sandbox of a call about one, or else the newest sandboxes.
func known(ctx context.Context, c *operation.Call, in any) string {
	if p, ok := in.(*processIn); ok {
		if list, err := operation.Perform[service.ProcessList](ctx, c, "listProcesses", new(p.in())); err == nil {
			return newest(list.Processes, func(p *resultjson.ProcessInfo) string { return p.ID }) + "; start one with start_process"
		}
	}
	list, _ := operation.Perform[service.SandboxList](ctx, c, "listSandboxes", &struct{}{}) // empty if it fails
	return newest(list.Sandboxes, func(sb *resultjson.SandboxInfo) string { return sb.ID }) + "; create one with create_sandbox"
}

// newest names the last of a list.
func newest[T any](list []T, id func(T) string) string {
	var ids []string
	for _, v := range list[max(0, len(list)-maxNamed):] {
		ids = append(ids, id(v))
	}
	if ids == nil {
		return "There are none, or they have expired"
	}
	return "Yours are " + strings.Join(ids, ", ")
}

// denial is an operation that permissions denied to a run.
type denial struct {
	runtime.Denial
	AllowWith string `json:"allowWith,omitempty" doc:"The permission of a new sandbox that would allow it, unless the server forbids it."`
}

// denials are the denied operations of a run.
type denials []denial

// argument is the argument that advice about denials names.
const argument = "permissions of create_sandbox"

// newDenials describes the denials of a run in a sandbox: an empty id is a fresh one.
func newDenials(c *operation.Call, sandbox string, list []runtime.Denial) denials {
	described := denials{}
	if len(list) == 0 {
		return described
	}
	advice := flags.Advice{Permissions: c.Service.PermissionsOf(c.Tenant, sandbox), Argument: argument, Accept: c.Service.Allows}.For(list)
	for i, d := range list {
		described = append(described, denial{d, advice[i]})
	}
	return described
}

// String describes the first ones, a line each.
func (list denials) String() string {
	var lines strings.Builder
	for i, d := range list {
		if i == flags.MaxDenials {
			fmt.Fprintf(&lines, "denied: %d more", len(list)-i)
			break
		}
		lines.WriteString(flags.DenialText(d.Denial))
		if d.AllowWith != "" {
			lines.WriteString("; allow with " + d.AllowWith)
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}
