package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// processTools are the tools for background processes.
func processTools() []*tool {
	return []*tool{
		define(tool{open: true}, operation.Operation{
			Name: "start_process", Summary: "Start a process", Fields: []string{"sandboxId", "command", "args", "cwd", "env", "timeoutMs", "waitMs"},
			Doc: "Starts a program in a sandbox that continues in the background, such as a server, and returns its first output. Use read_process for later output, write_process for its input, and stop_process to end it. It ends with its sandbox.",
		}, startProcess),
		define(tool{does: reads}, operation.Operation{
			Name: "read_process", Summary: "Read a process's output",
			Doc: "Returns the output of a background process since a cursor, and whether it still runs. It waits for new output.",
		}, readProcess),
		define(tool{}, operation.Operation{
			Name: "write_process", Summary: "Write to a process", Fields: []string{"sandboxId", "processId", "text", "close"},
			Doc: "Writes to the standard input of a background process.",
		}, writeProcess),
		define(tool{}, operation.Operation{
			Name: "stop_process", Summary: "Stop a process",
			Doc: "Ends a background process with its descendants, and returns the rest of its output.",
		}, stopProcess),
	}
}

type startIn struct {
	InSandbox
	Command string `json:"command" minLength:"1" maxLength:"131072" doc:"Without args, a line for the shell, such as \"npm run dev\". With args, the program alone."`
	requestjson.ProcessRequest
	Wait
}

// InProcess names a process.
type InProcess struct {
	InSandbox
	ProcessID string `json:"processId" maxLength:"64" doc:"The process, from start_process."`
}

func (in InProcess) process() requestjson.InProcess {
	return requestjson.InProcess{InSandbox: in.in(), Process: in.ProcessID}
}

// Wait is how long to wait for output.
type Wait struct {
	WaitMs int64 `json:"waitMs,omitempty" minimum:"0" doc:"How long to wait for new output or the end; 1,000 by default, at most 30,000."`
}

// Since is a position in the output.
type Since struct {
	Cursor string `json:"cursor,omitempty" maxLength:"64" doc:"The cursor of the last result: only later output is returned. Omit it for all output that is kept."`
}

type pollIn struct {
	InProcess
	Since
	Wait
}

type inputIn struct {
	InProcess
	requestjson.Input
}

type stopIn struct {
	InProcess
	Since
	Signal string `json:"signal,omitempty" maxLength:"16" doc:"The signal to send first: SIGTERM by default. After two seconds the process is killed with all its descendants."`
}

// processOut describes a process.
type processOut struct {
	ProcessID string        `json:"processId" doc:"The process, for read_process, write_process and stop_process."`
	Output    string        `json:"output" doc:"Its new output, of both streams in order: at most some 40,000 characters."`
	Cursor    string        `json:"cursor" doc:"The position after this output, for read_process."`
	More      bool          `json:"more" doc:"Whether there is more output already."`
	Lost      bool          `json:"lost" doc:"Whether output before this is gone, because only the last 1 MiB is kept."`
	Running   bool          `json:"running" doc:"Whether it has not ended."`
	ExitCode  *int          `json:"exitCode,omitempty" doc:"The exit status; 128+n if signal n killed it. Absent while it runs."`
	Signal    string        `json:"signal,omitempty" doc:"The signal that killed it."`
	Cause     runtime.Cause `json:"cause,omitempty" doc:"Why gaol or the kernel ended it, as for run_command."`
	Failure   string        `json:"failure,omitempty" doc:"Why there is no exit code although it has ended."`
	Denials   []denial      `json:"denials" doc:"What permissions denied, and what would allow it. Complete when it has ended."`
}

const (
	defaultWait = 1000 // milliseconds
	maxWait     = 30_000
	stopGrace   = 2000
)

func startProcess(ctx context.Context, c *operation.Call, in *startIn) (*processOut, error) {
	r := in.ProcessRequest
	r.Command, r.Args = program(in.Command, in.Args)
	p, err := operation.Perform[*resultjson.ProcessInfo](ctx, c, "spawn", &requestjson.SpawnIn{InSandbox: in.in(), ProcessRequest: r})
	if err != nil {
		return nil, err
	}
	return poll(ctx, c, pollIn{InProcess: InProcess{in.InSandbox, p.ID}, Wait: in.Wait})
}

func readProcess(ctx context.Context, c *operation.Call, in *pollIn) (*processOut, error) {
	return poll(ctx, c, *in)
}

// inputOut is the result of write_process.
type inputOut struct {
	ProcessID string `json:"processId"`
	Bytes     int    `json:"bytes" doc:"Bytes written."`
}

func writeProcess(ctx context.Context, c *operation.Call, in *inputIn) (*inputOut, error) {
	if _, err := operation.Perform[any](ctx, c, "writeProcess", &requestjson.StdinIn{InProcess: in.process(), Input: in.Input}); err != nil {
		return nil, processError(ctx, c, in.InProcess, err)
	}
	return &inputOut{in.ProcessID, len(in.Text)}, nil
}

func stopProcess(ctx context.Context, c *operation.Call, in *stopIn) (*processOut, error) {
	signal := &requestjson.SignalIn{InProcess: in.process(), Signal: cmp.Or(in.Signal, "SIGTERM")}
	_, err := operation.Perform[any](ctx, c, "signalProcess", signal)
	if failed, ok := errors.AsType[*service.Error](err); err != nil && (!ok || failed.Code != service.Closed) {
		return nil, processError(ctx, c, in.InProcess, err)
	}
	wait := &requestjson.WaitIn{InProcess: in.process(), TimeoutMs: stopGrace}
	if info, err := operation.Perform[*resultjson.ProcessInfo](ctx, c, "waitProcess", wait); err == nil && info.State == resultjson.Running {
		signal.Signal = "SIGKILL"
		_, _ = operation.Perform[any](ctx, c, "signalProcess", signal) // fails if it has ended since
	}
	wait.TimeoutMs = 0
	if _, err := operation.Perform[any](ctx, c, "waitProcess", wait); err != nil {
		return nil, err
	}
	out, err := poll(ctx, c, pollIn{InProcess: in.InProcess, Since: in.Since})
	_, failed := operation.Perform[any](ctx, c, "deleteProcess", new(in.process()))
	return out, errors.Join(err, failed)
}

// processError adds to the error of an unknown process which the sandbox has.
func processError(ctx context.Context, c *operation.Call, in InProcess, err error) error {
	if failed, ok := errors.AsType[*service.Error](err); !ok || failed.Code != service.NotFound {
		return err
	}
	list, missing := operation.Perform[operation.ProcessList](ctx, c, "listProcesses", new(in.in()))
	if missing != nil {
		return missing
	}
	if len(list.Processes) == 0 {
		return &explained{err, "There are no processes in the sandbox: start one with start_process"}
	}
	return &explained{err, "Its processes: " + newest(list.Processes, func(p *resultjson.ProcessInfo) string { return p.ID })}
}

// poll waits until a process has output after a cursor, has ended, or the wait is over, and describes it.
func poll(ctx context.Context, c *operation.Call, in pollIn) (*processOut, error) {
	o, info, err := readOutput(ctx, c, in)
	if err != nil {
		return nil, processError(ctx, c, in.InProcess, err)
	}
	out := &processOut{
		ProcessID: info.ID, Output: o.text.String(), Cursor: strconv.FormatUint(o.at, 10), More: o.full, Lost: o.lost, Denials: []denial{},
		Running: !o.ended,
	}
	if out.Running {
		return out, nil
	}
	out.Failure = info.Failure
	if run := info.Result; run != nil {
		out.ExitCode, out.Signal, out.Cause = &run.ExitCode, run.Signal, run.Cause
		out.Denials = newDenials(c, in.SandboxID, run.Denials)
	}
	return out, nil
}

// content describes the process.
func (r *processOut) content() ([]mcp.Content, bool) {
	status := "[ended: " + r.Failure + "]"
	switch {
	case r.Running:
		status = "[running]"
	case r.Cause != "":
		status = "[ended by gaol: " + string(r.Cause) + "]"
	case r.ExitCode != nil:
		status = fmt.Sprintf("[exit code %d]", *r.ExitCode)
	}
	lost, more := "", ""
	if r.Lost {
		lost = "[earlier output is gone]"
	}
	if r.More {
		more = "[there is more: read_process with cursor " + r.Cursor + "]"
	}
	return texts(paragraphs(append([]string{r.Output, lost, more, "process " + r.ProcessID + " " + status}, denialLines(r.Denials)...)...)), false
}

// output is a part of a process's output.
type output struct {
	text  strings.Builder
	at    uint64 // the last event that it contains
	lost  bool
	full  bool // there is more
	ended bool // the process has ended
}

var errFull = errors.New("the result is full")

// readOutput returns the output after a position. If there is none, it waits for some, and then takes what
// has been printed together.
func readOutput(ctx context.Context, c *operation.Call, in pollIn) (o *output, info *resultjson.ProcessInfo, err error) {
	o = &output{}
	if o.at, err = strconv.ParseUint(cmp.Or(in.Cursor, "0"), 10, 64); err != nil {
		return nil, nil, fmt.Errorf("cursor %.64q: want the cursor of an earlier result", in.Cursor)
	}
	wait := min(cmp.Or(in.WaitMs, defaultWait), maxWait)
	waiting, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Millisecond)
	defer cancel()
	watched := *c
	watched.To = func(event service.Event) error {
		if o.text.Len() == 0 {
			time.AfterFunc(settle, cancel)
		}
		return o.add(event)
	}
	follow := &requestjson.FollowIn{InProcess: in.process(), After: o.at}
	info, err = operation.Perform[*resultjson.ProcessInfo](waiting, &watched, "followProcess", follow)
	switch {
	case info == nil:
		return nil, nil, err
	case err == nil: // at the last event; the end follows
		info, err = operation.Perform[*resultjson.ProcessInfo](ctx, c, "waitProcess", &requestjson.WaitIn{InProcess: in.process()})
		o.ended = true
		return o, info, err
	case o.full:
		o.ended = info.State == resultjson.Ended
	}
	return o, info, ctx.Err()
}

// settle is how long more output is awaited after the first.
const settle = 50 * time.Millisecond

// add adds an event.
func (o *output) add(event service.Event) error {
	switch data := event.Data.(type) {
	case resultjson.Gap:
		o.lost = true
	case resultjson.Output:
		if o.text.Len()+len(data.Text) > maxText { // one event always fits
			o.full = true
			return errFull
		}
		o.text.WriteString(data.Text)
	}
	o.at = event.ID
	return nil
}
