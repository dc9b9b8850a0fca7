package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// programOf encodes a program for requests.
func programOf(code string, o runtime.RunOptions) requestjson.Program {
	return requestjson.Program{Code: code, Name: o.Name, Format: o.Format.String(), Start: start(o)}
}

func start(o runtime.RunOptions) requestjson.Start {
	return requestjson.Start{Permissions: o.Permissions, Args: o.Args, Env: o.Env, Cwd: o.Cwd, Timeout: timeout(o.Timeout)}
}

// program returns a run of code in the sandbox.
func (sb *Sandbox) program(method, doing, code string, o runtime.RunOptions) message {
	in := requestjson.ProgramIn{InSandbox: sb.in(), Program: programOf(code, o)}
	return message{Request: session.Request{Method: method}, doing: doing, in: in}
}

// in names the sandbox in requests.
func (sb *Sandbox) in() requestjson.InSandbox { return requestjson.InSandbox{Sandbox: sb.id} }

// Run runs code, as [runtime.NodeRuntime.Run] does. RunOptions.Network and OnOutputLimit are not
// supported. A negative Timeout means the longest that the server allows. While OnEvent is slow, the client buffers 64 KiB
// and the server 256 KiB of each output, and then the run blocks.
func (sb *Sandbox) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.run(ctx, sb.program("runIn", "run", code, o), o)
}

// Exec runs code without a value, as [runtime.NodeRuntime.Exec] does.
func (sb *Sandbox) Exec(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	return sb.run(ctx, sb.program("execIn", "exec", code, o), o)
}

// Command runs a program of the image, as [runtime.NodeRuntime.Command] does.
func (sb *Sandbox) Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error) {
	o.Args = args
	in := requestjson.CommandIn{InSandbox: sb.in(), Command: requestjson.Command{Command: name, Start: start(o)}}
	return sb.run(ctx, message{Request: session.Request{Method: "commandIn"}, doing: "command", in: in}, o)
}

// Run runs code in a new sandbox, as [Sandbox.Run] does.
func (c *Client) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	m := message{Request: session.Request{Method: "run"}, doing: "run", in: requestjson.RunRequest{Program: programOf(code, o)}}
	return c.Sandbox("").run(ctx, m, o)
}

// run makes a run, and keeps its output unless the events have it. It rejects options that servers do not have.
func (sb *Sandbox) run(ctx context.Context, m message, o runtime.RunOptions) (*runtime.Result, error) {
	switch {
	case o.Network != (runtime.NetworkLimits{}):
		return nil, wrap(m.doing, unsupported("Network"))
	case o.OnOutputLimit != runtime.TruncateOutput:
		return nil, wrap(m.doing, unsupported("OnOutputLimit"))
	case o.OnEvent != nil && (o.OnStdout != nil || o.OnStderr != nil):
		return nil, wrap(m.doing, &runtime.OptionError{Option: "OnEvent", Err: errors.New("the events include the output: omit OnStdout and OnStderr")})
	}
	m.stdin, m.signals = o.Stdin, o.Signals
	if o.OnEvent != nil {
		m.follow(o.OnEvent)
		return call[*runtime.Result](ctx, sb.c, m)
	}
	stdout, stderr := &stdio.Capture{Limit: sb.output, OnOutput: o.OnStdout}, &stdio.Capture{Limit: sb.output, OnOutput: o.OnStderr}
	captures := map[session.Kind]*stdio.Capture{session.KindStdout: stdout, session.KindStderr: stderr}
	m.Events = o.OnStdout != nil || o.OnStderr != nil
	m.handle = func(f session.Frame) error {
		if c := captures[f.Kind]; c != nil {
			c.Write(f.Body)
		}
		return nil
	}
	res, err := call[*runtime.Result](ctx, sb.c, m)
	if res != nil {
		res.Stdout, res.Stderr = stdout.Kept, stderr.Kept
		res.Truncated.Stdout = res.Truncated.Stdout || stdout.Truncated
		res.Truncated.Stderr = res.Truncated.Stderr || stderr.Truncated
	}
	return res, err
}

// follow makes the request report events.
func (m *message) follow(onEvent func(runtime.Event)) {
	m.Events = true
	m.handle = func(f session.Frame) error {
		switch f.Kind {
		case session.KindStdout:
			onEvent(runtime.StdoutEvent{Data: f.Body})
		case session.KindStderr:
			onEvent(runtime.StderrEvent{Data: f.Body})
		case session.KindEvent:
			var e session.Event
			err := json.Unmarshal(f.Body, &e)
			if event, unknown := resultjson.Event(e.Event, e.Data); err == nil && unknown == nil { // otherwise it is of a newer server
				onEvent(event)
			}
		}
		return nil
	}
}

// timeout encodes the time limit of a run for requests.
func timeout(d time.Duration) requestjson.Timeout {
	if d < 0 {
		return requestjson.Timeout{Max: true}
	}
	return requestjson.Timeout{Ms: milliseconds(d)}
}

// BatchRun describes a batch run: its state, and its result or error once it is done.
type BatchRun = resultjson.BatchRun

// SubmitOptions are the options of a batch run. The zero value is complete.
type SubmitOptions struct {
	// Key names the batch run: at most 255 letters, digits and characters of "._:~@+=-", of which the first is a letter or
	// a digit. Empty: a random key, so that a repetition is another batch run.
	Key string

	// Stdin is the standard input, in UTF-8.
	Stdin string

	// Run can have Name, Format, Args, Env, Cwd, Timeout and Permissions.
	Run runtime.RunOptions

	// Sandbox can have Image, Snapshot, Files, Limits, ReadOnlyRoot, Hostname, Isolation, HostPorts, BigInts, and
	// NodeModules of a snapshot. Limits.Output is at most 256 KiB, which is the default, and Limits.Value 1 MiB.
	Sandbox CreateOptions
}

// checkFields rejects options with other fields than those with some names.
func checkFields(options any, names ...string) error {
	for field, value := range reflect.ValueOf(options).Fields() {
		if !value.IsZero() && !slices.Contains(names, field.Name) {
			return unsupported(field.Name)
		}
	}
	return nil
}

// Submit submits code as a batch run, which the server runs in a new sandbox when it is its turn, even if the client
// disconnects. If a machine is lost, another one runs it again. The server keeps the result for an hour after its end.
//
// It is safe to repeat a Submit that failed, with the same Key: while the server keeps a batch run with that key and the same
// code and options, Submit returns it, and submits nothing. With other code or options, the error is an [*Error]. While
// the engine of batch runs is down, the error matches [ErrEngineUnavailable].
func (c *Client) Submit(ctx context.Context, code string, o SubmitOptions) (*BatchRun, error) {
	return c.submit(ctx, requestjson.SubmitRequest{Code: code, Name: o.Run.Name, Format: o.Run.Format.String()}, o)
}

// SubmitCommand submits a program of the image, as Submit does.
func (c *Client) SubmitCommand(ctx context.Context, name string, args []string, o SubmitOptions) (*BatchRun, error) {
	if name == "" { // for the server this would be an empty program
		return nil, wrap("submit", errors.New("a command without a name"))
	}
	o.Run.Args = args
	return c.submit(ctx, requestjson.SubmitRequest{Command: name}, o)
}

func (c *Client) submit(ctx context.Context, in requestjson.SubmitRequest, o SubmitOptions) (*BatchRun, error) {
	err := cmp.Or(checkFields(o.Run, "Name", "Format", "Args", "Env", "Cwd", "Timeout", "Permissions"),
		checkFields(o.Sandbox, "Image", "Snapshot", "Files", "Limits", "ReadOnlyRoot", "Hostname", "Isolation", "HostPorts", "BigInts", "NodeModules", "NodeModulesPath"))
	if err == nil && !utf8.ValidString(o.Stdin) {
		err = &runtime.OptionError{Option: "Stdin", Err: errors.New("not valid UTF-8")}
	}
	if err != nil {
		return nil, wrap("submit", err)
	}
	in.Key, in.Start, in.Tree, in.Stdin = o.Key, start(o.Run), createRequest(o.Sandbox, nil).Tree, o.Stdin // Stdin is a part of Start
	return get[*BatchRun](ctx, c, "submitRun", "submit", in)
}

// BatchRun describes a batch run of the caller. If there is none with that key, the error matches [fs.ErrNotExist].
func (c *Client) BatchRun(ctx context.Context, key string) (*BatchRun, error) {
	return get[*BatchRun](ctx, c, "getBatchRun", "batch run", requestjson.InBatch{Key: key})
}

// WaitBatchRun waits until a batch run is done. The batch run does not end with ctx.
func (c *Client) WaitBatchRun(ctx context.Context, key string) (*BatchRun, error) {
	return get[*BatchRun](ctx, c, "waitBatchRun", "wait for batch run", requestjson.InBatch{Key: key})
}

// CancelBatchRun ends a batch run with the cause [runtime.CauseCanceled]. A batch run that is done does not
// change.
func (c *Client) CancelBatchRun(ctx context.Context, key string) (*BatchRun, error) {
	return get[*BatchRun](ctx, c, "cancelBatchRun", "cancel batch run", requestjson.InBatch{Key: key})
}
