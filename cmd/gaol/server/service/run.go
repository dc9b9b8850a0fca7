package service

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Run runs a program in a sandbox of its own.
func (s *Service) Run(ctx context.Context, t *tenant.Tenant, r RunRequest) (*resultjson.Run, error) {
	permissions := r.Permissions
	r.Permissions = nil // they are the sandbox's
	return once(ctx, s, t, r.Tree, permissions, r.Cwd, func(ctx context.Context, sb *Sandbox) (*resultjson.Run, error) {
		return sb.Run(ctx, r.Program)
	})
}

// Evaluate evaluates a snippet in a sandbox of its own.
func (s *Service) Evaluate(ctx context.Context, t *tenant.Tenant, r EvaluateRequest) (*resultjson.Evaluation, error) {
	e, err := s.EvaluateWith(ctx, t, r, func(*runtime.EvaluateOptions) {})
	if err != nil {
		return nil, err
	}
	return resultjson.NewEvaluation(e), nil
}

// EvaluateWith is Evaluate for clients with host functions: change may change the options.
func (s *Service) EvaluateWith(ctx context.Context, t *tenant.Tenant, r EvaluateRequest, change func(*runtime.EvaluateOptions)) (*runtime.Evaluation, error) {
	permissions := r.Permissions
	r.Permissions = nil
	return once(ctx, s, t, r.Tree, permissions, r.Cwd, func(ctx context.Context, sb *Sandbox) (*runtime.Evaluation, error) {
		return sb.evaluate(ctx, r.Snippet, change)
	})
}

// once calls do with a sandbox of its own, from the tenant's pool if it has the default options.
func once[R any](ctx context.Context, s *Service, t *tenant.Tenant, tree Tree, permissions json.RawMessage, cwd string, do func(context.Context, *Sandbox) (*R, error)) (_ *R, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	audit.Of(ctx).SetPermissions(permissions)
	o, done, err := s.options(t, tree, permissions, cwd)
	if err != nil {
		return nil, err
	}
	sb, err := s.openOnce(ctx, t, o, tree.isDefault() && len(permissions) == 0 && cwd == "")
	done()
	if err != nil {
		return nil, err
	}
	defer s.closeOnce(t, sb)
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
		return nil, convert(err)
	}
	rt, err := s.pools.get(ctx, t.Name, o)
	if err != nil || rt == nil {
		release()
		if err != nil {
			return nil, s.internal("create a sandbox", t, err)
		}
		return s.open(ctx, t, o)
	}
	unuse := s.tenants.use(t.Name) // the pool may be closed before it
	return &Sandbox{NodeRuntime: rt, owner: t.Name, account: account, service: s, close: func() error {
		defer release()
		defer unuse()
		return s.closing.do(rt.Close)
	}}, nil
}

// closeOnce closes the sandbox of one request in the background, so that the response does not
// wait.
func (s *Service) closeOnce(t *tenant.Tenant, sb *Sandbox) {
	s.work.Go(func() {
		if err := sb.close(); err != nil {
			s.log.Error("close a sandbox", "tenant", t.Name, "err", err)
		}
	})
}

// isDefault reports whether a sandbox from a pool will do.
func (t Tree) isDefault() bool {
	return t.Image == "" && t.Snapshot == "" && len(t.Files) == 0 && len(t.FileBytes) == 0 && t.Isolation == "" && t.Limits == nil && !t.ReadOnly &&
		t.Hostname == "" && len(t.Mounts) == 0 && t.NodeModules == NodeModules{} && len(t.HostPorts) == 0 && !t.BigInts
}

// formats are the module formats of requests.
var formats = map[string]runtime.ModuleFormat{"": runtime.FormatAuto, "auto": runtime.FormatAuto, "esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS, "detect": runtime.FormatDetect}

// Run runs a program in the sandbox.
func (sb *Sandbox) Run(ctx context.Context, p Program) (*resultjson.Run, error) {
	return sb.runProgram(ctx, KindRun, p, sb.NodeRuntime.Run)
}

// Exec is Run without a value.
func (sb *Sandbox) Exec(ctx context.Context, p Program) (*resultjson.Run, error) {
	return sb.runProgram(ctx, KindExec, p, sb.NodeRuntime.Exec)
}

func (sb *Sandbox) runProgram(ctx context.Context, kind string, p Program, run func(context.Context, string, runtime.RunOptions) (*runtime.Result, error)) (*resultjson.Run, error) {
	o, err := sb.programOptions(p)
	if err != nil {
		return nil, err
	}
	recordCode(ctx, p.Code, p.Permissions)
	return sb.run(ctx, kind, func(ctx context.Context) (*runtime.Result, error) { return run(ctx, p.Code, o) })
}

// Command runs a program of the image.
func (sb *Sandbox) Command(ctx context.Context, c Command) (*resultjson.Run, error) {
	o, err := sb.runOptions(c.Permissions, c.Env, c.Cwd, c.Stdin, c.TimeoutMs)
	if err != nil {
		return nil, err
	}
	recordCommand(ctx, c.Command, c.Args, c.Permissions)
	return sb.run(ctx, KindCommand, func(ctx context.Context) (*runtime.Result, error) {
		return sb.NodeRuntime.Command(ctx, c.Command, c.Args, o)
	})
}

func (sb *Sandbox) run(ctx context.Context, kind string, run func(context.Context) (*runtime.Result, error)) (*resultjson.Run, error) {
	var res *runtime.Result
	err := sb.admitted(ctx, doing[kind], func(ctx context.Context) (err error) {
		res, err = run(ctx)
		return err
	})
	sb.service.recordRun(ctx, kind, res, err)
	if err != nil {
		return nil, err
	}
	return resultjson.NewRun(res), nil
}

// admitted calls do when it is the tenant's turn, with a context that ends with the service.
func (sb *Sandbox) admitted(ctx context.Context, doing string, do func(context.Context) error) error {
	ctx, end, err := sb.service.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	l := sb.Limits()
	release, err := sb.account.Admit(ctx, l.Memory, l.CPUs)
	if err != nil {
		return convert(err)
	}
	defer release()
	return begun(sb.service.internal(doing, &tenant.Tenant{Name: sb.owner}, do(ctx)))
}

// Evaluate evaluates a snippet.
func (sb *Sandbox) Evaluate(ctx context.Context, n Snippet) (*resultjson.Evaluation, error) {
	e, err := sb.evaluate(ctx, n, func(*runtime.EvaluateOptions) {})
	if err != nil {
		return nil, err
	}
	return resultjson.NewEvaluation(e), nil
}

func (sb *Sandbox) evaluate(ctx context.Context, n Snippet, change func(*runtime.EvaluateOptions)) (*runtime.Evaluation, error) {
	o, err := sb.evaluateOptions(n)
	if err != nil {
		return nil, err
	}
	change(&o)
	audit.Of(ctx).SetCode(n.Code)
	audit.Of(ctx).SetPermissions(n.Permissions)
	var e *runtime.Evaluation
	err = sb.admitted(ctx, doing[KindEvaluate], func(ctx context.Context) (err error) {
		e, err = sb.NodeRuntime.Evaluate(ctx, n.Code, o)
		return err
	})
	sb.service.recordEvaluation(ctx, KindEvaluate, e, err)
	return e, err
}

func (sb *Sandbox) evaluateOptions(n Snippet) (o runtime.EvaluateOptions, err error) {
	o = runtime.EvaluateOptions{
		Globals: map[string]any{}, MaxOutput: cmp.Or(n.MaxOutput, 1<<20), MaxLogs: cmp.Or(n.MaxLogs, 100), MaxLogLength: cmp.Or(n.MaxLogLength, 1000),
		Env: n.Env, Cwd: n.Cwd, Form: n.Form,
	}
	for name, value := range n.Globals {
		o.Globals[name] = value
	}
	if o.Permissions, err = parsePermissions(n.Permissions); err != nil {
		return o, err
	}
	if err = checkLogs(o.MaxLogs, o.MaxLogLength); err != nil {
		return o, err
	}
	o.Timeout, err = sb.timeout(n.TimeoutMs)
	return o, err
}

func (sb *Sandbox) runOptions(permissions json.RawMessage, env map[string]string, cwd, stdin string, timeoutMs int64) (o runtime.RunOptions, err error) {
	o = runtime.RunOptions{Env: env, Cwd: cwd}
	if stdin != "" {
		o.Stdin = strings.NewReader(stdin)
	}
	if o.Permissions, err = parsePermissions(permissions); err != nil {
		return o, err
	}
	o.Timeout, err = sb.timeout(timeoutMs)
	return o, err
}

// timeout returns the time limit of a run; zero asks for the default. A trusted client has the same
// default, because it trusts its own code and not the guest's.
func (sb *Sandbox) timeout(asked int64) (time.Duration, error) {
	most := sb.service.settings.Load().RunTimeoutMs
	if asked == 0 {
		return min(runtime.DefaultTimeout, milliseconds(most)), nil
	}
	return bounded("timeoutMs", asked, most)
}
