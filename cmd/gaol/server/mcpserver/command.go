package mcpserver

import (
	"context"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

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
