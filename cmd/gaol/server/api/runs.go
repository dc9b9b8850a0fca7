package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// addRuns adds the operations that start code.
func (a *API) addRuns() {
	unprocessable := http.StatusUnprocessableEntity
	addFollowed(a, operation("run", http.MethodPost, "/v1/run", "Run a program in a sandbox of its own", unprocessable), runEvents, a.service.Run, a.service.FollowRun)
	addFollowed(a, operation("evaluate", http.MethodPost, "/v1/evaluate", "Evaluate a snippet in a sandbox of its own", unprocessable), evaluateEvents, a.service.Evaluate, a.service.FollowEvaluate)
	missing := []int{http.StatusNotFound, http.StatusGone, unprocessable}
	addFollowedIn(a, operation("runIn", http.MethodPost, "/v1/sandboxes/{id}/run", "Run a program and return its value", missing...), runEvents, (*service.Sandbox).Run, (*service.Sandbox).FollowRun)
	addFollowedIn(a, operation("execIn", http.MethodPost, "/v1/sandboxes/{id}/exec", "Run a program without a value", missing...), runEvents, (*service.Sandbox).Exec, (*service.Sandbox).FollowExec)
	addFollowedIn(a, operation("commandIn", http.MethodPost, "/v1/sandboxes/{id}/command", "Run a program of the image", missing...), runEvents, (*service.Sandbox).Command, (*service.Sandbox).FollowCommand)
	addFollowedIn(a, operation("evaluateIn", http.MethodPost, "/v1/sandboxes/{id}/evaluate", "Evaluate a snippet", missing...), evaluateEvents, (*service.Sandbox).Evaluate, (*service.Sandbox).FollowEvaluate)
}

// request is a request with a body of JSON.
type request[T any] struct{ Body T }

// add adds an operation of the service.
func add[In, Out any](a *API, op huma.Operation, do func(context.Context, *tenant.Tenant, In) (*Out, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, r *request[In]) (*result[*Out], error) {
		out, err := do(ctx, tenant.FromContext(ctx), r.Body)
		if err != nil {
			return nil, fail(err)
		}
		return &result[*Out]{out}, nil
	})
}

// requestIn is a request with a body of JSON about a sandbox.
type requestIn[T any] struct {
	InSandbox
	Body T
}

// addIn adds an operation in a sandbox.
func addIn[In, Out any](a *API, op huma.Operation, do func(*service.Sandbox, context.Context, In) (*Out, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, r *requestIn[In]) (*result[*Out], error) {
		sb, err := a.service.Acquire(tenant.FromContext(ctx), r.ID)
		if err != nil {
			return nil, fail(err)
		}
		defer sb.Release()
		out, err := do(sb, ctx, r.Body)
		if err != nil {
			return nil, fail(err)
		}
		return &result[*Out]{out}, nil
	})
}
