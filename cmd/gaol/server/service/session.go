package service

import (
	"context"
	"io"
	"time"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
)

// retrySoon is when a limit of a session may be free again.
const retrySoon = time.Second

// HostFunctions are the functions that a client implements for the programs of a sandbox.
type HostFunctions struct {
	Bindings map[string]any             // as runtime.Options.Bindings
	Commands map[string]runtime.Command // as runtime.Options.Commands
	Calls    runtime.CallLimits
}

// CreateSandboxWith creates a sandbox whose programs can call functions.
func (s *Service) CreateSandboxWith(ctx context.Context, t *tenant.Tenant, r SandboxRequest, f HostFunctions) (*SandboxInfo, error) {
	return s.createSandbox(ctx, t, r, func(o *runtime.Options) { o.Bindings, o.Commands, o.Calls = f.Bindings, f.Commands, f.Calls })
}

// Work calls do when it is the tenant's turn. The run that do makes counts towards the tenant's
// quotas until do returns. Its context also ends with the service, whose Close waits for it.
func (sb *Sandbox) Work(ctx context.Context, doing string, do func(context.Context) error) error {
	ctx, end, err := sb.service.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return sb.admitted(ctx, doing, do)
}

// ProgramOptions returns the options of a program's run. If stdin is not nil, it replaces the
// program's own.
func (sb *Sandbox) ProgramOptions(p Program, stdin io.Reader) (runtime.RunOptions, error) {
	o, err := sb.programOptions(p)
	return withStdin(o, p.Stdin, stdin, err)
}

// CommandOptions returns the options of a command's run, as ProgramOptions does.
func (sb *Sandbox) CommandOptions(c Command, stdin io.Reader) (runtime.RunOptions, error) {
	o, err := sb.runOptions(c.Permissions, c.Env, c.Cwd, c.Stdin, c.TimeoutMs)
	return withStdin(o, c.Stdin, stdin, err)
}

func withStdin(o runtime.RunOptions, text string, stdin io.Reader, err error) (runtime.RunOptions, error) {
	if stdin != nil && text != "" {
		return o, refuse(Invalid, "stdin: it is also streamed")
	}
	if stdin != nil {
		o.Stdin = stdin
	}
	return o, err
}

// SnippetOptions returns the options of a snippet's evaluation.
func (sb *Sandbox) SnippetOptions(n Snippet) (runtime.EvaluateOptions, error) {
	return sb.evaluateOptions(n)
}

// ProcessOptions returns the options of a long-lived process. Without a time limit of its own, it has
// that of the server.
func (sb *Sandbox) ProcessOptions(p Program) (o runtime.SpawnOptions, err error) {
	o = runtime.SpawnOptions{Env: p.Env, Cwd: p.Cwd, Name: p.Name, Format: formats[p.Format], Args: p.Args}
	if p.Stdin != "" {
		return o, refuse(Invalid, "stdin: that of a process is streamed")
	}
	if o.Permissions, err = parsePermissions(p.Permissions); err != nil {
		return o, err
	}
	o.Timeout, err = bounded("timeoutMs", p.TimeoutMs, sb.service.settings.Load().RunTimeoutMs)
	return o, err
}

// Invalidf returns an error about a request.
func Invalidf(format string, args ...any) error { return refuse(Invalid, format, args...) }

// NotFoundf returns an error about something that does not exist.
func NotFoundf(format string, args ...any) error { return refuse(NotFound, format, args...) }

// Failed returns an error of the SDK as an *Error, and logs it if it is not the tenant's fault.
func (sb *Sandbox) Failed(doing string, err error) error {
	return sb.service.internal(doing, &tenant.Tenant{Name: sb.owner}, err)
}
