package operation

import (
	"context"
	"net/http"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// ProcessList is a list of processes.
type ProcessList struct {
	Processes []*resultjson.ProcessInfo `json:"processes"`
}

// maxStdinBody bounds the body of a request that writes to a process, in bytes: JSON may need six
// for one.
const maxStdinBody = 8 << 20

// defineProcess completes the description of an operation on a process.
func defineProcess[In, Out any](o Operation, do func(context.Context, *Call, *service.Process, *In) (Out, error)) *Operation {
	o.Tag = "processes"
	return defineOf(o, func(sb *service.Sandbox, in any) (*service.Process, error) {
		return sb.Process(in.(interface{ InProcessID() string }).InProcessID())
	}, do)
}

func processes() []*Operation {
	const all, one = "/v1/sandboxes/{id}/processes", "/v1/sandboxes/{id}/processes/{process}"
	return []*Operation{
		defineIn(Operation{
			Name: "spawn", Tag: "processes", Method: http.MethodPost, Path: all, Status: http.StatusCreated, detached: true,
			Summary: "Start a process that lives on",
			Doc:     "Starts a process with pipes or a terminal. It ends with its sandbox at the latest, and counts as a run for its whole life.",
		}, spawn),
		defineIn(Operation{
			Name: "listProcesses", Tag: "processes", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the processes, the oldest first",
			Doc:     "Lists processes, including recently ended ones.",
		}, func(_ context.Context, _ *Call, sb *service.Sandbox, _ *requestjson.InSandbox) (ProcessList, error) {
			return ProcessList{sb.SpawnedProcesses()}, nil
		}),
		defineProcess(Operation{
			Name: "getProcess", Method: http.MethodGet, Path: one, Query: true,
			Summary: "Describe a process",
			Doc:     "Describes the process: whether it is active, its usage and, after its end, its result.",
		}, func(_ context.Context, _ *Call, p *service.Process, _ *requestjson.InProcess) (*resultjson.ProcessInfo, error) {
			return p.Info(), nil
		}),
		defineProcess(Operation{
			Name: "waitProcess", Method: http.MethodGet, Path: one + "/wait", Query: true, detached: true,
			Summary: "Wait until a process has ended",
			Doc:     "Returns when the process has ended, or after the timeout.",
		}, wait),
		defineProcess(Operation{
			Name: "deleteProcess", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "Kill a process if it is active, and forget it",
			Doc:     "Kills the process and its descendants, and forgets its result.",
		}, func(ctx context.Context, _ *Call, p *service.Process, _ *requestjson.InProcess) (none, error) {
			return none{}, p.Delete(ctx)
		}),
		defineProcess(Operation{
			Name: "signalProcess", Method: http.MethodPost, Path: one + "/signal",
			Summary: "Send a signal to a process",
			Doc:     "Sends a signal to the process, or to its process group.",
		}, func(_ context.Context, _ *Call, p *service.Process, in *requestjson.SignalIn) (none, error) {
			return none{}, p.Signal(in.Signal, in.Group)
		}),
		defineProcess(Operation{
			Name: "resizeProcess", Method: http.MethodPost, Path: one + "/resize", Errors: []int{http.StatusConflict},
			Summary: "Change the size of a process's terminal",
			Doc:     "Changes the size of the terminal. The foreground processes get SIGWINCH.",
		}, func(_ context.Context, _ *Call, p *service.Process, in *requestjson.ResizeIn) (none, error) {
			return none{}, p.Resize(in.Rows, in.Cols)
		}),
		defineProcess(Operation{
			Name: "writeProcess", Method: http.MethodPost, Path: one + "/stdin", MaxBody: maxStdinBody, detached: true,
			Errors:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
			Summary: "Write to a process's standard input, or close it",
			Doc:     "Writes to standard input and waits until the process has room for it.",
		}, func(ctx context.Context, _ *Call, p *service.Process, in *requestjson.StdinIn) (none, error) {
			return none{}, p.WriteStdin(ctx, in.Input)
		}),
		defineProcess(Operation{
			Name: "followProcess", Method: http.MethodGet, Path: one + "/events", Query: true, Events: processEvents, EventsOnly: true, detached: true,
			Summary: "Follow a process's output and other events",
			Doc:     "Streams output and other events. Last-Event-ID continues after an event; a gap event means that some have been dropped.",
		}, func(ctx context.Context, c *Call, p *service.Process, in *requestjson.FollowIn) (*resultjson.ProcessInfo, error) {
			if c.To == nil {
				return nil, service.Refuse(service.Invalid, "events: a client that follows a process wants them")
			}
			if last := p.Info().LastEventID; in.After > last {
				return nil, service.Refuse(service.Invalid, "event %d: the last one is %d", in.After, last)
			}
			err := p.Follow(ctx, in.After, c.Streams)
			return p.Info(), err
		}),
	}
}

// spawn starts a process. If the client wants events, the request lasts until the process has ended, and the
// end of the request ends the process.
func spawn(ctx context.Context, c *Call, sb *service.Sandbox, in *requestjson.SpawnIn) (*resultjson.ProcessInfo, error) {
	if c.To != nil && in.WhenFull == "" {
		in.WhenFull = "wait"
	}
	p, err := sb.Spawn(ctx, in.ProcessRequest)
	switch {
	case err != nil:
		return nil, err
	case c.To != nil:
		return p.Attend(ctx, c.Streams)
	}
	return p.Info(), nil
}

// wait waits for the end of a process. It describes the process in any case.
func wait(ctx context.Context, _ *Call, p *service.Process, in *requestjson.WaitIn) (*resultjson.ProcessInfo, error) {
	if in.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(in.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	return p.Wait(ctx), nil
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
func defineContext[In, Out any](o Operation, do func(context.Context, *Call, *service.Context, *In) (Out, error)) *Operation {
	o.Tag = "contexts"
	return defineOf(o, func(sb *service.Sandbox, in any) (*service.Context, error) {
		return sb.Context(in.(interface{ InContextID() string }).InContextID())
	}, do)
}

func contexts() []*Operation {
	const all, one = "/v1/sandboxes/{id}/contexts", "/v1/sandboxes/{id}/contexts/{context}"
	return []*Operation{
		defineIn(Operation{
			Name: "createContext", Tag: "contexts", Method: http.MethodPost, Path: all, Status: http.StatusCreated, detached: true,
			Summary: "Create a context, which keeps the declarations of its cells",
			Doc:     "Starts a Node process that keeps the declarations of its cells until it is deleted, idle for some time, or exits.",
		}, createContext),
		defineIn(Operation{
			Name: "listContexts", Tag: "contexts", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the contexts, the oldest first",
			Doc:     "Lists contexts, including recently ended ones.",
		}, func(_ context.Context, _ *Call, sb *service.Sandbox, _ *requestjson.InSandbox) (contextList, error) {
			return contextList{sb.Contexts()}, nil
		}),
		defineContext(Operation{
			Name: "getContext", Method: http.MethodGet, Path: one, Query: true,
			Summary: "Describe a context",
			Doc:     "Describes the context: whether it is active, or why it has ended.",
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
			Summary: "Interrupt the current cell and waiting ones",
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
		}, func(ctx context.Context, c *Call, found *service.Context, in *requestjson.CellIn) (*runtime.Evaluation, error) {
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
