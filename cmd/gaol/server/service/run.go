package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Run runs a program in a new sandbox.
func (s *Service) Run(ctx context.Context, c *Call, r *requestjson.RunRequest) (*runtime.Result, error) {
	in := &requestjson.ProgramIn{Program: r.Program}
	return once(ctx, c, fresh{r.Tree, &in.Permissions, in.Cwd}, in, (*Sandbox).Run)
}

// Command runs a program of the image in a new sandbox.
func (s *Service) Command(ctx context.Context, c *Call, r *requestjson.CommandRequest) (*runtime.Result, error) {
	in := &requestjson.CommandIn{Command: r.Command}
	return once(ctx, c, fresh{r.Tree, &in.Permissions, in.Cwd}, in, (*Sandbox).Command)
}

// Evaluate evaluates a snippet in a new sandbox.
func (s *Service) Evaluate(ctx context.Context, c *Call, r *requestjson.EvaluateRequest) (*runtime.Evaluation, error) {
	in := &requestjson.SnippetIn{Snippet: r.Snippet}
	return once(ctx, c, fresh{r.Tree, &in.Permissions, in.Cwd}, in, (*Sandbox).Evaluate)
}

// fresh describes the sandbox of one request, which takes over the permissions of the run.
type fresh struct {
	tree        requestjson.Tree
	permissions *policy.Permissions
	cwd         string
}

// once calls do with a new sandbox, from the tenant's pool if the options are the default.
func once[In, R any](ctx context.Context, c *Call, f fresh, in *In, do func(*Sandbox, context.Context, *Call, *In) (*R, error)) (*R, error) {
	s := c.Service
	permissions := *f.permissions
	*f.permissions = policy.Permissions{}
	audit.Of(ctx).SetPermissions(permissions)
	o, opened, err := s.options(c.Tenant, f.tree, permissions, f.cwd)
	if err != nil {
		return nil, err
	}
	sb, err := s.openOnce(ctx, c.Tenant, o, reflect.ValueOf(f.tree).IsZero() && permissions.IsZero() && f.cwd == "")
	opened.close()
	if err != nil {
		return nil, err
	}
	// In the background, so that the response does not wait.
	defer s.work.Go(func() { s.closeLogged(sb) })
	return do(sb, ctx, c, in)
}

// openOnce returns a sandbox for one request.
func (s *Service) openOnce(ctx context.Context, t *tenant.Tenant, o runtime.Options, pooled bool) (*Sandbox, error) {
	if !pooled {
		return s.open(ctx, t, o)
	}
	sb, err := s.newSandbox(t, o, func() (rt *runtime.NodeRuntime, err error) {
		err = s.pools.use(poolKey{s.settings.Load(), t.Name}, t.Name, func() (*runtime.Pool, error) {
			return runtime.NewPool(o, runtime.PoolOptions{Size: poolSize, Park: o.Isolation.Check(runtime.FeaturePark) == nil})
		}, func(p *runtime.Pool) (err error) {
			rt, err = p.Get(ctx)
			return err
		})
		return rt, err
	})
	if errors.Is(err, errManyShared) {
		return s.open(ctx, t, o)
	}
	return sb, err
}

// poolKey identifies a pool of sandboxes with default options. Each tenant has its own, because a sandbox is created in
// its tenant's cgroup.
type poolKey struct {
	settings *settings.Settings
	tenant   string
}

// poolSize is how many sandboxes are kept for each active tenant.
const poolSize = 4

// formats are the module formats of requests.
var formats = map[string]runtime.ModuleFormat{"": runtime.FormatAuto, "auto": runtime.FormatAuto, "esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS, "detect": runtime.FormatDetect}

// Run runs a program in the sandbox. If ctx ends the run, the error is beside the result so far, as for
// all runs.
func (sb *Sandbox) Run(ctx context.Context, c *Call, in *requestjson.ProgramIn) (*runtime.Result, error) {
	return sb.runProgram(ctx, KindRun, c, in.Program, sb.runtime.Run)
}

// Exec is Run without a value.
func (sb *Sandbox) Exec(ctx context.Context, c *Call, in *requestjson.ProgramIn) (*runtime.Result, error) {
	return sb.runProgram(ctx, KindExec, c, in.Program, sb.runtime.Exec)
}

func (sb *Sandbox) runProgram(ctx context.Context, kind string, c *Call, p requestjson.Program, run func(context.Context, string, runtime.RunOptions) (*runtime.Result, error)) (*runtime.Result, error) {
	o, err := sb.runOptions(p.Start, c)
	if err != nil {
		return nil, err
	}
	o.Name, o.Format, o.Args = p.Name, formats[p.Format], p.Args
	audit.Of(ctx).SetCode(p.Code, p.Permissions)
	return perform(ctx, sb, kind, c, func(ctx context.Context, onEvent func(runtime.Event)) (*runtime.Result, error) {
		o.OnEvent = onEvent
		return run(ctx, p.Code, o)
	})
}

// Command runs a program of the image.
func (sb *Sandbox) Command(ctx context.Context, c *Call, in *requestjson.CommandIn) (*runtime.Result, error) {
	o, err := sb.runOptions(in.Start, c)
	if err != nil {
		return nil, err
	}
	name := in.Command.Command
	audit.Of(ctx).SetCommand(name, in.Args, in.Permissions)
	return perform(ctx, sb, KindCommand, c, func(ctx context.Context, onEvent func(runtime.Event)) (*runtime.Result, error) {
		o.OnEvent = onEvent
		return sb.runtime.Command(ctx, name, in.Args, o)
	})
}

// Evaluate evaluates a snippet. The evaluation has its logs also if the events have them.
func (sb *Sandbox) Evaluate(ctx context.Context, c *Call, in *requestjson.SnippetIn) (*runtime.Evaluation, error) {
	o, err := sb.evaluateOptions(in.Cell, c)
	if err != nil {
		return nil, err
	}
	o.Permissions, o.Env, o.Cwd = in.Permissions, in.Env, in.Cwd
	audit.Of(ctx).SetCode(in.Code, in.Permissions)
	return perform(ctx, sb, KindEvaluate, c, func(ctx context.Context, onEvent func(runtime.Event)) (*runtime.Evaluation, error) {
		o.OnEvent = onEvent
		return sb.runtime.Evaluate(ctx, in.Code, o)
	})
}

// perform makes a run when it is the tenant's turn, passes its events to a client that wants them, and records how it
// ended. An error of the client cancels the run.
func perform[R any](ctx context.Context, sb *Sandbox, kind string, c *Call, run func(context.Context, func(runtime.Event)) (*R, error)) (res *R, err error) {
	defer func() { sb.service.record(ctx, kind, res, err) }()
	l := sb.Limits()
	release, err := sb.account.Admit(ctx, l.Memory, l.CPUs)
	if err != nil {
		return nil, err
	}
	defer release()
	if c.To == nil {
		return run(ctx, nil)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var t translator
	to := sender{to: c.To, cancel: cancel}
	res, err = run(running, func(e runtime.Event) { to.send(t.events(e)) })
	to.send(t.end())
	return res, to.failure(err)
}

// sender sends events to a client until that fails, which cancels the work.
type sender struct {
	to     Sink // nil: the client wants none
	cancel func()
	err    error
}

func (s *sender) send(events []Event) {
	for _, e := range events {
		if s.err == nil && s.to != nil {
			s.err = s.to(e)
		}
	}
	if s.err != nil {
		s.cancel()
	}
}

// failure returns the error of work that ended with err.
func (s *sender) failure(err error) error {
	if s.err != nil {
		return fmt.Errorf("%w: %w", context.Canceled, s.err)
	}
	return err
}

// maxLogs bounds the lines that an evaluation keeps, in characters.
const maxLogs = 16 << 20

func (sb *Sandbox) evaluateOptions(r requestjson.Cell, c *Call) (o runtime.EvaluateOptions, err error) {
	o = runtime.EvaluateOptions{
		MaxOutput: cmp.Or(r.MaxOutput, 1<<20), MaxLogs: cmp.Or(r.MaxLogs, 100), MaxLogLength: cmp.Or(r.MaxLogLength, 1000),
		Form: r.Form, MaxCalls: c.Calls.Calls,
	}
	if !c.BoundsLogs && o.MaxLogs*o.MaxLogLength > maxLogs {
		return o, Refuse(Invalid, "maxLogs: %d lines of %d characters are more than %d characters", o.MaxLogs, o.MaxLogLength, maxLogs)
	}
	if o.Globals, err = c.bind(r.Globals); err != nil {
		return o, err
	}
	o.Timeout, err = sb.timeout(r.Timeout)
	return o, err
}

func (sb *Sandbox) runOptions(r requestjson.Start, c *Call) (o runtime.RunOptions, err error) {
	o = runtime.RunOptions{Permissions: r.Permissions, Env: r.Env, Cwd: r.Cwd, Signals: c.Signals, OnStdout: c.OnOutput, OnStderr: c.OnOutput}
	switch {
	case c.Stdin != nil && r.Stdin != "":
		return o, Refuse(Invalid, "stdin: it is also streamed")
	case c.Stdin != nil:
		o.Stdin = c.Stdin
	case r.Stdin != "":
		o.Stdin = strings.NewReader(r.Stdin)
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
func (s *Service) Normalize(ctx context.Context, c *Call, in *requestjson.NormalizeIn) (*resultjson.Normalized, error) {
	audit.Of(ctx).SetCode(in.Code, nil)
	release, err := s.Account(c.Tenant).Admit(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	defer release()
	module, err := runtime.Normalize(in.Code)
	if failed, ok := errors.AsType[*runtime.GuestError](err); ok {
		return &resultjson.Normalized{Error: &runtime.GuestError{Name: failed.Name, Message: failed.Message, Stack: failed.Stack, Frame: failed.Frame}}, nil
	}
	return &resultjson.Normalized{Code: module}, err
}

// shared keeps values with sandboxes that are ready, such as pools, for the requests that need the same kind. A value is
// created on first use, and closed when it has not been used for some time. Its methods may be called concurrently.
type shared[K comparable, V io.Closer] struct {
	service *Service

	mu      sync.Mutex
	byKey   map[K]*sharedValue[V]
	closing sync.WaitGroup
}

type sharedValue[V io.Closer] struct {
	open  func() (V, error) // once
	done  func()            // after it has been closed
	uses  int
	since time.Time // it is not in use
	idle  *time.Timer
}

const (
	// sharedIdle is how long an unused value is kept.
	sharedIdle = time.Minute

	// maxShared bounds the values. Above it, an unused one is closed.
	maxShared = 64
)

// errManyShared is the error of [shared.use] if all values are in use.
var errManyShared = exceeded("too many different kinds of sandboxes are in use")

// newShared returns an empty shared.
func newShared[K comparable, V io.Closer](s *Service) *shared[K, V] {
	return &shared[K, V]{service: s, byKey: map[K]*sharedValue[V]{}}
}

// use calls do with the value of a key of a tenant. It calls create for a new one, and again with the next use if that fails.
func (s *shared[K, V]) use(k K, tenant string, create func() (V, error), do func(V) error) error {
	v, err := s.acquire(k, tenant, create)
	if err != nil {
		return err
	}
	opened, err := v.open()
	defer s.release(k, v, err != nil)
	if err != nil {
		return err
	}
	return do(opened)
}

func (s *shared[K, V]) acquire(k K, tenant string, create func() (V, error)) (*sharedValue[V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.byKey[k]
	if v == nil {
		if len(s.byKey) >= maxShared && !s.evict() {
			return nil, errManyShared
		}
		v = &sharedValue[V]{}
		v.open = sync.OnceValues(func() (V, error) {
			v.done = s.service.tenants.use(tenant)
			return create()
		})
		v.idle = time.AfterFunc(sharedIdle, func() { s.expire(k, v) })
		s.byKey[k] = v
	}
	v.uses++
	v.idle.Stop()
	return v, nil
}

// release ends a use of a value, and forgets a value that could not be opened.
func (s *shared[K, V]) release(k K, v *sharedValue[V], failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.uses--
	switch {
	case failed && s.byKey[k] == v:
		delete(s.byKey, k)
		v.done()
	case !failed && v.uses == 0:
		v.since = time.Now()
		v.idle.Reset(sharedIdle)
	}
}

// expire closes a value that has not been used for some time.
func (s *shared[K, V]) expire(k K, v *sharedValue[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.uses == 0 && s.byKey[k] == v {
		s.remove(k, v)
	}
}

// evict closes the value that has not been used for the longest time. It returns false if all are in use.
//
// Preconditions: s.mu is held.
func (s *shared[K, V]) evict() bool {
	var oldest *sharedValue[V]
	var key K
	for k, v := range s.byKey {
		if v.uses == 0 && (oldest == nil || v.since.Before(oldest.since)) {
			key, oldest = k, v
		}
	}
	if oldest != nil {
		s.remove(key, oldest)
	}
	return oldest != nil
}

// remove closes an unused value in the background.
//
// Preconditions: s.mu is held.
func (s *shared[K, V]) remove(k K, v *sharedValue[V]) {
	v.idle.Stop()
	delete(s.byKey, k)
	s.closing.Go(func() {
		opened, _ := v.open()
		defer v.done()
		if err := s.service.closeInTurn(opened.Close); err != nil {
			s.service.log.Error("close unused sandboxes", "err", err)
		}
	})
}

// close closes all values. None is in use.
func (s *shared[K, V]) close() {
	s.mu.Lock()
	for k, v := range s.byKey {
		s.remove(k, v)
	}
	s.mu.Unlock()
	s.closing.Wait()
}
