package sandboxtools

import (
	"cmp"
	"context"
	"strings"
	"time"

	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// The most bytes of all texts of a list, with a NUL for each. The runtime's limit on variables is twice
// the total here: the other half is left for the sandbox's own.
const (
	maxArgs    = 768 << 10
	maxEnvVars = 384 << 10
)

// bounded returns an error for texts with more bytes than a limit.
func bounded(place string, list []string, limit int) error {
	total := len(list)
	for _, text := range list {
		total += len(text)
	}
	if total > limit {
		return refuse(InvalidArgument, place, "%d bytes in total, the limit is %d", total, limit)
	}
	return nil
}

// command implements sandbox_command: it runs a program, without a shell, and waits until
// it exits.
func (s *sandbox) command(ctx context.Context, a *CommandArgs) (CommandResult, error) {
	o := runtime.RunOptions{Env: map[string]string{}, Timeout: time.Duration(cmp.Or(a.Timeout, defaultTimeout)) * time.Millisecond}
	for _, v := range a.EnvVars {
		name, value, _ := strings.Cut(v, "=")
		o.Env[name] = value
	}
	err := cmp.Or(bounded("args", a.Args, maxArgs), bounded("envVars", a.EnvVars, maxEnvVars))
	if err == nil {
		o.Cwd, err = s.resolve("workingDirectory", a.WorkingDirectory)
	}
	if err != nil {
		return CommandResult{}, err
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.commands, cancel)()
	release, err := admitted(s.toolbox.o.Start(run, s.rt.Limits()))
	if err != nil {
		return CommandResult{}, err
	}
	defer release()
	res, err := s.rt.Command(run, a.Executable, a.Args, o)
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

const defaultTimeout = 30_000 // milliseconds

// outputText converts output to valid UTF-8, without a character that truncation has cut.
func outputText(out []byte, truncated bool) string {
	if truncated {
		out = out[:len(out)-resultjson.Incomplete(out)]
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}
