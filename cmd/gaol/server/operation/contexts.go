package operation

import (
	"context"
	"net/http"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// pointerInContext is a pointer to an input with the name of a context.
type pointerInContext[T any] interface {
	pointerIn[T]
	InContextID() string
}

// Outputs of operations on contexts.
type (
	contextList struct {
		Contexts []*resultjson.ContextInfo `json:"contexts"`
	}
	interrupted struct {
		Cells int `json:"cells" doc:"How many there were."`
	}
)

// defineContext completes the description of an operation on a context.
func defineContext[In any, P pointerInContext[In], Out any](o Operation, do func(context.Context, *Call, *service.Context, *In) (Out, error)) *Operation {
	o.Tag = "contexts"
	return defineIn[In, P](o, func(ctx context.Context, c *Call, sb *service.Sandbox, in *In) (out Out, err error) {
		found, err := sb.Context(P(in).InContextID())
		if err != nil {
			return out, err
		}
		return do(ctx, c, found, in)
	})
}

func contexts() []*Operation {
	const all, one = "/v1/sandboxes/{id}/contexts", "/v1/sandboxes/{id}/contexts/{context}"
	return []*Operation{
		defineIn(Operation{
			Name: "createContext", Tag: "contexts", Method: http.MethodPost, Path: all, Status: http.StatusCreated,
			Summary: "Create a context, which keeps the declarations of its cells",
			Doc:     "Starts a Node process that keeps the declarations of its cells until it is deleted, idle for some time, or exits.",
		}, createContext),
		defineIn(Operation{
			Name: "listContexts", Tag: "contexts", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the contexts, the oldest first",
			Doc:     "Lists contexts, also those that have ended a short time ago.",
		}, func(_ context.Context, _ *Call, sb *service.Sandbox, _ *requestjson.InSandbox) (contextList, error) {
			return contextList{sb.Contexts()}, nil
		}),
		defineContext(Operation{
			Name: "getContext", Method: http.MethodGet, Path: one, Query: true,
			Summary: "Describe a context",
			Doc:     "Says whether the context is active, or why it has ended.",
		}, func(_ context.Context, _ *Call, found *service.Context, _ *requestjson.InContext) (*resultjson.ContextInfo, error) {
			return found.Info(), nil
		}),
		defineContext(Operation{
			Name: "deleteContext", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "End a context, and forget it",
			Doc:     "Ends the context and cancels its current cell.",
		}, func(_ context.Context, _ *Call, found *service.Context, _ *requestjson.InContext) (none, error) {
			return none{}, found.Delete()
		}),
		defineContext(Operation{
			Name: "interruptContext", Method: http.MethodPost, Path: one + "/interrupt",
			Summary: "Interrupt the current cell and those that wait",
			Doc:     "Interrupts the current cell. Mostly the context survives.",
		}, func(_ context.Context, _ *Call, found *service.Context, _ *requestjson.InContext) (interrupted, error) {
			return interrupted{found.Interrupt()}, nil
		}),
		defineContext(Operation{
			Name: "completeInContext", Method: http.MethodPost, Path: one + "/complete",
			Summary: "List the names that can complete a line of code",
			Doc:     "Lists names that can complete the last name of a line of code. It calls no code of the guest.",
		}, func(ctx context.Context, _ *Call, found *service.Context, in *requestjson.CompleteIn) (*resultjson.Completion, error) {
			return found.Complete(ctx, in.Line)
		}),
		defineContext(Operation{
			Name: "evaluateCell", Method: http.MethodPost, Path: one + "/cells", Events: cellEvents,
			Summary: "Evaluate a cell after the earlier ones",
			Doc:     "Evaluates code that sees the top-level declarations of earlier cells. Cells are evaluated one after another." + cancelText,
		}, func(ctx context.Context, c *Call, found *service.Context, in *requestjson.CellIn) (*resultjson.Evaluation, error) {
			if c.Bind != nil {
				return nil, service.Refuse(service.Invalid, "functions: a context has them, not its cells")
			}
			return found.Evaluate(ctx, in.Cell, c.Streams)
		}),
	}
}

// createContext starts a context. If the client wants events, the request lasts until the context has ended,
// and the end of the request ends the context.
func createContext(ctx context.Context, c *Call, sb *service.Sandbox, in *requestjson.ContextIn) (*resultjson.ContextInfo, error) {
	created, err := sb.NewContext(ctx, in.ContextRequest, c.Streams)
	switch {
	case err != nil:
		return nil, err
	case c.To != nil:
		return created.Attend(ctx, c.Streams)
	}
	return created.Info(), nil
}
