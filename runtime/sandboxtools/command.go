package sandboxtools

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"gaol/runtime"
)

// Command implements sandbox_command: it runs a program, without a shell, and waits until
// it exits.
func (t *Toolbox) Command(ctx context.Context, a CommandArgs) (CommandResult, error) {
	return use(ctx, t, "sandbox_command", a, func(s *sandbox, a CommandArgs) (CommandResult, error) {
		o := runtime.RunOptions{Cwd: a.WorkingDirectory, Env: map[string]string{}, Timeout: time.Duration(a.Timeout) * time.Millisecond}
		for _, v := range a.EnvVars {
			name, value, _ := strings.Cut(v, "=")
			o.Env[name] = value
		}
		run, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.commands, cancel)()
		release, err := t.start(run, s)
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
	})
}

// start calls Options.Start for a command.
func (t *Toolbox) start(ctx context.Context, s *sandbox) (release func(), err error) {
	if t.o.Start == nil {
		return func() {}, nil
	}
	if release, err = t.o.Start(ctx, s.rt.Limits()); err != nil {
		return nil, &Error{Code: Limit, Err: err}
	}
	if release == nil {
		release = func() {}
	}
	return release, nil
}

// outputText converts output to valid UTF-8, without a character that truncation has cut.
func outputText(out []byte, truncated bool) string {
	for i := max(0, len(out)-utf8.UTFMax+1); truncated && i < len(out); i++ {
		if !utf8.FullRune(out[i:]) { // invalid bytes count as full runes
			out = out[:i]
		}
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}
