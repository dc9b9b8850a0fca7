package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// runParams are the parameters of run, exec, command and spawn.
type runParams struct {
	Sandbox     string `json:"sandbox,omitempty"`
	StdinStream bool   `json:"stdinStream,omitempty"`
	Events      bool   `json:"events,omitempty"`
	MaxTimeout  bool   `json:"maxTimeout,omitempty"`

	Code        *string            `json:"code,omitempty"`
	Command     string             `json:"command,omitempty"`
	Name        string             `json:"name,omitempty"`
	Format      string             `json:"format,omitempty"`
	Permissions policy.Permissions `json:"permissions,omitzero"`
	Args        []string           `json:"args,omitempty"`
	Env         map[string]string  `json:"env,omitempty"`
	Cwd         string             `json:"cwd,omitempty"`
	TimeoutMs   int64              `json:"timeoutMs,omitempty"`
	Terminal    *session.Terminal  `json:"terminal,omitempty"`
}

// formats are the names of module formats.
var formats = map[runtime.ModuleFormat]string{runtime.FormatAuto: "", runtime.FormatESM: "esm", runtime.FormatCommonJS: "cjs", runtime.FormatDetect: "detect"}

// program returns the parameters of a program in the sandbox.
func (sb *Sandbox) program(code string, o runtime.RunOptions) runParams {
	p := runParams{
		Sandbox: sb.id, Code: &code, Name: o.Name, Format: formats[o.Format], Permissions: o.Permissions, Args: o.Args,
		Env: o.Env, Cwd: o.Cwd, StdinStream: o.Stdin != nil, Events: o.OnStdout != nil || o.OnStderr != nil,
	}
	p.TimeoutMs, p.MaxTimeout = timeout(o.Timeout)
	return p
}

// command returns the parameters of a command in the sandbox.
func (sb *Sandbox) command(name string, args []string, o runtime.RunOptions) runParams {
	o.Name, o.Format, o.Args = "", runtime.FormatAuto, args
	p := sb.program("", o)
	p.Code, p.Command = nil, name
	return p
}

// Run runs code, as [runtime.NodeRuntime.Run] does. RunOptions.Network and OnOutputLimit are not
// supported. A negative Timeout means the longest that the server allows.
func (sb *Sandbox) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.c.run(ctx, "run", sb.program(code, o), o, sb.output)
}

// Exec runs code without a value, as [runtime.NodeRuntime.Exec] does.
func (sb *Sandbox) Exec(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.c.run(ctx, "exec", sb.program(code, o), o, sb.output)
}

// Command runs a program of the image, as [runtime.NodeRuntime.Command] does.
func (sb *Sandbox) Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.c.run(ctx, "command", sb.command(name, args, o), o, sb.output)
}

// Run runs code in a sandbox of its own. The options are those of [Sandbox.Run], without Stdin,
// Signals, OnStdout and OnStderr.
func (c *Client) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	if o.Stdin != nil || o.Signals != nil || o.OnStdout != nil || o.OnStderr != nil {
		return nil, wrap("run", unsupported("Stdin, Signals, OnStdout or OnStderr"))
	}
	if o.Timeout < 0 {
		return nil, wrap("run", unsupported("Timeout"))
	}
	none := &Sandbox{}
	return c.run(ctx, "runOnce", none.program(code, o), o, runtime.DefaultLimits().Output)
}

// checkRun rejects options that servers do not have.
func checkRun(o runtime.RunOptions) error {
	if o.Network != (runtime.NetworkLimits{}) {
		return unsupported("Network")
	}
	if o.OnOutputLimit != runtime.TruncateOutput {
		return unsupported("OnOutputLimit")
	}
	return nil
}

// run makes a run and returns its result.
func (c *Client) run(ctx context.Context, method string, p runParams, o runtime.RunOptions, limit int64) (*runtime.Result, error) {
	if err := checkRun(o); err != nil {
		return nil, wrap(method, err)
	}
	stdout, stderr := capture{limit: limit, call: o.OnStdout}, capture{limit: limit, call: o.OnStderr}
	res, err := c.follow(ctx, method, p, o, func(f session.Frame) {
		switch f.Kind {
		case session.KindStdout:
			stdout.add(f.Body)
		case session.KindStderr:
			stderr.add(f.Body)
		}
	})
	if res != nil {
		res.Stdout, res.Stderr = stdout.data, stderr.data
		res.Truncated.Stdout = res.Truncated.Stdout || stdout.truncated
		res.Truncated.Stderr = res.Truncated.Stderr || stderr.truncated
	}
	return res, err
}

// follow makes a run, and passes its output and events to handle.
func (c *Client) follow(ctx context.Context, method string, p runParams, o runtime.RunOptions, handle func(session.Frame)) (*runtime.Result, error) {
	var res *runtime.Result
	err := c.exchange(ctx, method, p, o, handle, func(text json.RawMessage) error {
		var run resultjson.SessionRun
		if err := json.Unmarshal(text, &run); err != nil || run.Run == nil {
			return fmt.Errorf("an invalid result of the server: %w", errors.Join(err))
		}
		res = run.Result()
		return nil
	})
	return res, err
}

// exchange makes a run with the standard input and signals of o, and decodes its result. If ctx or standard input ends the
// run, there are a result and an error.
func (c *Client) exchange(ctx context.Context, method string, params any, o runtime.RunOptions, handle func(session.Frame), decode func(json.RawMessage) error) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r, end, err := c.start(running, method, params)
	if err != nil {
		return wrap(method, err)
	}
	defer end()
	if o.Signals != nil {
		go r.passSignals(running, o.Signals)
	}
	if o.Stdin != nil {
		go func() { // not waited for: a Read may block
			if err := r.feed(running, o.Stdin); err != nil {
				stop(fmt.Errorf("stdin: %w", err))
			}
		}()
	}
	text, err := r.wait(running, handle)
	if err == nil {
		err = decode(text)
	}
	switch {
	case ctx.Err() != nil && isCanceled(err):
		return canceled(ctx, method)
	case err == nil && running.Err() != nil && ctx.Err() == nil:
		err = context.Cause(running) // of standard input
	case isCanceled(err) && running.Err() != nil:
		err = context.Cause(running)
	}
	return wrap(method, err)
}

// isCanceled reports whether a request whose context has ended was ended by that.
func isCanceled(err error) bool { return err == nil || errors.Is(err, context.Canceled) }

// timeout returns the time limit of a run as requests have it.
func timeout(d time.Duration) (ms int64, most bool) {
	if d < 0 {
		return 0, true
	}
	return milliseconds(d), false
}

// capture keeps output up to a limit.
type capture struct {
	limit     int64
	call      func([]byte)
	data      []byte
	truncated bool
}

func (c *capture) add(piece []byte) {
	if c.call != nil {
		c.call(piece)
	}
	room := c.limit - int64(len(c.data))
	if int64(len(piece)) > room {
		c.truncated = true
		piece = piece[:max(room, 0)]
	}
	c.data = append(c.data, piece...)
}
