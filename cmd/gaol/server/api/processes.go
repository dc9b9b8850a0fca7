package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// maxStdinBody bounds the body of a request that writes to a process, in bytes: JSON may need six
// for one.
const maxStdinBody = 8 << 20

// addProcesses adds the operations on processes.
func (a *API) addProcesses() {
	const all, one = "/v1/sandboxes/{id}/processes", "/v1/sandboxes/{id}/processes/{process}"
	missing := []int{http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity}
	spawn := operation("spawn", http.MethodPost, all, "Start a process that lives on", missing...)
	spawn.DefaultStatus = http.StatusCreated
	addIn(a, spawn, (*service.Sandbox).Spawn)
	withSandbox(a, operation("listProcesses", http.MethodGet, all, "List the processes, the oldest first", missing...),
		func(_ context.Context, sb *service.Sandbox, _ *InSandbox) (*result[processList], error) {
			return &result[processList]{processList{sb.SpawnedProcesses()}}, nil
		})
	withProcess(a, operation("getProcess", http.MethodGet, one, "Describe a process", missing...),
		func(_ context.Context, p *service.Process, _ *InProcess) (*result[*service.ProcessInfo], error) {
			return &result[*service.ProcessInfo]{p.Info()}, nil
		})
	withProcess(a, operation("waitProcess", http.MethodGet, one+"/wait", "Wait until a process has ended", missing...), wait)
	withProcess(a, operation("deleteProcess", http.MethodDelete, one, "Kill a process if it is active, and forget it", missing...),
		func(ctx context.Context, p *service.Process, _ *InProcess) (*empty, error) { return nil, p.Delete(ctx) })
	withProcess(a, operation("signalProcess", http.MethodPost, one+"/signal", "Send a signal to a process", missing...),
		func(_ context.Context, p *service.Process, r *signalRequest) (*empty, error) {
			return nil, p.Signal(r.Body.Signal, r.Body.Group)
		})
	resize := operation("resizeProcess", http.MethodPost, one+"/resize", "Change the size of a process's terminal", append(missing, http.StatusConflict)...)
	withProcess(a, resize, func(_ context.Context, p *service.Process, r *resizeRequest) (*empty, error) {
		return nil, p.Resize(r.Body.Rows, r.Body.Cols)
	})
	stdin := operation("writeProcess", http.MethodPost, one+"/stdin", "Write to a process's standard input, or close it", append(missing, http.StatusConflict, http.StatusRequestEntityTooLarge)...)
	stdin.MaxBodyBytes = maxStdinBody
	withProcess(a, stdin, write)
	a.addProcessEvents(operation("followProcess", http.MethodGet, one+"/events", "Follow a process's output and other events", missing...))
}

// processList is a list of processes.
type processList struct {
	Processes []*service.ProcessInfo `json:"processes"`
}

// withSandbox adds an operation on a process or context of a sandbox. Unlike those of addUse it does
// not delay the end of the server: it may wait for a process that ends with the server only.
func withSandbox[T any, In inSandbox[T], Out any](a *API, op huma.Operation, do func(context.Context, *service.Sandbox, In) (*Out, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *T) (*Out, error) {
		sb, err := a.service.Acquire(tenant.FromContext(ctx), In(in).sandbox().ID)
		if err != nil {
			return nil, fail(err)
		}
		defer sb.Release()
		out, err := do(ctx, sb, in)
		if err != nil {
			return nil, fail(err)
		}
		return out, nil
	})
}

// InProcess is a request about a process. It is exported because huma reads exported fields only.
type InProcess struct {
	InSandbox
	Process string `path:"process" maxLength:"64" doc:"The process."`
}

func (in InProcess) process() string { return in.Process }

// inProcess is a request about a process.
type inProcess[T any] interface {
	inSandbox[T]
	process() string
}

// withProcess adds an operation on a process.
func withProcess[T any, In inProcess[T], Out any](a *API, op huma.Operation, do func(context.Context, *service.Process, In) (*Out, error)) {
	withSandbox(a, op, func(ctx context.Context, sb *service.Sandbox, in In) (*Out, error) {
		p, err := sb.Process(in.process())
		if err != nil {
			return nil, err
		}
		return do(ctx, p, in)
	})
}

type waitRequest struct {
	InProcess
	TimeoutMs int64 `query:"timeoutMs" minimum:"0" maximum:"86400000" doc:"How long to wait. By default until the end."`
}

// wait waits for the end of a process. It describes the process in any case.
func wait(ctx context.Context, p *service.Process, r *waitRequest) (*result[*service.ProcessInfo], error) {
	if r.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	return &result[*service.ProcessInfo]{p.Wait(ctx)}, nil
}

type signalRequest struct {
	InProcess
	Body struct {
		Signal string `json:"signal" maxLength:"16" doc:"Its name, such as SIGTERM. SIGKILL ends the process with all its descendants."`
		Group  bool   `json:"group,omitempty" doc:"Send it to the process group that the process leads."`
	}
}

type resizeRequest struct {
	InProcess
	Body struct {
		Rows uint16 `json:"rows" minimum:"1" maximum:"65535" doc:"Height in characters."`
		Cols uint16 `json:"cols" minimum:"1" maximum:"65535" doc:"Width in characters."`
	}
}

type writeRequest struct {
	InProcess
	Body service.Input
}

// write writes to a process.
func write(ctx context.Context, p *service.Process, r *writeRequest) (*empty, error) {
	return nil, p.WriteStdin(ctx, r.Body)
}

type followRequest struct {
	InProcess
	After uint64 `header:"Last-Event-ID" doc:"The number of the last event that the client has got. By default the events begin with the oldest that is kept."`
}

// addProcessEvents adds the operation that follows a process.
func (a *API) addProcessEvents(op huma.Operation) {
	schema := eventSchema(a.huma.OpenAPI().Components.Schemas, processEvents, true)
	op.Responses = map[string]*huma.Response{
		"200": {Description: "OK", Content: map[string]*huma.MediaType{typeEvents: {Schema: schema}}},
		"204": {Description: "The client has got the last event."},
	}
	huma.Register(a.huma, op, func(ctx context.Context, r *followRequest) (*huma.StreamResponse, error) {
		t := tenant.FromContext(ctx)
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			_, w := humago.Unwrap(hc)
			if err := a.followProcess(hc.Context(), w, t, r); err != nil {
				ProblemOf(err).Write(w)
			}
		}}, nil
	})
}

// followProcess sends the events of a process. It returns an error if there is no response yet.
func (a *API) followProcess(ctx context.Context, w http.ResponseWriter, t *tenant.Tenant, r *followRequest) error {
	sb, err := a.service.Acquire(t, r.ID)
	if err != nil {
		return err
	}
	defer sb.Release()
	p, err := sb.Process(r.Process)
	if err != nil {
		return err
	}
	more, err := p.HasMore(r.After)
	if err != nil {
		return err
	}
	if !more {
		w.WriteHeader(http.StatusNoContent) // which makes an EventSource stop
		return nil
	}
	stream(ctx, w, 0, func(ctx context.Context, s *eventStream) error { return p.Follow(ctx, r.After, s.send) })
	return nil
}
