package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/runtime/requestjson"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// runner is what the SDK and the Go client have in common.
type runner interface {
	Run(context.Context, string, runtime.RunOptions) (*runtime.Result, error)
	Exec(context.Context, string, runtime.RunOptions) (*runtime.Result, error)
	Command(context.Context, string, []string, runtime.RunOptions) (*runtime.Result, error)
	Evaluate(context.Context, string, runtime.EvaluateOptions) (*runtime.Evaluation, error)
}

// goDoor makes requests by the Go client, and by HTTP where its requests have another form; or by the SDK alone.
type goDoor struct {
	t      *testing.T
	web    *http.Client
	client *client.Client // nil: the SDK

	sandboxes map[string]runner // of the SDK
	used      map[string]bool   // operations that it has performed
}

// inGo are the operations that the Go client and the SDK have with the same results.
var inGo = []string{"run", "evaluate", "createSandbox", "runIn", "execIn", "commandIn", "evaluateIn", "pauseSandbox", "resumeSandbox", "makeFolder", "moveFile", "removeFile"}

// errOther is the error of a request that Go cannot express.
var errOther = errors.New("other")

// do makes a request. It returns false if the door has none like it.
func (d *goDoor) do(s step) (reply, bool) {
	d.t.Helper()
	in, err := operation.ByName(s.operation).Decode([]byte(s.in), nil)
	var v any
	if err == nil {
		v, err = d.perform(soon(d.t), s, in)
	} else {
		err = errOther
	}
	failed, refused := errors.AsType[*client.Error](err)
	switch {
	case errors.Is(err, errOther) && d.client != nil:
		return byHTTP(d.t, d.web, s), true
	case errors.Is(err, errOther):
		return reply{}, false
	}
	d.used[s.operation] = true
	switch {
	case refused:
		return reply{Code: failed.Code, Status: failed.Status}, true
	case err != nil && d.client != nil:
		d.t.Errorf("%s: %v", s.in, err)
	case err != nil:
		d.t.Logf("%s %s: %v", s.operation, s.in, err)
		return reply{Code: "refused"}, true
	}
	var r reply
	convert(d.t, v, &r.Result)
	if run, ok := r.Result.(map[string]any); ok {
		delete(run, "stdoutBytes")
		delete(run, "stderrBytes")
		if run["missing"] == nil {
			delete(run, "missing")
		}
	}
	return r, true
}

// inSDK returns the part of a reply of the server that the SDK has, too.
func inSDK(s step, want reply, ok bool) reply {
	switch {
	case !ok || s.operation == "writeFile" && want.Code == "": // it returns no description
		return reply{}
	case want.Code != "":
		return reply{Code: "refused"}
	}
	if result, ok := want.Result.(map[string]any); ok {
		result = maps.Clone(result)
		delete(result, "id")
		want.Result = result
	}
	return want
}

// perform performs an operation. The result has the form that HTTP has.
func (d *goDoor) perform(ctx context.Context, s step, in any) (any, error) {
	switch in := in.(type) {
	case *requestjson.SandboxRequest:
		return d.create(ctx, in)
	case *requestjson.EvaluateRequest:
		return evaluate(ctx, d.fresh(), in.Snippet)
	case *requestjson.RunRequest:
		return run(ctx, d.fresh().Run, in.Program)
	case *requestjson.ProgramIn:
		sb, err := d.find(in.Sandbox)
		switch {
		case err != nil:
			return nil, err
		case s.operation == "execIn":
			return run(ctx, sb.Exec, in.Program)
		}
		return run(ctx, sb.Run, in.Program)
	case *requestjson.CommandIn:
		sb, err := d.find(in.Sandbox)
		if err != nil {
			return nil, err
		}
		o, err := runOptions(in.Start)
		if err != nil {
			return nil, err
		}
		o.Args = nil // they are the command's
		return newRun(sb.Command(ctx, in.Command.Command, in.Args, o))
	case *requestjson.InSandbox:
		return nil, d.pause(ctx, s, in.Sandbox)
	case *requestjson.SnippetIn:
		sb, err := d.find(in.Sandbox)
		if err != nil {
			return nil, err
		}
		return evaluate(ctx, sb, in.Snippet)
	}
	return d.file(ctx, s, in)
}

// pause pauses or resumes a sandbox.
func (d *goDoor) pause(ctx context.Context, s step, id string) error {
	found, err := d.find(id)
	if err != nil {
		return err
	}
	sb := found.(interface {
		Pause(context.Context) error
		Resume(context.Context) error
	})
	switch s.operation {
	case "pauseSandbox":
		return sb.Pause(ctx)
	case "resumeSandbox":
		return sb.Resume(ctx)
	}
	return errOther
}

// fresh returns a sandbox for one run.
func (d *goDoor) fresh() runner {
	if d.client != nil {
		return clientRuns{d.client}
	}
	return harness.Create(d.t, runtime.Options{Launcher: runtime.LauncherZygote})
}

// clientRuns runs in sandboxes of their own.
type clientRuns struct{ *client.Client }

func (clientRuns) Exec(context.Context, string, runtime.RunOptions) (*runtime.Result, error) {
	return nil, errOther
}

func (clientRuns) Command(context.Context, string, []string, runtime.RunOptions) (*runtime.Result, error) {
	return nil, errOther
}

// create creates a sandbox of the client. For the SDK, its id is its number.
func (d *goDoor) create(ctx context.Context, in *requestjson.SandboxRequest) (any, error) {
	globals := map[string]any{}
	for name, value := range in.Globals {
		globals[name] = value
	}
	if in.IdleTimeoutMs != 0 {
		return nil, errOther
	}
	var limits runtime.Limits
	if in.Limits != nil {
		limits = runtime.Limits{Disk: in.Limits.Disk, Files: in.Limits.Files}
	}
	if d.client != nil {
		sb, err := d.client.Create(ctx, client.CreateOptions{Env: in.Env, Bindings: globals, Permissions: in.Permissions, Limits: limits, Detached: true})
		if err != nil {
			return nil, err
		}
		return sb.Info(ctx)
	}
	rt := harness.Create(d.t, runtime.Options{Env: in.Env, Bindings: globals, Permissions: in.Permissions, Limits: limits, Launcher: runtime.LauncherZygote})
	id := fmt.Sprintf("sdk-%d", len(d.sandboxes))
	d.sandboxes[id] = rt
	return map[string]any{"id": id, "isolation": "native", "processes": 0}, nil
}

// find returns a sandbox.
func (d *goDoor) find(id string) (runner, error) {
	if d.client != nil {
		return d.client.Sandbox(id), nil
	}
	if sb := d.sandboxes[id]; sb != nil {
		return sb, nil
	}
	return nil, errOther
}

// file performs an operation on files.
func (d *goDoor) file(ctx context.Context, s step, in any) (any, error) {
	var id, path string
	switch in := in.(type) {
	case *requestjson.WriteIn:
		id, path = in.Sandbox, in.Path
	case *requestjson.FolderIn:
		id, path = in.Sandbox, in.Path
	case *requestjson.RemoveIn:
		id, path = in.Sandbox, in.Path
	case *requestjson.MoveIn:
		id, path = in.Sandbox, in.From
	}
	sb, err := d.find(cmp.Or(id, "none"))
	if err != nil || path == "" {
		return nil, errOther
	}
	switch sb := sb.(type) {
	case *client.Sandbox:
		return nil, d.clientFile(ctx, sb.FS(), s, in)
	case *runtime.NodeRuntime:
		return nil, sdkFile(sb.FS(), s, in)
	}
	return nil, errOther
}

func (d *goDoor) clientFile(ctx context.Context, files *client.FS, s step, in any) error {
	switch in := in.(type) {
	case *requestjson.FolderIn:
		return files.Mkdir(ctx, in.Path, 0)
	case *requestjson.RemoveIn:
		if in.Recursive {
			return files.RemoveAll(ctx, in.Path)
		}
		return files.Remove(ctx, in.Path)
	case *requestjson.MoveIn:
		return files.Rename(ctx, in.From, in.To)
	}
	return errOther // HTTP describes the file that it has written
}

func sdkFile(files hostfs.Files, s step, in any) error {
	switch in := in.(type) {
	case *requestjson.WriteIn:
		mode, err := strconv.ParseUint(cmp.Or(in.Mode, "0"), 8, 16)
		if err != nil || mode > 0o777 {
			return errOther
		}
		return files.WriteFile(in.Path, []byte(s.data), hostfs.WriteOptions{Mode: fs.FileMode(mode), Parents: in.Parents})
	case *requestjson.FolderIn:
		return files.Mkdir(in.Path, 0)
	case *requestjson.RemoveIn:
		if in.Recursive {
			return files.RemoveAll(in.Path)
		}
		return files.Remove(in.Path)
	case *requestjson.MoveIn:
		return files.Rename(in.From, in.To)
	}
	return errOther
}

func run(ctx context.Context, do func(context.Context, string, runtime.RunOptions) (*runtime.Result, error), p requestjson.Program) (any, error) {
	o, err := runOptions(p.Start)
	if err != nil {
		return nil, err
	}
	o.Name = p.Name
	return newRun(do(ctx, p.Code, o))
}

func newRun(res *runtime.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return res, nil
}

func evaluate(ctx context.Context, sb runner, n requestjson.Snippet) (any, error) {
	globals := map[string]any{}
	for name, value := range n.Globals {
		globals[name] = value
	}
	e, err := sb.Evaluate(ctx, n.Code, runtime.EvaluateOptions{Globals: globals, Form: n.Form, MaxLogs: n.MaxLogs})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// runOptions returns the options of a run, and an error if Go cannot express them.
func runOptions(s requestjson.Start) (o runtime.RunOptions, err error) {
	o = runtime.RunOptions{Permissions: s.Permissions, Args: s.Args, Env: s.Env, Cwd: s.Cwd, Timeout: time.Duration(s.Ms) * time.Millisecond}
	if s.Stdin != "" {
		o.Stdin = strings.NewReader(s.Stdin)
	}
	if s.Max {
		return o, errOther
	}
	return o, nil
}
