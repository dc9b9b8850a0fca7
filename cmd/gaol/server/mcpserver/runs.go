package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

const codeAbout = `Runs JavaScript or TypeScript with Node.js in a sandbox, and returns what it prints and the value of its last expression. It may use import, require and await. Without sandboxId it uses a fresh sandbox. With contextId, variables are kept between calls. A failure of the code is reported with its position.`

// runTools are the tools that run code and commands.
func runTools() []*tool {
	return []*tool{
		newTool(tool{open: true}, operation.Operation{
			Name: "run_code", Summary: "Run code", Doc: codeAbout, Fields: []string{"code", "language", "sandboxId", "contextId", "timeoutMs"},
		}, runCode),
		newTool(tool{open: true}, operation.Operation{
			Name: "run_command", Summary: "Run a command", Doc: commandAbout, Fields: []string{"command", "args", "cwd", "env", "stdin", "sandboxId", "timeoutMs"},
		}, runCommand),
	}
}

// FreshSandbox is the sandbox of a run.
type FreshSandbox struct {
	SandboxID string `json:"sandboxId,omitempty" maxLength:"64" doc:"The sandbox to run in. Omit it for a fresh one that is deleted afterwards."`
}

type codeIn struct {
	requestjson.Cell
	FreshSandbox
	Language  string `json:"language,omitempty" enum:"js,ts" doc:"js (the default) or ts. TypeScript and JSX are translated in both; types are not checked."`
	ContextID string `json:"contextId,omitempty" maxLength:"64" doc:"Keeps variables between calls, as in a notebook: \"new\" creates a context, and a contextId of an earlier result continues it."`
}

type codeOut struct {
	Output    string          `json:"output" text:"%s" doc:"Output of the code, at most some 40,000 characters."`
	Value     json.RawMessage `json:"value,omitempty" text:"=> %s" doc:"The value of the last expression. Absent if it is undefined, cannot be encoded as JSON, or is too long."`
	NoValue   string          `json:"noValue,omitempty" text:"[no value: %s]" doc:"Why the value cannot be encoded as JSON."`
	Error     *codeError      `json:"error,omitempty" doc:"Why the code failed. Absent if it did not."`
	ContextID string          `json:"contextId,omitempty" doc:"The context, for further calls."`
	RunSummary
}

// RunSummary is what all runs report.
type RunSummary struct {
	Cause      runtime.Cause `json:"cause,omitempty" text:"[ended by gaol: %s]" doc:"Why gaol or the kernel ended it: timeout, cpu, memory, pids, output, canceled or signal. Absent if it ended by itself."`
	Truncated  bool          `json:"truncated" doc:"Whether a text is incomplete."`
	SandboxID  string        `json:"sandboxId,omitempty" doc:"The sandbox, if it still exists."`
	DurationMs float64       `json:"durationMs"`
	Usage      runtime.Usage `json:"usage"`
	Denials    denials       `json:"denials" text:"%s" doc:"What permissions denied, and what would allow it."`

	*overflow
}

// newSummary is called when all texts have been added to o.
func newSummary(o *overflow, cause runtime.Cause, took time.Duration, usage runtime.Usage, denied []runtime.Denial) RunSummary {
	return RunSummary{cause, len(o.notes) > 0, o.sandbox, resultjson.Milliseconds(took), usage, newDenials(o.call, o.sandbox, denied), o}
}

// codeError is an error of the code.
type codeError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack" text:"%s"`
	Frame   string `json:"frame,omitempty" text:"%s" doc:"The lines of the code around the position."`
}

func newCodeError(e *runtime.GuestError) *codeError {
	if e == nil {
		return nil
	}
	short := func(text string) string {
		text, _ = cut(strings.ToValidUTF8(text, "\uFFFD"), 4000)
		return text
	}
	return &codeError{short(e.Name), short(strings.TrimPrefix(e.Error(), e.Name+": ")), short(e.Trace()), short(e.Frame)}
}

func runCode(ctx context.Context, c *operation.Call, in *codeIn) (*codeOut, error) {
	in.MaxLogs, in.MaxLogLength = maxLines, maxLineLength
	of := requestjson.InSandbox{Sandbox: in.SandboxID}
	switch {
	case in.ContextID != "":
		return runCell(ctx, c, in)
	case in.SandboxID != "":
		return evaluate(ctx, c, of.Sandbox, "evaluateIn", &requestjson.SnippetIn{InSandbox: of, Snippet: requestjson.Snippet{Cell: in.Cell}})
	}
	return evaluate(ctx, c, "", "evaluate", &requestjson.EvaluateRequest{Snippet: requestjson.Snippet{Cell: in.Cell}})
}

// newContext is the contextId that asks for a new context.
const newContext = "new"

// runCell runs code in a context.
func runCell(ctx context.Context, c *operation.Call, in *codeIn) (*codeOut, error) {
	at, err := openContext(ctx, c, in)
	if err != nil {
		return nil, err
	}
	out, err := evaluate(ctx, c, at.Sandbox, "evaluateCell", &requestjson.CellIn{InContext: *at, Cell: in.Cell})
	if errors.Is(err, runtime.ErrContextEnded) {
		return nil, fmt.Errorf("context %q has ended: its variables are lost. Pass contextId %q for a new one", at.Context, newContext)
	}
	if err != nil {
		return nil, err
	}
	if info, err := operation.Perform[*resultjson.ContextInfo](ctx, c, "getContext", at); err != nil || info.State == resultjson.Ended {
		out.note("[context %s has ended: its variables are lost]", at.Context)
	} else {
		out.ContextID = at.Context
		out.note("[contextId %s, sandboxId %s]", at.Context, at.Sandbox)
	}
	return out, nil
}

// openContext returns the context of a call, or creates one: in the sandbox of the call, or else in a new one.
func openContext(ctx context.Context, c *operation.Call, in *codeIn) (*requestjson.InContext, error) {
	if in.ContextID != newContext {
		sandbox, err := c.Service.FindContext(c.Tenant, in.ContextID)
		switch {
		case err != nil:
			return nil, fmt.Errorf("no context %.64q: it has ended or never existed. Its variables are lost; pass contextId %q for a new one", in.ContextID, newContext)
		case in.SandboxID != "" && in.SandboxID != sandbox:
			return nil, fmt.Errorf("context %q is in sandbox %q, not in %.64q: omit sandboxId", in.ContextID, sandbox, in.SandboxID)
		}
		return &requestjson.InContext{InSandbox: requestjson.InSandbox{Sandbox: sandbox}, Context: in.ContextID}, nil
	}
	of := requestjson.InSandbox{Sandbox: in.SandboxID}
	if of.Sandbox == "" {
		made, err := operation.Perform[*resultjson.SandboxInfo](ctx, c, "createSandbox", &requestjson.SandboxRequest{})
		if err != nil {
			return nil, err
		}
		of.Sandbox = made.ID
	}
	info, err := operation.Perform[*resultjson.ContextInfo](ctx, c, "createContext", &requestjson.ContextIn{InSandbox: of})
	if err != nil && in.SandboxID == "" {
		_, _ = operation.Perform[any](ctx, c, "deleteSandbox", &of) // the error is more important
	}
	if err != nil {
		return nil, err
	}
	return &requestjson.InContext{InSandbox: of, Context: info.ID}, nil
}

const (
	maxOutput     = 16 << 20  // bytes of all lines; beyond them the code is canceled
	maxLines      = 100_000   // of output
	maxLineLength = 1_000_000 // characters
)

// evaluate performs an operation that evaluates code, in a sandbox: an empty id is a fresh one.
func evaluate(ctx context.Context, c *operation.Call, sandbox, name string, in any) (*codeOut, error) {
	printed := 0
	watched := *c
	watched.BoundsLogs = true
	watched.To = func(event service.Event) error {
		if l, ok := event.Data.(runtime.Log); ok {
			c.OnOutput([]byte(l.Text))
			if printed += len(l.Text); printed > maxOutput {
				return context.Canceled
			}
		}
		return nil
	}
	n, err := operation.Perform[*runtime.Evaluation](ctx, &watched, name, in)
	flooded := n != nil && printed > maxOutput
	if err != nil && !flooded {
		return nil, err
	}
	if flooded {
		n.Cause, n.Truncated.Logs, n.Error = runtime.CauseOutput, true, &runtime.GuestError{Name: "LimitError", Message: "the code printed more than 16 MiB"}
	}
	return newCodeOut(&overflow{ctx: ctx, call: c, sandbox: sandbox}, n), nil
}

func newCodeOut(o *overflow, n *runtime.Evaluation) *codeOut {
	var lines strings.Builder
	for _, l := range n.Logs {
		lines.WriteString(l.Text + "\n")
	}
	output, value := lines.String(), string(n.Value)
	forOutput, forValue := shares(output, value)
	out := &codeOut{NoValue: n.NoValue, Error: newCodeError(n.Error)}
	if n.Truncated.Logs {
		o.note("[output: the end is lost]")
	}
	out.Output = o.fit("output.txt", "text/plain", output, forOutput)
	if shown := o.fit("value.json", "application/json", value, forValue); shown != value {
		out.NoValue = "it is too long: " + shown[:min(len(shown), 200)] + "…"
		out.NoValue = strings.ToValidUTF8(out.NoValue, "")
	} else {
		out.Value = n.Value
	}
	out.RunSummary = newSummary(o, n.Cause, n.Duration, n.Usage, n.Denials)
	out.failed = n.Error != nil || n.Cause != ""
	return out
}

const commandAbout = `Runs a command in a sandbox, such as node, npm or a shell line, and returns its output and exit code when it has ended: servers need start_process. Without sandboxId it uses a fresh sandbox.`

type commandIn struct {
	FreshSandbox
	Command string `json:"command" minLength:"1" maxLength:"131072" doc:"Without args, a line for the shell, such as \"ls -l | wc -l\". With args, the program alone."`
	requestjson.Start
}

type commandOut struct {
	Stdout   string `json:"stdout" text:"%s" doc:"Standard output. Invalid UTF-8 becomes U+FFFD."`
	Stderr   string `json:"stderr" text:"%s" doc:"Standard error, likewise."`
	ExitCode int    `json:"exitCode" text:"[exit code %d]" doc:"The exit status; 128+n if signal n killed it."`
	Signal   string `json:"signal,omitempty" doc:"The signal that killed it."`
	RunSummary
}

func runCommand(ctx context.Context, c *operation.Call, in *commandIn) (*commandOut, error) {
	command := requestjson.Command{Start: in.Start}
	command.Command, command.Args = program(in.Command, in.Args)
	var run *runtime.Result
	var err error
	if in.SandboxID == "" {
		run, err = operation.Perform[*runtime.Result](ctx, c, "command", &requestjson.CommandRequest{Command: command})
	} else {
		run, err = operation.Perform[*runtime.Result](ctx, c, "commandIn", &requestjson.CommandIn{InSandbox: requestjson.InSandbox{Sandbox: in.SandboxID}, Command: command})
	}
	if err != nil {
		return nil, err
	}
	o := &overflow{ctx: ctx, call: c, sandbox: in.SandboxID}
	stdout, stderr := string(run.Stdout), string(run.Stderr)
	forStdout, forStderr := shares(stdout, stderr)
	out := &commandOut{
		Stdout: o.fit("stdout.txt", "text/plain", stdout, forStdout), Stderr: o.fit("stderr.txt", "text/plain", stderr, forStderr),
		ExitCode: run.ExitCode, Signal: run.Signal,
	}
	if run.Truncated.Stdout || run.Truncated.Stderr {
		o.note("[the command printed more than its sandbox keeps]")
	}
	out.RunSummary = newSummary(o, run.Cause, run.Duration, run.Usage, run.Denials)
	out.failed = run.ExitCode != 0 || run.Cause != ""
	return out, nil
}

// program returns the program of a call: the shell for a line.
func program(command string, args []string) (name string, list []string) {
	if args == nil {
		return "/bin/sh", []string{"-c", command}
	}
	return command, args
}

// processIn is the union of the arguments of the process tools.
type processIn struct {
	InSandbox
	ProcessID string `json:"processId" maxLength:"64" doc:"The process, from start_process."`
	Command   string `json:"command" minLength:"1" maxLength:"131072" doc:"Without args, a line for the shell, such as \"npm run dev\". With args, the program alone."`
	requestjson.ProcessRequest
	requestjson.Input
	Cursor string `json:"cursor,omitempty" maxLength:"64" doc:"The cursor of the last result: only later output is returned. Omit it for all output that is kept."`
	WaitMs int64  `json:"waitMs,omitempty" minimum:"0" doc:"How long to wait for new output or the end; 1,000 by default, at most 30,000."`
	Signal string `json:"signal,omitempty" maxLength:"16" doc:"The signal to send first: SIGTERM by default. After two seconds the process is killed with all its descendants."`
}

// processTools are the tools for background processes.
func processTools() []*tool {
	return []*tool{
		newTool(tool{open: true}, operation.Operation{
			Name: "start_process", Summary: "Start a process", Fields: []string{"sandboxId", "command", "args", "cwd", "env", "timeoutMs", "waitMs"},
			Doc: "Starts a program in a sandbox that continues in the background, such as a server, and returns its first output. Use read_process for later output, write_process for its input, and stop_process to end it. It ends with its sandbox.",
		}, startProcess),
		newTool(tool{does: reads}, operation.Operation{
			Name: "read_process", Summary: "Read a process's output", Fields: []string{"sandboxId", "processId", "cursor", "waitMs"},
			Doc: "Returns the output of a background process since a cursor, and whether it still runs. It waits for new output.",
		}, readProcess),
		newTool(tool{}, operation.Operation{
			Name: "write_process", Summary: "Write to a process", Fields: []string{"sandboxId", "processId", "text", "close"},
			Doc: "Writes to the standard input of a background process.",
		}, writeProcess),
		newTool(tool{}, operation.Operation{
			Name: "stop_process", Summary: "Stop a process", Fields: []string{"sandboxId", "processId", "cursor", "signal"},
			Doc: "Ends a background process with its descendants, and returns the rest of its output.",
		}, stopProcess),
	}
}

func (in *processIn) process() requestjson.InProcess {
	return requestjson.InProcess{InSandbox: in.in(), Process: in.ProcessID}
}

// processOut describes a process.
type processOut struct {
	Output    string        `json:"output" text:"%s" doc:"Its new output, of both streams in order: at most some 40,000 characters."`
	Lost      bool          `json:"lost" text:"[earlier output is gone]" doc:"Whether output before this is gone, because only the last 1 MiB is kept."`
	More      bool          `json:"more" text:"[there is more: use read_process with the cursor]" doc:"Whether there is more output already."`
	ProcessID string        `json:"processId" text:"[process %s]" doc:"The process, for read_process, write_process and stop_process."`
	Cursor    string        `json:"cursor" text:"[cursor %s]" doc:"The position after this output, for read_process."`
	Running   bool          `json:"running" text:"[running]" doc:"Whether it has not ended."`
	ExitCode  *int          `json:"exitCode,omitempty" text:"[exit code %d]" doc:"The exit status; 128+n if signal n killed it. Absent while it runs."`
	Signal    string        `json:"signal,omitempty" doc:"The signal that killed it."`
	Cause     runtime.Cause `json:"cause,omitempty" text:"[ended by gaol: %s]" doc:"Why gaol or the kernel ended it, as for run_command."`
	Failure   string        `json:"failure,omitempty" text:"[ended: %s]" doc:"Why there is no exit code although it has ended."`
	Denials   denials       `json:"denials" text:"%s" doc:"What permissions denied, and what would allow it. Complete when it has ended."`
}

const (
	defaultWait = 1000 // milliseconds
	maxWait     = 30_000
	stopGrace   = 2000
)

func startProcess(ctx context.Context, c *operation.Call, in *processIn) (*processOut, error) {
	in.ProcessRequest.Command, in.Args = program(in.Command, in.Args)
	p, err := operation.Perform[*resultjson.ProcessInfo](ctx, c, "spawn", &requestjson.SpawnIn{InSandbox: in.in(), ProcessRequest: in.ProcessRequest})
	if err != nil {
		return nil, err
	}
	in.ProcessID = p.ID
	return readProcess(ctx, c, in)
}

// inputOut is the result of write_process.
type inputOut struct {
	ProcessID string `json:"processId"`
	Bytes     int    `json:"bytes" text:"[%d bytes]" doc:"Bytes written."`
}

func writeProcess(ctx context.Context, c *operation.Call, in *processIn) (*inputOut, error) {
	_, err := operation.Perform[any](ctx, c, "writeProcess", &requestjson.StdinIn{InProcess: in.process(), Input: in.Input})
	return &inputOut{in.ProcessID, len(in.Text)}, err
}

func stopProcess(ctx context.Context, c *operation.Call, in *processIn) (*processOut, error) {
	for _, signal := range []string{cmp.Or(in.Signal, "SIGTERM"), "SIGKILL"} {
		_, err := operation.Perform[any](ctx, c, "signalProcess", &requestjson.SignalIn{InProcess: in.process(), Signal: signal})
		if failed, ok := errors.AsType[*service.Error](err); err != nil && (!ok || failed.Code != service.Closed) {
			return nil, err
		}
		info, err := operation.Perform[*resultjson.ProcessInfo](ctx, c, "waitProcess", &requestjson.WaitIn{InProcess: in.process(), TimeoutMs: stopGrace})
		if err != nil {
			return nil, err
		}
		if info.State == resultjson.Ended {
			break
		}
	}
	out, err := readProcess(ctx, c, in)
	_, failed := operation.Perform[any](ctx, c, "deleteProcess", new(in.process()))
	return out, errors.Join(err, failed)
}

// readProcess waits until a process has output after a cursor, has ended, or the wait is over, and describes it.
func readProcess(ctx context.Context, c *operation.Call, in *processIn) (*processOut, error) {
	at, err := strconv.ParseUint(cmp.Or(in.Cursor, "0"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("cursor %.64q: want the cursor of an earlier result", in.Cursor)
	}
	out := &processOut{ProcessID: in.ProcessID, Running: true, Denials: denials{}}
	info, err := out.follow(ctx, c, in, at)
	if err != nil || out.Running {
		return out, err
	}
	out.Failure = info.Failure
	if run := info.Result; run != nil {
		out.ExitCode, out.Signal, out.Cause = &run.ExitCode, run.Signal, run.Cause
		out.Denials = newDenials(c, in.SandboxID, run.Denials)
	}
	return out, nil
}

var errFull = errors.New("the result is full")

// follow adds the output after a position. If there is none, it waits for some, and then takes what has been printed
// together.
func (r *processOut) follow(ctx context.Context, c *operation.Call, in *processIn, at uint64) (*resultjson.ProcessInfo, error) {
	wait := min(cmp.Or(in.WaitMs, defaultWait), maxWait)
	waiting, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Millisecond)
	defer cancel()
	var text strings.Builder
	watched := *c
	watched.To = func(event service.Event) error {
		if text.Len() == 0 {
			time.AfterFunc(settle, cancel)
		}
		switch data := event.Data.(type) {
		case resultjson.Gap:
			r.Lost = true
		case resultjson.Output:
			if text.Len()+len(data.Text) > maxText { // one event always fits
				r.More = true
				return errFull
			}
			text.WriteString(data.Text)
		}
		at = event.ID
		return nil
	}
	info, err := operation.Perform[*resultjson.ProcessInfo](waiting, &watched, "followProcess", &requestjson.FollowIn{InProcess: in.process(), After: at})
	r.Output, r.Cursor = text.String(), strconv.FormatUint(at, 10)
	switch {
	case info == nil:
		return nil, err
	case err == nil: // at the last event; the end follows
		r.Running = false
		return operation.Perform[*resultjson.ProcessInfo](ctx, c, "waitProcess", &requestjson.WaitIn{InProcess: in.process()})
	case r.More:
		r.Running = info.State != resultjson.Ended
	}
	return info, ctx.Err()
}

// settle is how long more output is awaited after the first.
const settle = 50 * time.Millisecond
