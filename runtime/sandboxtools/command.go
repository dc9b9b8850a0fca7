package sandboxtools

import (
	"cmp"
	"context"
	"strings"
	"time"

	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// command implements sandbox_command: it runs a program, without a shell, and waits until
// it exits.
func (s *sandbox) command(ctx context.Context, a *CommandArgs) (CommandResult, error) {
	o := runtime.RunOptions{Env: map[string]string{}, Timeout: time.Duration(cmp.Or(a.Timeout, 30_000)) * time.Millisecond}
	for _, v := range a.EnvVars {
		name, value, _ := strings.Cut(v, "=")
		o.Env[name] = value
	}
	var err error
	if o.Cwd, err = s.resolve("workingDirectory", a.WorkingDirectory); err != nil {
		return CommandResult{}, err
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.commands, cancel)()
	res, err := s.Command(run, a.Executable, a.Args, o)
	switch {
	case err != nil && ctx.Err() == nil && s.commands.Err() != nil:
		return CommandResult{}, refuse(Closed, "containerId", "sandbox %q is stopped", s.id)
	case err != nil:
		return CommandResult{}, err
	}
	return CommandResult{
		Stdout: outputText(res.Stdout, res.Truncated.Stdout), Stderr: outputText(res.Stderr, res.Truncated.Stderr),
		ExitCode: int64(res.ExitCode), TimedOut: res.Cause == runtime.CauseTimeout, Cause: string(res.Cause),
		StdoutTruncated: res.Truncated.Stdout, StderrTruncated: res.Truncated.Stderr,
	}, nil
}

// outputText converts output to valid UTF-8, without a character that truncation has cut.
func outputText(out []byte, truncated bool) string {
	if truncated {
		out = out[:len(out)-resultjson.Incomplete(out)]
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}
