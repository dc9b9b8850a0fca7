package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// StartArgs are the arguments of start_process.
type StartArgs struct {
	SandboxID string            `json:"sandboxId" jsonschema:"The sandbox."`
	Command   string            `json:"command" jsonschema:"Without args, a line for the shell, such as \"npm run dev\". With args, the program alone."`
	Args      []string          `json:"args,omitempty" jsonschema:"The program's arguments, which no shell changes."`
	Cwd       string            `json:"cwd,omitempty" jsonschema:"The working directory; /workspace by default."`
	Env       map[string]string `json:"env,omitempty" jsonschema:"Environment variables."`
	TimeoutMs int64             `json:"timeoutMs,omitempty" jsonschema:"Time limit in milliseconds; by default the process lives as long as its sandbox."`
	WaitMs    int64             `json:"waitMs,omitempty" jsonschema:"How long to wait for its first output or its end; 1,000 by default, at most 30,000."`
}

// ProcessArgs name a process.
type ProcessArgs struct {
	SandboxID string `json:"sandboxId" jsonschema:"The sandbox."`
	ProcessID string `json:"processId" jsonschema:"The process, from start_process."`
}

// PollArgs are the arguments of read_process.
type PollArgs struct {
	ProcessArgs
	Cursor string `json:"cursor,omitempty" jsonschema:"The cursor of the last result: only later output is returned. Omit it for all output that is kept."`
	WaitMs int64  `json:"waitMs,omitempty" jsonschema:"How long to wait for new output or the end; 1,000 by default, at most 30,000."`
}

// InputArgs are the arguments of write_process.
type InputArgs struct {
	ProcessArgs
	Text  string `json:"text,omitempty" jsonschema:"Text for its standard input. Lines end with a newline."`
	Close bool   `json:"close,omitempty" jsonschema:"Close the standard input afterwards."`
}

// StopArgs are the arguments of stop_process.
type StopArgs struct {
	ProcessArgs
	Cursor string `json:"cursor,omitempty" jsonschema:"The cursor of the last result, for the output since."`
	Signal string `json:"signal,omitempty" jsonschema:"The signal to send first: SIGTERM by default. After two seconds the process is killed with all its descendants."`
}

// ProcessResult describes a process.
type ProcessResult struct {
	ProcessID string   `json:"processId" jsonschema:"The process, for read_process, write_process and stop_process."`
	Output    string   `json:"output" jsonschema:"Its new output, of both streams in order: at most some 40,000 characters."`
	Cursor    string   `json:"cursor" jsonschema:"The position after this output, for read_process."`
	More      bool     `json:"more" jsonschema:"Whether there is more output already."`
	Lost      bool     `json:"lost" jsonschema:"Whether output before this is gone, because only the last 1 MiB is kept."`
	Running   bool     `json:"running" jsonschema:"Whether it has not ended."`
	ExitCode  *int     `json:"exitCode,omitempty" jsonschema:"The exit status; 128+n if signal n killed it. Absent while it runs."`
	Signal    string   `json:"signal,omitempty" jsonschema:"The signal that killed it."`
	Cause     string   `json:"cause,omitempty" jsonschema:"Why gaol or the kernel ended it, as for run_command."`
	Failure   string   `json:"failure,omitempty" jsonschema:"Why there is no exit code although it has ended."`
	Denials   []Denial `json:"denials" jsonschema:"What permissions denied, and what would allow it. Complete when it has ended."`
}

// InputResult is the result of write_process.
type InputResult struct {
	ProcessID string `json:"processId"`
	Bytes     int    `json:"bytes" jsonschema:"Bytes written."`
}

// addProcessTools adds the tools for background processes.
func (e *endpoint) addProcessTools() {
	wait, sandbox, process := atLeastZero("waitMs"), longest("sandboxId", 64), longest("processId", 64)
	add(e, describe("start_process", "Start a process", `Starts a program in a sandbox that continues in the background, such as a server, and returns its first output. Use read_process for later output, write_process for its input, and stop_process to end it. It ends with its sandbox.`, changes, false, true),
		e.startProcess, wait, sandbox, atLeastZero("timeoutMs"), shortest("command", 1), longest("command", 128<<10))
	add(e, describe("read_process", "Read a process's output", `Returns the output of a background process since a cursor, and whether it still runs. It waits for new output.`, reads, false, false),
		e.readProcess, wait, sandbox, process, longest("cursor", 64))
	add(e, describe("write_process", "Write to a process", `Writes to the standard input of a background process.`, changes, false, false),
		e.writeProcess, sandbox, process, longest("text", 1<<20))
	add(e, describe("stop_process", "Stop a process", `Ends a background process with its descendants, and returns the rest of its output.`, changes, false, false),
		e.stopProcess, sandbox, process, longest("cursor", 64), longest("signal", 16))
}

const (
	maxWait   = 30 * time.Second
	stopGrace = 2 * time.Second
)

func (e *endpoint) startProcess(ctx context.Context, _ *mcp.CallToolRequest, a StartArgs) (*mcp.CallToolResult, *ProcessResult, error) {
	sb, err := e.acquire(a.SandboxID)
	if err != nil {
		return nil, nil, err
	}
	defer sb.Release()
	audit.Of(ctx).SetSandbox(sb.ID)
	name, args := program(a.Command, a.Args)
	p, err := sb.Spawn(ctx, requestjson.ProcessRequest{Command: name, Args: args, Cwd: a.Cwd, Env: a.Env, TimeoutMs: a.TimeoutMs})
	if err != nil {
		return nil, nil, err
	}
	return e.processResult(ctx, sb, p, "", a.WaitMs)
}

// inProcess calls do with a process.
func (e *endpoint) inProcess(ctx context.Context, a ProcessArgs, do func(*service.Sandbox, *service.Process) error) error {
	sb, err := e.acquire(a.SandboxID)
	if err != nil {
		return err
	}
	defer sb.Release()
	audit.Of(ctx).SetSandbox(sb.ID)
	p, err := sb.Process(a.ProcessID)
	if err != nil {
		return &explained{err, processHint(sb)}
	}
	return do(sb, p)
}

// processHint lists the processes of a sandbox.
func processHint(sb *service.Sandbox) string {
	var ids []string
	list := sb.SpawnedProcesses()
	for _, p := range list[max(0, len(list)-maxNamed):] {
		ids = append(ids, p.ID)
	}
	if len(ids) == 0 {
		return "The sandbox has no processes: start one with start_process"
	}
	return "Its processes: " + strings.Join(ids, ", ")
}

func (e *endpoint) readProcess(ctx context.Context, _ *mcp.CallToolRequest, a PollArgs) (res *mcp.CallToolResult, out *ProcessResult, err error) {
	err = e.inProcess(ctx, a.ProcessArgs, func(sb *service.Sandbox, p *service.Process) (err error) {
		res, out, err = e.processResult(ctx, sb, p, a.Cursor, a.WaitMs)
		return err
	})
	return res, out, err
}

func (e *endpoint) writeProcess(ctx context.Context, _ *mcp.CallToolRequest, a InputArgs) (*mcp.CallToolResult, *InputResult, error) {
	err := e.inProcess(ctx, a.ProcessArgs, func(_ *service.Sandbox, p *service.Process) error {
		return p.WriteStdin(ctx, requestjson.Input{Text: a.Text, Close: a.Close})
	})
	if err != nil {
		return nil, nil, err
	}
	return textResult(fmt.Sprintf("wrote %d bytes", len(a.Text))), &InputResult{a.ProcessID, len(a.Text)}, nil
}

func (e *endpoint) stopProcess(ctx context.Context, _ *mcp.CallToolRequest, a StopArgs) (res *mcp.CallToolResult, out *ProcessResult, err error) {
	err = e.inProcess(ctx, a.ProcessArgs, func(sb *service.Sandbox, p *service.Process) error {
		err := p.Signal(cmp.Or(a.Signal, "SIGTERM"), false)
		if failed, ok := errors.AsType[*service.Error](err); err != nil && (!ok || failed.Code != service.Closed) {
			return err
		}
		grace, cancel := context.WithTimeout(ctx, stopGrace)
		defer cancel()
		if p.Wait(grace).State == resultjson.Running {
			_ = p.Signal("SIGKILL", false) // fails if it has ended since
			p.Wait(ctx)
		}
		res, out, err = e.processResult(ctx, sb, p, a.Cursor, 0)
		return errors.Join(err, p.Delete(ctx))
	})
	return res, out, err
}

// processResult waits until p has output after a cursor, has ended, or the wait is over, and describes it.
func (e *endpoint) processResult(ctx context.Context, sb *service.Sandbox, p *service.Process, cursor string, waitMs int64) (*mcp.CallToolResult, *ProcessResult, error) {
	wait := min(time.Duration(waitMs)*time.Millisecond, maxWait)
	if waitMs == 0 {
		wait = time.Second
	}
	o, err := readOutput(ctx, p, cursor, wait)
	if err != nil {
		return nil, nil, err
	}
	out := &ProcessResult{ProcessID: p.ID, Output: o.text.String(), Cursor: o.at.String(), More: o.full, Lost: o.lost, Denials: []Denial{}}
	status := "[running]"
	if out.Running = !o.ended; o.ended {
		info := p.Info()
		status = "[ended: " + info.Failure + "]"
		if out.Failure = info.Failure; info.Result != nil {
			status = out.endedBy(info.Result)
			out.Denials = e.denials(sb.Permissions(), info.Result.Denials)
		}
	}
	notes := []string{}
	if o.lost {
		notes = append(notes, "[earlier output is gone]")
	}
	if o.full {
		notes = append(notes, "[there is more: read_process with cursor "+out.Cursor+"]")
	}
	text := paragraphs(append(append([]string{out.Output}, notes...), append([]string{"process " + p.ID + " " + status}, denialLines(out.Denials)...)...)...)
	return textResult(text), out, nil
}

// endedBy records how the process has ended, and describes it.
func (r *ProcessResult) endedBy(run *resultjson.Run) string {
	r.ExitCode, r.Signal, r.Cause = &run.ExitCode, run.Signal, string(run.Cause)
	if r.Cause != "" {
		return "[ended by gaol: " + r.Cause + "]"
	}
	return fmt.Sprintf("[exit code %d]", run.ExitCode)
}

// cursor is a position in the output of a process: the event that was returned last, and how many bytes
// of the next one were.
type cursor struct {
	event uint64
	bytes int
}

func (c cursor) String() string { return fmt.Sprintf("%d.%d", c.event, c.bytes) }

func parseCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	var rest string
	if n, _ := fmt.Sscanf(s, "%d.%d%s", &c.event, &c.bytes, &rest); n != 2 || c.bytes < 0 {
		return c, fmt.Errorf("cursor %.64q: want the cursor of an earlier result", s)
	}
	return c, nil
}

// output is a part of a process's output.
type output struct {
	text  strings.Builder
	at    cursor
	lost  bool
	full  bool // there is more
	ended bool // the process has ended
}

var errFull = errors.New("the result is full")

// readOutput returns the output after a position. If there is none, it waits for some, and then takes what
// has been printed together.
func readOutput(ctx context.Context, p *service.Process, from string, wait time.Duration) (o *output, err error) {
	o = &output{}
	if o.at, err = parseCursor(from); err != nil {
		return nil, err
	}
	if _, err := p.HasMore(o.at.event); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = p.Follow(waiting, o.at.event, func(event service.Event) error {
		if o.text.Len() == 0 {
			time.AfterFunc(settle, cancel)
		}
		return o.add(event)
	})
	switch {
	case err == nil: // at the last event
		o.ended = p.Wait(ctx).State == resultjson.Ended
	case o.full:
		o.ended = p.Info().State == resultjson.Ended
	}
	return o, ctx.Err()
}

// settle is how long more output is awaited after the first.
const settle = 50 * time.Millisecond

// add adds an event.
func (o *output) add(event service.Event) error {
	switch data := event.Data.(type) {
	case resultjson.Gap:
		o.lost = true
	case resultjson.Output:
		skip := min(o.at.bytes, len(data.Text))
		shown, more := cut(data.Text[skip:], maxText-o.text.Len())
		o.text.WriteString(shown)
		if more {
			o.full = true
			o.at.bytes = skip + len(shown)
			return errFull
		}
	}
	o.at = cursor{event: event.ID}
	return nil
}
