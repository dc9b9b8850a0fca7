package mcpserver

import (
	"cmp"
	"context"
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
