package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/resultjson"
)

// addContexts adds the operations on contexts.
func (a *API) addContexts() {
	const all, one = "/v1/sandboxes/{id}/contexts", "/v1/sandboxes/{id}/contexts/{context}"
	missing := []int{http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity}
	create := operation("createContext", http.MethodPost, all, "Create a context, which keeps the declarations of its cells", missing...)
	create.DefaultStatus = http.StatusCreated
	addIn(a, create, (*service.Sandbox).NewContext)
	withSandbox(a, operation("listContexts", http.MethodGet, all, "List the contexts, the oldest first", missing...),
		func(_ context.Context, sb *service.Sandbox, _ *InSandbox) (*result[contextList], error) {
			return &result[contextList]{contextList{sb.Contexts()}}, nil
		})
	withContext(a, operation("getContext", http.MethodGet, one, "Describe a context", missing...),
		func(_ context.Context, c *service.Context, _ *InContext) (*result[*service.ContextInfo], error) {
			return &result[*service.ContextInfo]{c.Info()}, nil
		})
	withContext(a, operation("deleteContext", http.MethodDelete, one, "End a context, and forget it", missing...),
		func(_ context.Context, c *service.Context, _ *InContext) (*empty, error) { return nil, c.Delete() })
	withContext(a, operation("interruptContext", http.MethodPost, one+"/interrupt", "Interrupt the current cell and those that wait", missing...),
		func(_ context.Context, c *service.Context, _ *InContext) (*result[interrupted], error) {
			return &result[interrupted]{interrupted{c.Interrupt()}}, nil
		})
	withContext(a, operation("completeInContext", http.MethodPost, one+"/complete", "List the names that can complete a line of code", missing...),
		func(ctx context.Context, c *service.Context, r *completeRequest) (*result[*service.Completion], error) {
			done, err := c.Complete(ctx, r.Body.Line)
			return &result[*service.Completion]{done}, err
		})
	a.addCells(operation("evaluateCell", http.MethodPost, one+"/cells", "Evaluate a cell after the earlier ones", missing...))
}

// contextList is a list of contexts.
type contextList struct {
	Contexts []*service.ContextInfo `json:"contexts"`
}

// interrupted says how many cells were interrupted.
type interrupted struct {
	Cells int `json:"cells" doc:"How many there were."`
}

// InContext is a request about a context. It is exported because huma reads exported fields only.
type InContext struct {
	InSandbox
	Context string `path:"context" maxLength:"64" doc:"The context."`
}

func (in InContext) context() string { return in.Context }

// inContext is a request about a context.
type inContext[T any] interface {
	inSandbox[T]
	context() string
}

// withContext adds an operation on a context.
func withContext[T any, In inContext[T], Out any](a *API, op huma.Operation, do func(context.Context, *service.Context, In) (*Out, error)) {
	withSandbox(a, op, func(ctx context.Context, sb *service.Sandbox, in In) (*Out, error) {
		c, err := sb.Context(in.context())
		if err != nil {
			return nil, err
		}
		return do(ctx, c, in)
	})
}

type completeRequest struct {
	InContext
	Body struct {
		Line string `json:"line" maxLength:"65536" doc:"Code up to the cursor."`
	}
}

type cellRequest struct {
	InContext
	Negotiated
	Body service.Cell
}

// addCells adds the operation that evaluates a cell.
func (a *API) addCells(op huma.Operation) {
	describe[resultjson.Evaluation](a, &op, cellEvents)
	huma.Register(a.huma, op, func(ctx context.Context, r *cellRequest) (*huma.StreamResponse, error) {
		t := tenant.FromContext(ctx)
		return respond(ctx, r.Negotiated, func(ctx context.Context, to service.Sink) (*resultjson.Evaluation, error) {
			sb, err := a.service.Acquire(t, r.ID)
			if err != nil {
				return nil, err
			}
			defer sb.Release()
			c, err := sb.Context(r.Context)
			if err != nil {
				return nil, err
			}
			return c.Evaluate(ctx, r.Body, to)
		})
	})
}
