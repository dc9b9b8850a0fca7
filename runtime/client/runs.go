package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/requestjson"
)

// pending is a run to make.
type pending struct {
	message
	options runtime.RunOptions
	limit   int64 // of each output
}

// newRun returns a run of an operation with options.
func (sb *Sandbox) newRun(method string, in any, o runtime.RunOptions) pending {
	m := message{session.Request{Method: method, Stdin: o.Stdin != nil, Events: o.OnStdout != nil || o.OnStderr != nil}, in}
	return pending{m, o, sb.output}
}

// program encodes a program for requests.
func program(code string, o runtime.RunOptions) requestjson.Program {
	return requestjson.Program{Code: code, Name: o.Name, Format: o.Format.String(), Start: start(o)}
}

func start(o runtime.RunOptions) requestjson.Start {
	return requestjson.Start{Permissions: permissionsOf(o.Permissions), Args: o.Args, Env: o.Env, Cwd: o.Cwd, Timeout: timeout(o.Timeout)}
}

// permissionsOf encodes permissions for requests.
func permissionsOf(p policy.Permissions) json.RawMessage {
	if reflect.ValueOf(p).IsZero() {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has strings and booleans
	}
	return text
}

// programIn returns a run of code in the sandbox.
func (sb *Sandbox) programIn(method, code string, o runtime.RunOptions) pending {
	return sb.newRun(method, requestjson.ProgramIn{InSandbox: sb.in(), Program: program(code, o)}, o)
}

// commandIn returns a run of a program of the image.
func (sb *Sandbox) commandIn(name string, args []string, o runtime.RunOptions) pending {
	o.Args = args
	return sb.newRun("commandIn", requestjson.CommandIn{InSandbox: sb.in(), Command: requestjson.Command{Command: name, Start: start(o)}}, o)
}

// in names the sandbox in requests.
func (sb *Sandbox) in() requestjson.InSandbox { return requestjson.InSandbox{Sandbox: sb.id} }

// Run runs code, as [runtime.NodeRuntime.Run] does. RunOptions.Network and OnOutputLimit are not
// supported. A negative Timeout means the longest that the server allows.
func (sb *Sandbox) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.c.run(ctx, "run", sb.programIn("runIn", code, o))
}

// Exec runs code without a value, as [runtime.NodeRuntime.Exec] does.
func (sb *Sandbox) Exec(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.c.run(ctx, "exec", sb.programIn("execIn", code, o))
}

// Command runs a program of the image, as [runtime.NodeRuntime.Command] does.
func (sb *Sandbox) Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.c.run(ctx, "command", sb.commandIn(name, args, o))
}

// Run runs code in a new sandbox, as [Sandbox.Run] does.
func (c *Client) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	none := &Sandbox{output: runtime.DefaultLimits().Output}
	return c.run(ctx, "run", none.newRun("run", requestjson.RunRequest{Program: program(code, o)}, o))
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

// run makes a run and returns its result. Doing is for errors.
func (c *Client) run(ctx context.Context, doing string, p pending) (*runtime.Result, error) {
	if err := checkRun(p.options); err != nil {
		return nil, wrap(doing, err)
	}
	stdout, stderr := stdio.Capture{Limit: p.limit, OnOutput: p.options.OnStdout}, stdio.Capture{Limit: p.limit, OnOutput: p.options.OnStderr}
	res, err := c.follow(ctx, doing, p, func(f session.Frame) {
		switch f.Kind {
		case session.KindStdout:
			stdout.Write(f.Body)
		case session.KindStderr:
			stderr.Write(f.Body)
		}
	})
	if res != nil {
		res.Stdout, res.Stderr = stdout.Kept, stderr.Kept
		res.Truncated.Stdout = res.Truncated.Stdout || stdout.Truncated
		res.Truncated.Stderr = res.Truncated.Stderr || stderr.Truncated
	}
	return res, err
}

// follow makes a run, and passes its output and events to handle.
func (c *Client) follow(ctx context.Context, doing string, p pending, handle func(session.Frame)) (*runtime.Result, error) {
	var res *runtime.Result
	err := c.exchange(ctx, doing, p.message, p.options, handle, into(&res))
	return res, err
}

// into returns a function that decodes a result, which must not be null.
func into[T any](result **T) func(json.RawMessage) error {
	return func(text json.RawMessage) error {
		var v *T
		if err := json.Unmarshal(text, &v); err != nil || v == nil {
			return fmt.Errorf("an invalid result of the server: %w", errors.Join(err))
		}
		*result = v
		return nil
	}
}

// exchange makes a run with the standard input and signals of o, and decodes its result. If ctx or standard input ends the
// run, there are a result and an error.
func (c *Client) exchange(ctx context.Context, doing string, m message, o runtime.RunOptions, handle func(session.Frame), decode func(json.RawMessage) error) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r, end, err := c.start(running, m)
	if err != nil {
		return wrap(doing, err)
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
	text, err := r.wait(running, func(f session.Frame) (buffered bool) {
		if handle != nil {
			handle(f)
		}
		return false
	})
	if err == nil {
		err = decode(text)
	}
	switch {
	case ctx.Err() != nil && isCanceled(err):
		return canceled(ctx, doing)
	case err == nil && running.Err() != nil && ctx.Err() == nil:
		err = context.Cause(running) // of standard input
	case isCanceled(err) && running.Err() != nil:
		err = context.Cause(running)
	}
	return wrap(doing, err)
}

// isCanceled reports whether a request whose context has ended was ended by that.
func isCanceled(err error) bool { return err == nil || errors.Is(err, context.Canceled) }

// timeout encodes the time limit of a run for requests.
func timeout(d time.Duration) requestjson.Timeout {
	if d < 0 {
		return requestjson.Timeout{Max: true}
	}
	return requestjson.Timeout{Ms: milliseconds(d)}
}
