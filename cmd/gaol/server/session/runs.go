package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

func runOnce(t *task, p service.RunRequest) (any, error) {
	r, err := t.service.Run(t.ctx, t.tenant, p)
	if err != nil {
		return nil, err
	}
	return t.sendResult(r.Result()), nil
}

// evaluateOnceParams are those of evaluateOnce.
type evaluateOnceParams struct {
	service.EvaluateRequest
	FunctionParams
	MaxTimeout bool `json:"maxTimeout,omitempty" doc:"Instead of timeoutMs: as long as the server allows."`
	Logs       bool `json:"logs,omitempty" doc:"Send each line of the result's logs as it is printed."`
}

func evaluateOnce(t *task, p evaluateOnceParams) (_ any, err error) {
	if p.TimeoutMs, err = t.timeout(p.TimeoutMs, p.MaxTimeout); err != nil {
		return nil, err
	}
	globals, err := t.calls.bind(p.Globals, p.Functions)
	if err != nil {
		return nil, err
	}
	e, err := t.service.EvaluateWith(t.ctx, t.tenant, p.EvaluateRequest, func(o *runtime.EvaluateOptions) {
		o.Globals, o.MaxCalls, o.OnLog = globals, p.MaxCalls, t.onLog(p.Logs)
	})
	if err != nil {
		return nil, err
	}
	return resultjson.NewEvaluation(e), nil
}

// onLog returns a function that sends lines of logs, or nil if they are not wanted.
func (t *task) onLog(wanted bool) func(runtime.Log) {
	if !wanted {
		return nil
	}
	return func(l runtime.Log) {
		_ = t.event(resultjson.NewSessionEvent(runtime.LogEvent{Log: l})) // fails if the task ends
	}
}

// InSandbox says where a run is, and how it communicates.
type InSandbox struct {
	SandboxParams
	StdinStream bool `json:"stdinStream,omitempty" doc:"Standard input follows in frames."`
	Events      bool `json:"events,omitempty" doc:"Send output as it is printed, and events."`
	MaxTimeout  bool `json:"maxTimeout,omitempty" doc:"Instead of timeoutMs: as long as the server allows."`
}

// timeout returns the time limit that a request asks for.
func (t *task) timeout(asked int64, most bool) (int64, error) {
	switch {
	case most && asked != 0:
		return 0, service.Invalidf("timeoutMs and maxTimeout exclude each other")
	case most:
		return t.service.Settings().RunTimeoutMs, nil
	}
	return asked, nil
}

// programParams are those of run and exec.
type programParams struct {
	InSandbox
	service.Program
}

// commandParams are those of command.
type commandParams struct {
	InSandbox
	service.Command
}

func run(t *task, p programParams) (_ any, err error) {
	if p.TimeoutMs, err = t.timeout(p.TimeoutMs, p.MaxTimeout); err != nil {
		return nil, err
	}
	audit.Of(t.ctx).SetCode(p.Code)
	return t.inSandbox(p.InSandbox, service.KindRun, p.Permissions, func(ctx context.Context, sb *service.Sandbox, stdin io.Reader) (*runtime.Result, error) {
		o, err := sb.ProgramOptions(p.Program, stdin)
		if err != nil {
			return nil, err
		}
		o.Signals = t.takeSignals()
		if p.Events {
			return t.follow(sb.NodeRuntime.FollowRun(ctx, p.Code, o))
		}
		return sb.NodeRuntime.Run(ctx, p.Code, o)
	})
}

func exec(t *task, p programParams) (_ any, err error) {
	if p.TimeoutMs, err = t.timeout(p.TimeoutMs, p.MaxTimeout); err != nil {
		return nil, err
	}
	audit.Of(t.ctx).SetCode(p.Code)
	return t.inSandbox(p.InSandbox, service.KindExec, p.Permissions, func(ctx context.Context, sb *service.Sandbox, stdin io.Reader) (*runtime.Result, error) {
		o, err := sb.ProgramOptions(p.Program, stdin)
		if err != nil {
			return nil, err
		}
		o.Signals = t.takeSignals()
		if p.Events {
			return t.follow(sb.NodeRuntime.FollowExec(ctx, p.Code, o))
		}
		return sb.NodeRuntime.Exec(ctx, p.Code, o)
	})
}

func command(t *task, p commandParams) (_ any, err error) {
	if p.TimeoutMs, err = t.timeout(p.TimeoutMs, p.MaxTimeout); err != nil {
		return nil, err
	}
	audit.Of(t.ctx).SetCommand(p.Command.Command, p.Args)
	return t.inSandbox(p.InSandbox, service.KindCommand, p.Permissions, func(ctx context.Context, sb *service.Sandbox, stdin io.Reader) (*runtime.Result, error) {
		o, err := sb.CommandOptions(p.Command, stdin)
		if err != nil {
			return nil, err
		}
		o.Signals = t.takeSignals()
		if p.Events {
			return t.follow(sb.NodeRuntime.FollowCommand(ctx, p.Command.Command, p.Args, o))
		}
		return sb.NodeRuntime.Command(ctx, p.Command.Command, p.Args, o)
	})
}

// inSandbox makes a run, and sends its output. A run that the client has canceled has a result, too.
func (t *task) inSandbox(p InSandbox, kind string, permissions json.RawMessage, do func(context.Context, *service.Sandbox, io.Reader) (*runtime.Result, error)) (any, error) {
	var stdin io.Reader
	if p.StdinStream {
		stdin = t.stdin
	}
	sb, err := t.service.Acquire(t.tenant, p.Sandbox)
	if err != nil {
		return nil, err
	}
	defer sb.Release()
	audit.Of(t.ctx).SetSandbox(p.Sandbox)
	audit.Of(t.ctx).SetPermissions(permissions)
	var res *runtime.Result
	err = sb.Work(t.ctx, "make a run", func(ctx context.Context) (err error) {
		res, err = do(ctx, sb, stdin)
		sb.RecordRun(ctx, kind, res, err)
		return commandError(t.unlessCanceled(err, res != nil))
	})
	if err != nil {
		return nil, err
	}
	return t.sendResult(res), nil
}

// commandError returns an error about a program that the sandbox does not have as the tenant's.
func commandError(err error) error {
	switch {
	case err == nil, errors.Is(err, runtime.ErrClosed), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &service.Error{Code: service.NotFound, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return &service.Error{Code: service.Forbidden, Err: err}
	}
	return err
}

// unlessCanceled drops the error of a run that the client has canceled and that has a result.
func (t *task) unlessCanceled(err error, hasResult bool) error {
	if hasResult && errors.Is(context.Cause(t.ctx), errCanceled) && errors.Is(err, errCanceled) {
		return nil
	}
	return err
}

// sendResult sends the output of a run, and returns the rest.
func (t *task) sendResult(res *runtime.Result) *resultjson.SessionRun {
	copied := *res
	if t.output(protocol.KindStdout, res.Stdout) != nil {
		copied.Truncated.Stdout = true
	}
	if t.output(protocol.KindStderr, res.Stderr) != nil {
		copied.Truncated.Stderr = true
	}
	copied.Stdout, copied.Stderr = nil, nil
	return resultjson.NewSessionRun(&copied)
}

// follow sends the events of a run.
func (t *task) follow(s *runtime.Stream) (*runtime.Result, error) {
	t.pump(s.Events())
	return s.Result()
}

// pump sends events until the run has ended, or the client does not want them any more.
func (t *task) pump(events iter.Seq[runtime.Event]) {
	for e := range events {
		var err error
		switch e := e.(type) {
		case runtime.StdoutEvent:
			err = t.output(protocol.KindStdout, e.Data)
		case runtime.StderrEvent:
			err = t.output(protocol.KindStderr, e.Data)
		case runtime.ExitEvent:
		default:
			err = t.event(resultjson.NewSessionEvent(e))
		}
		if err != nil {
			return // which ends the run
		}
	}
}

// snippetParams are those of evaluate.
type snippetParams struct {
	SandboxParams
	FunctionParams
	service.Snippet
	MaxTimeout bool `json:"maxTimeout,omitempty" doc:"Instead of timeoutMs: as long as the server allows."`
	Logs       bool `json:"logs,omitempty" doc:"Send each line of the result's logs as it is printed."`
	Events     bool `json:"events,omitempty" doc:"Send all events; the result has no logs then."`
}

// FunctionParams are functions of one snippet.
type FunctionParams struct {
	Functions []protocol.Function `json:"functions,omitempty" maxItems:"1024" doc:"Functions of the client that the snippet can call."`
	MaxCalls  int                 `json:"maxCalls,omitempty" minimum:"0" maximum:"100000" doc:"Calls of functions. By default 50."`
}

func evaluate(t *task, p snippetParams) (_ any, err error) {
	if p.TimeoutMs, err = t.timeout(p.TimeoutMs, p.MaxTimeout); err != nil {
		return nil, err
	}
	sb, err := t.service.Acquire(t.tenant, p.Sandbox)
	if err != nil {
		return nil, err
	}
	defer sb.Release()
	o, err := t.snippetOptions(sb, p.Snippet, p.FunctionParams, p.Logs)
	if err != nil {
		return nil, err
	}
	t.recordSnippet(p.Sandbox, p.Snippet)
	var e *runtime.Evaluation
	err = sb.Work(t.ctx, "evaluate a snippet", func(ctx context.Context) (err error) {
		if p.Events {
			s := sb.NodeRuntime.FollowEvaluate(ctx, p.Code, o)
			t.pump(s.Events())
			e, err = s.Evaluation()
		} else {
			e, err = sb.NodeRuntime.Evaluate(ctx, p.Code, o)
		}
		sb.RecordEvaluation(ctx, service.KindEvaluate, e, err)
		return t.unlessCanceled(err, e != nil)
	})
	if err != nil {
		return nil, err
	}
	return resultjson.NewEvaluation(e), nil
}

// recordSnippet adds a snippet to the audit log.
func (t *task) recordSnippet(sandbox string, n service.Snippet) {
	r := audit.Of(t.ctx)
	r.SetSandbox(sandbox)
	if n.Code != "" { // a context has none
		r.SetCode(n.Code)
	}
	r.SetPermissions(n.Permissions)
}

// snippetOptions returns the options of a snippet that calls functions of the client.
func (t *task) snippetOptions(sb *service.Sandbox, n service.Snippet, f FunctionParams, logs bool) (o runtime.EvaluateOptions, err error) {
	o, err = sb.SnippetOptions(n)
	if err != nil {
		return o, err
	}
	o.MaxCalls = f.MaxCalls
	if o.Globals, err = t.calls.bind(n.Globals, f.Functions); err != nil {
		return o, err
	}
	o.OnLog = t.onLog(logs)
	return o, nil
}
