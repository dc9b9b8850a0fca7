package sandboxtools

import (
	"context"
	"strings"
	"time"

	"gaol/runtime"
)

// Command is sandbox_command: it runs a program, without a shell, and waits for its end.
func (t *Toolbox) Command(ctx context.Context, a CommandArgs) (CommandResult, error) {
	return use(ctx, t, "sandbox_command", a, command)
}

func command(ctx context.Context, s *sandbox, a CommandArgs) (CommandResult, error) {
	dir, err := s.path("workingDirectory", a.WorkingDirectory)
	if err != nil {
		return CommandResult{}, err
	}
	if err := checkTotals(a); err != nil {
		return CommandResult{}, err
	}
	o := runtime.RunOptions{Cwd: dir, Env: map[string]string{}, Timeout: time.Duration(a.Timeout) * time.Millisecond}
	for _, v := range a.EnvVars {
		name, value, _ := strings.Cut(v, "=")
		o.Env[name] = value
	}
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.commands, cancel)()
	res, err := s.rt.Command(limit, a.Executable, a.Args, o)
	switch {
	case err != nil && ctx.Err() == nil && s.commands.Err() != nil:
		return CommandResult{}, refuse(Closed, "containerId", "sandbox %q runs nothing more", s.id)
	case err != nil:
		return CommandResult{}, err
	}
	return CommandResult{
		Stdout: textOf(res.Stdout, res.Truncated.Stdout), Stderr: textOf(res.Stderr, res.Truncated.Stderr),
		ExitCode: int64(res.ExitCode), TimedOut: res.Cause == runtime.CauseTimeout, Cause: string(res.Cause),
		StdoutTruncated: res.Truncated.Stdout, StderrTruncated: res.Truncated.Stderr,
	}, nil
}

// maxStrings is what a run's arguments have at most, and its variables, in bytes with a
// NUL for each. Of the runtime's bound on variables, half is left for its own.
const (
	maxArgs = 768 << 10
	maxVars = 384 << 10
)

func checkTotals(a CommandArgs) error {
	for _, f := range []struct {
		name string
		list []string
		most int
	}{{"args", a.Args, maxArgs}, {"envVars", a.EnvVars, maxVars}} {
		total := 0
		for _, s := range f.list {
			total += len(s) + 1
		}
		if total > f.most {
			return refuse(InvalidArgument, f.name, "all together have %d bytes, the limit is %d", total, f.most)
		}
	}
	return nil
}

// textOf is output as text. A character that was cut at the end is left out.
func textOf(out []byte, truncated bool) string {
	if truncated {
		out = out[:wholeRunes(out)]
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}
