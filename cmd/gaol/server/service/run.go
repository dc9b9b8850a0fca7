package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/isolation"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Streams carry data between a run and its client in addition to the request and the result. The zero
// value has none.
type Streams struct {
	// Stdin replaces the standard input of the request, unless it is nil.
	Stdin io.Reader

	// To receives the events of the run, unless it is nil. They include its output, which the
	// result then lacks.
	To Sink

	// OnOutput is called with each piece of the output of a run that To does not receive. It may be nil.
	OnOutput func([]byte)

	// BoundsLogs lets To bound the lines of an evaluation, instead of its request.
	BoundsLogs bool

	// Signals are sent to the run.
	Signals <-chan syscall.Signal

	// Bind adds functions of the client to the variables of a sandbox, a context or a snippet. It may
	// be nil. Commands are programs that the client implements. Calls bounds the calls of both.
	Bind     func(globals map[string]json.RawMessage) (map[string]any, error)
	Commands map[string]runtime.HostCommand
	Calls    runtime.CallLimits
}

// bind returns variables as the SDK has them, with the client's functions.
func (s Streams) bind(values map[string]json.RawMessage) (map[string]any, error) {
	if s.Bind != nil {
		return s.Bind(values)
	}
	if len(values) == 0 {
		return nil, nil
	}
	all := make(map[string]any, len(values))
	for name, value := range values {
		all[name] = value
	}
	return all, nil
}

// Run runs a program in a new sandbox.
func (s *Service) Run(ctx context.Context, t *tenant.Tenant, r requestjson.RunRequest, streams Streams) (*runtime.Result, error) {
	return once(ctx, s, t, fresh{r.Tree, &r.Permissions, r.Cwd}, func(ctx context.Context, sb *Sandbox) (*runtime.Result, error) {
		return sb.Run(ctx, r.Program, streams)
	})
}

// Command runs a program of the image in a new sandbox.
func (s *Service) Command(ctx context.Context, t *tenant.Tenant, r requestjson.CommandRequest, streams Streams) (*runtime.Result, error) {
	return once(ctx, s, t, fresh{r.Tree, &r.Permissions, r.Cwd}, func(ctx context.Context, sb *Sandbox) (*runtime.Result, error) {
		return sb.Command(ctx, r.Command, streams)
	})
}

// Evaluate evaluates a snippet in a new sandbox.
func (s *Service) Evaluate(ctx context.Context, t *tenant.Tenant, r requestjson.EvaluateRequest, streams Streams) (*runtime.Evaluation, error) {
	return once(ctx, s, t, fresh{r.Tree, &r.Permissions, r.Cwd}, func(ctx context.Context, sb *Sandbox) (*runtime.Evaluation, error) {
		return sb.Evaluate(ctx, r.Snippet, streams)
	})
}

// fresh describes the sandbox of one request, which takes over the permissions of the run.
type fresh struct {
	tree        requestjson.Tree
	permissions *json.RawMessage
	cwd         string
}

// once calls do with a new sandbox, from the tenant's pool if the options are the default.
func once[R any](ctx context.Context, s *Service, t *tenant.Tenant, f fresh, do func(context.Context, *Sandbox) (*R, error)) (*R, error) {
	permissions := *f.permissions
	*f.permissions = nil
	audit.Of(ctx).SetPermissions(permissions)
	o, done, err := s.options(t, f.tree, permissions, f.cwd)
	if err != nil {
		return nil, err
	}
	sb, err := s.openOnce(ctx, t, o, isDefault(f.tree) && len(permissions) == 0 && f.cwd == "")
	done()
	if err != nil {
		return nil, err
	}
	// In the background, so that the response does not wait.
	defer s.work.Go(func() { s.closeLogged(sb) })
	return do(ctx, sb)
}

// openOnce returns a sandbox for one request.
func (s *Service) openOnce(ctx context.Context, t *tenant.Tenant, o runtime.Options, pooled bool) (*Sandbox, error) {
	if !pooled {
		return s.open(ctx, t, o)
	}
	account := s.Account(t)
	release, err := account.Reserve(runtime.DefaultLimits().Disk)
	if err != nil {
		return nil, err
	}
	var rt *runtime.NodeRuntime
	err = s.pools.Use(poolKey{s.settings.Load(), t.Name}, func() (*runtime.Pool, func() error, error) { return s.newPool(t, o) }, func(p *runtime.Pool) (err error) {
		rt, err = p.Get(ctx)
		return err
	})
	if err != nil {
		release()
		if errors.Is(err, errManyShared) {
			return s.open(ctx, t, o)
		}
		return nil, err
	}
	return s.newSandbox(t, rt, release), nil
}

// poolKey identifies a pool of sandboxes with default options. Each tenant has its own, because a sandbox is created in
// its tenant's cgroup.
type poolKey struct {
	settings *settings.Settings
	tenant   string
}

// poolSize is how many sandboxes are kept for each active tenant.
const poolSize = 4

// newPool returns a pool of sandboxes of a tenant, and how to close it.
func (s *Service) newPool(t *tenant.Tenant, o runtime.Options) (_ *runtime.Pool, closeAll func() error, err error) {
	done := s.tenants.use(t.Name)
	p, err := runtime.NewPool(o, runtime.PoolOptions{Size: poolSize, Park: o.Isolation.Check(isolation.Park) == nil})
	if err != nil {
		done()
		return nil, nil, err
	}
	return p, func() error {
		defer done()
		return s.closing.do(p.Close)
	}, nil
}

// isDefault reports whether a sandbox from a pool will do.
func isDefault(t requestjson.Tree) bool {
	return t.Image == "" && t.Snapshot == "" && len(t.Files) == 0 && len(t.FileBytes) == 0 && t.Isolation == "" && t.Limits == nil && !t.ReadOnly &&
		t.Hostname == "" && len(t.Mounts) == 0 && t.NodeModules == requestjson.NodeModules{} && len(t.HostPorts) == 0 && !t.BigInts
}

// formats are the module formats of requests.
var formats = map[string]runtime.ModuleFormat{"": runtime.FormatAuto, "auto": runtime.FormatAuto, "esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS, "detect": runtime.FormatDetect}

// Run runs a program in the sandbox. If ctx ends the run, the error is beside the result so far, as for
// all runs.
func (sb *Sandbox) Run(ctx context.Context, p requestjson.Program, s Streams) (*runtime.Result, error) {
	return sb.runProgram(ctx, KindRun, p, s, sb.runtime.Run, sb.runtime.FollowRun)
}

// Exec is Run without a value.
func (sb *Sandbox) Exec(ctx context.Context, p requestjson.Program, s Streams) (*runtime.Result, error) {
	return sb.runProgram(ctx, KindExec, p, s, sb.runtime.Exec, sb.runtime.FollowExec)
}

func (sb *Sandbox) runProgram(ctx context.Context, kind string, p requestjson.Program, s Streams,
	run func(context.Context, string, runtime.RunOptions) (*runtime.Result, error), follow func(context.Context, string, runtime.RunOptions) *runtime.Stream,
) (*runtime.Result, error) {
	o, err := sb.runOptions(p.Start, s)
	if err != nil {
		return nil, err
	}
	o.Name, o.Format, o.Args = p.Name, formats[p.Format], p.Args
	recordCode(ctx, p.Code, p.Permissions)
	exit := sb.perform(ctx, kind, s, func(exit *runtime.ExitEvent) {
		exit.Result, exit.Err = run(ctx, p.Code, o)
	}, func() *runtime.Stream { return follow(ctx, p.Code, o) })
	return exit.Result, exit.Err
}

// Command runs a program of the image.
func (sb *Sandbox) Command(ctx context.Context, c requestjson.Command, s Streams) (*runtime.Result, error) {
	o, err := sb.runOptions(c.Start, s)
	if err != nil {
		return nil, err
	}
	recordCommand(ctx, c.Command, c.Args, c.Permissions)
	exit := sb.perform(ctx, KindCommand, s, func(exit *runtime.ExitEvent) {
		exit.Result, exit.Err = sb.runtime.Command(ctx, c.Command, c.Args, o)
	}, func() *runtime.Stream { return sb.runtime.FollowCommand(ctx, c.Command, c.Args, o) })
	return exit.Result, exit.Err
}

// Evaluate evaluates a snippet. The evaluation has its logs also if the events have them.
func (sb *Sandbox) Evaluate(ctx context.Context, n requestjson.Snippet, s Streams) (*runtime.Evaluation, error) {
	o, err := sb.evaluateOptions(n.Cell, s)
	if err != nil {
		return nil, err
	}
	o.Env, o.Cwd = n.Env, n.Cwd
	if o.Permissions, err = parsePermissions(n.Permissions); err != nil {
		return nil, err
	}
	recordCode(ctx, n.Code, n.Permissions)
	exit := sb.perform(ctx, KindEvaluate, s, func(exit *runtime.ExitEvent) {
		exit.Evaluation, exit.Err = sb.runtime.Evaluate(ctx, n.Code, o)
	}, func() *runtime.Stream { return sb.runtime.FollowEvaluate(ctx, n.Code, o) })
	return exit.Evaluation, exit.Err
}

// perform runs a program when it is the tenant's turn, or follows it for a client that wants events, and records how it
// ended.
func (sb *Sandbox) perform(ctx context.Context, kind string, s Streams, run func(*runtime.ExitEvent), follow func() *runtime.Stream) (exit runtime.ExitEvent) {
	l := sb.Limits()
	release, err := sb.account.Admit(ctx, l.Memory, l.CPUs)
	if exit.Err = err; err == nil {
		defer release()
		if s.To == nil {
			run(&exit)
		} else {
			exit = deliver(follow(), s.To)
		}
	}
	sb.service.Record(ctx, kind, exit)
	return exit
}

// maxLogs bounds the lines that an evaluation keeps, in characters.
const maxLogs = 16 << 20

func (sb *Sandbox) evaluateOptions(c requestjson.Cell, s Streams) (o runtime.EvaluateOptions, err error) {
	o = runtime.EvaluateOptions{
		MaxOutput: cmp.Or(c.MaxOutput, 1<<20), MaxLogs: cmp.Or(c.MaxLogs, 100), MaxLogLength: cmp.Or(c.MaxLogLength, 1000),
		Form: c.Form, MaxCalls: s.Calls.Calls,
	}
	if !s.BoundsLogs && o.MaxLogs*o.MaxLogLength > maxLogs {
		return o, Refuse(Invalid, "maxLogs: %d lines of %d characters are more than %d characters", o.MaxLogs, o.MaxLogLength, maxLogs)
	}
	if o.Globals, err = s.bind(c.Globals); err != nil {
		return o, err
	}
	o.Timeout, err = sb.timeout(c.Timeout)
	return o, err
}

func (sb *Sandbox) runOptions(r requestjson.Start, s Streams) (o runtime.RunOptions, err error) {
	o = runtime.RunOptions{Env: r.Env, Cwd: r.Cwd, Signals: s.Signals, OnStdout: s.OnOutput, OnStderr: s.OnOutput}
	switch {
	case s.Stdin != nil && r.Stdin != "":
		return o, Refuse(Invalid, "stdin: it is also streamed")
	case s.Stdin != nil:
		o.Stdin = s.Stdin
	case r.Stdin != "":
		o.Stdin = strings.NewReader(r.Stdin)
	}
	if o.Permissions, err = parsePermissions(r.Permissions); err != nil {
		return o, err
	}
	o.Timeout, err = sb.timeout(r.Timeout)
	return o, err
}

// timeout returns the time limit of a run. A trusted client gets the same default, because it trusts its
// own code and not the guest's.
func (sb *Sandbox) timeout(t requestjson.Timeout) (time.Duration, error) {
	most := sb.service.settings.Load().RunTimeoutMs
	switch {
	case t.Max && t.Ms != 0:
		return 0, Refuse(Invalid, "timeoutMs and maxTimeout exclude each other")
	case t.Ms == 0 && !t.Max:
		return min(runtime.DefaultTimeout, milliseconds(most)), nil
	}
	return bounded("timeoutMs", t.Ms, most)
}

// Normalize turns code that a model wrote into an ES module, as [runtime.Normalize] does. It counts as a
// run, because it takes the server's processor time.
func (s *Service) Normalize(ctx context.Context, t *tenant.Tenant, code string) (*resultjson.Normalized, error) {
	release, err := s.Account(t).Admit(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	defer release()
	module, err := runtime.Normalize(code)
	if failed, ok := errors.AsType[*runtime.GuestError](err); ok {
		return &resultjson.Normalized{Error: &runtime.GuestError{Name: failed.Name, Message: failed.Message, Stack: failed.Stack, Frame: failed.Frame}}, nil
	}
	return &resultjson.Normalized{Code: module}, err
}
