package mcpserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// CommandArgs are the arguments of run_command.
type CommandArgs struct {
	Command   string            `json:"command" jsonschema:"Without args, a line for the shell, such as \"ls -l | wc -l\". With args, the program alone."`
	Args      []string          `json:"args,omitempty" jsonschema:"The program's arguments, which no shell changes."`
	Cwd       string            `json:"cwd,omitempty" jsonschema:"The working directory; /workspace by default."`
	Env       map[string]string `json:"env,omitempty" jsonschema:"Environment variables."`
	Stdin     string            `json:"stdin,omitempty" jsonschema:"Standard input; empty by default."`
	SandboxID string            `json:"sandboxId,omitempty" jsonschema:"The sandbox to run in. Omit it for a fresh one that is deleted afterwards."`
	TimeoutMs int64             `json:"timeoutMs,omitempty" jsonschema:"Time limit in milliseconds; 30,000 by default."`
}

// CommandResult is the result of run_command.
type CommandResult struct {
	Stdout    string `json:"stdout" jsonschema:"Standard output. Invalid UTF-8 becomes U+FFFD."`
	Stderr    string `json:"stderr" jsonschema:"Standard error, likewise."`
	ExitCode  int    `json:"exitCode" jsonschema:"The exit status; 128+n if signal n killed it."`
	Signal    string `json:"signal,omitempty" jsonschema:"The signal that killed it."`
	Truncated bool   `json:"truncated" jsonschema:"Whether stdout or stderr are incomplete."`
	SandboxID string `json:"sandboxId,omitempty" jsonschema:"The sandbox, if it still exists."`
	runSummary
}

func (e *endpoint) runCommand(ctx context.Context, r *mcp.CallToolRequest, a CommandArgs) (res *mcp.CallToolResult, out *CommandResult, err error) {
	p := newProgress(ctx, r)
	defer p.stop()
	err = e.useSandbox(ctx, a.SandboxID, func(ctx context.Context, sb *service.Sandbox) (keep bool, err error) {
		run, err := e.command(ctx, sb, p, a)
		if err != nil {
			return false, err
		}
		o := &overflow{sb: sb}
		out = e.newCommandResult(o, run)
		if o.kept() || a.SandboxID != "" {
			out.SandboxID = sb.ID
		}
		res = &mcp.CallToolResult{Content: o.content(out.text()), IsError: out.ExitCode != 0 || out.Cause != ""}
		return o.kept(), nil
	})
	return res, out, e.explain(err)
}

// command runs a command in a sandbox.
func (e *endpoint) command(ctx context.Context, sb *service.Sandbox, p *progress, a CommandArgs) (*resultjson.Run, error) {
	name, args := program(a.Command, a.Args)
	audit.Of(ctx).SetSandbox(sb.ID)
	note := func(b []byte) { p.note(string(b[max(0, len(b)-1000):])) }
	start := requestjson.Start{Args: args, Env: a.Env, Cwd: a.Cwd, Stdin: a.Stdin, Timeout: requestjson.Timeout{Ms: a.TimeoutMs}}
	return sb.Command(ctx, requestjson.Command{Command: name, Start: start}, service.Streams{OnOutput: note})
}

// program returns the program of a call: the shell for a line, which has no arguments.
func program(command string, args []string) (name string, list []string) {
	if args == nil {
		return "/bin/sh", []string{"-c", command}
	}
	return command, args
}

func (e *endpoint) newCommandResult(o *overflow, res *resultjson.Run) *CommandResult {
	stdout, stderr := res.Stdout, res.Stderr
	forStdout, forStderr := shares(stdout, stderr)
	out := &CommandResult{
		Stdout: o.fit("stdout.txt", "text/plain", stdout, forStdout), Stderr: o.fit("stderr.txt", "text/plain", stderr, forStderr),
		ExitCode: res.ExitCode, Signal: res.Signal,
		runSummary: summary(res.Cause, res.DurationMs, res.Usage, e.denials(o.sb.Permissions(), res.Denials)),
	}
	if res.Truncated.Stdout || res.Truncated.Stderr {
		o.notes = append(o.notes, "[the command printed more than its sandbox keeps]")
	}
	out.Truncated = len(o.notes) > 0
	return out
}

// text describes a result.
func (r *CommandResult) text() string {
	ended := ""
	switch {
	case r.Cause != "":
		ended = "[ended by gaol: " + r.Cause + "]"
	case r.ExitCode != 0:
		ended = fmt.Sprintf("[exit code %d]", r.ExitCode)
	}
	return paragraphs(append([]string{r.Stdout, r.Stderr, ended}, denialLines(r.Denials)...)...)
}

// encode returns bytes as text, or in base64 if they are none.
func encode(b []byte) (content, encoding string) {
	if utf8.Valid(b) {
		return string(b), "utf8"
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}
