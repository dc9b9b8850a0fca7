package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs"
)

// task is what one run starts, before its pipes exist.
type task struct {
	command  sandbox.Command // without the runtime's part, see NodeRuntime.command
	dir      vfs.Path
	rules    *sandbox.Rules // nil: the runtime's
	network  NetworkLimits
	launcher Launcher
	reason   string   // why launcher is not the runtime's
	args     []string // as the caller gave them

	feed *feed // nil unless the run is followed

	calls CallLimits

	grace time.Duration // as EvaluateOptions.Grace

	// The following are for a Node program.
	folder    string         // of the program, in sandbox.ProgramDir
	program   *guest.Program // nil for a Command
	functions []hostcall.Function
	main      *cell  // the program's report; nil in a context
	cells     *cells // nil except in a context
}

// lowering makes the task of a run from its options. Whether the caller waits for the run,
// follows it or spawns it does not matter for that. ctx bounds the work on its code.
type lowering func(ctx context.Context, s settings, o RunOptions) (*task, error)

// imageCommand lowers any program of the image.
func imageCommand(name string, args []string) lowering {
	return func(_ context.Context, s settings, o RunOptions) (*task, error) {
		if name == "" || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("command %q: no program's name", name)
		}
		if len(o.Args) > 0 {
			return nil, optionError("Args", "a command's arguments are Command's own")
		}
		o.Args = args
		t, err := s.newTask(o)
		if err != nil {
			return nil, err
		}
		t.command.Path, t.command.Args = name, args
		return t, nil
	}
}

// newTask lowers the options that all programs have.
func (s settings) newTask(o RunOptions) (t *task, err error) {
	t = &task{command: s.command(), launcher: s.Launcher, args: o.Args, network: o.Network, calls: s.Calls}
	t.folder = s.programs.next(s.plan.Restricts)
	if err := o.Network.validate(); err != nil {
		return nil, optionError("Network", "%w", err)
	}
	if t.dir, err = vfs.ParsePath(cmp.Or(o.Cwd, string(s.cwd))); err != nil {
		return nil, optionError("Cwd", "%w", err)
	}
	t.command.Dir = string(t.dir)
	if err := checkArgs(o.Args); err != nil {
		return nil, err
	}
	if o.OnOutputLimit < TruncateOutput || o.OnOutputLimit > KillOnOutput {
		return nil, optionError("OnOutputLimit", "action %d is not valid", o.OnOutputLimit)
	}
	env := maps.Clone(s.env)
	if err := overlayEnv(env, o.Env); err != nil {
		return nil, optionError("Env", "%w", err)
	}
	if !o.Permissions.IsZero() {
		if t.rules, err = s.narrowed(o.Permissions, t.folder); err != nil {
			return nil, optionError("Permissions", "%w", err)
		}
	}
	// After the overlay: a run can't bring back a variable that the runtime's permissions hide.
	maps.DeleteFunc(env, func(name, _ string) bool {
		return !s.Permissions.PassesEnv(name) || t.rules != nil && !t.rules.Permissions.PassesEnv(name)
	})
	if s.Commands != nil {
		addCommandsPath(env)
	}
	t.command.Env = envList(env)
	return t, nil
}

// command returns the part of a command that depends on the limits alone.
//
// The tree bounds its own size. The limit of a file's length is for sparse files, which
// occupy nothing but are read as zeros. A folder of the host that the guest writes to has
// no such limit, and the kernel has only one for all files of a process.
func (s settings) command() sandbox.Command {
	l := s.Limits
	c := sandbox.Command{
		Limits:    sandbox.Limits{Memory: l.Memory, CPUs: l.CPUs, Pids: l.Pids},
		OpenFiles: l.Files,
	}
	if !slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Access == ReadWrite }) {
		c.FileSize = l.Disk
	}
	return c
}

// startNode makes the task start a new Node although the runtime forks others.
func (t *task) startNode(reason string) {
	if t.launcher == LauncherZygote {
		t.launcher, t.reason = LauncherExec, reason
	}
}

// useTerminal makes the task's standard streams a terminal.
func (t *task) useTerminal() {
	t.command.Terminal = true
	if t.program != nil {
		t.startNode("the program uses a terminal, and the streams of a forked Node are pipes")
	}
}

// command completes a task's command with the runtime's rules.
func (rt *NodeRuntime) command(t *task) sandbox.Command {
	c := t.command
	c.Rules = cmp.Or(t.rules, rt.rules)
	if t.launcher != LauncherZygote {
		c.Script = 0
	}
	return c
}

// killed returns the result of a run that ended before its program began.
func (t *task) killed(cause Cause) *Result {
	return &Result{ExitCode: killedCode, Signal: killedSignal, Cause: cause, Launcher: t.launcher, LauncherReason: t.reason}
}

// Sizes of arguments and variables.
const (
	maxString  = 128 << 10 // MAX_ARG_STRLEN of execve(2), including the final NUL
	maxStrings = 768 << 10 // of all arguments, and of all variables: execve(2) allows 2 MiB for both with the usual stack
)

// baseEnv returns the variables that a run has unless the caller replaces them.
func baseEnv() map[string]string {
	return map[string]string{
		"PATH":   "/usr/local/bin:/usr/bin:/bin:" + string(vfs.Home) + "/.local/bin", // of npm install -g, pip and others
		"HOME":   string(vfs.Home),
		"USER":   "node",
		"LANG":   nodeLang,
		"TMPDIR": "/tmp",
	}
}

var errEnvName = errors.New("a variable's name has at least one character and no '=' or NUL")

// overlayEnv checks extra and adds it to env.
func overlayEnv(env, extra map[string]string) error {
	for name, value := range extra {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("%q: %w", name, errEnvName)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("%q: the value has a NUL", name)
		case len(name)+len(value)+2 > maxString:
			return fmt.Errorf("%q: longer than %d bytes", name, maxString)
		}
		env[name] = value
	}
	total := 0
	for name, value := range env {
		total += len(name) + len(value) + 2
	}
	if total > maxStrings {
		return fmt.Errorf("all variables together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}

// envList returns variables as execve takes them, in a stable order.
func envList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func checkArgs(args []string) error {
	total := 0
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return optionError("Args", "%q has a NUL", arg)
		}
		if len(arg) >= maxString {
			return optionError("Args", "an argument has %d bytes, the limit is %d", len(arg), maxString-1)
		}
		total += len(arg) + 1
	}
	if total > maxStrings {
		return optionError("Args", "all together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}
