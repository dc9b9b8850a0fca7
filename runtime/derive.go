package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"gaol/rootfs"
	"gaol/vfs"
)

// StepRunner runs commands of [rootfs.Store.Derive], each in a sandbox of its own. Its native jail is as strong as any
// other; with [rootfs.StepCommand].Owner, its user also owns all files of the image.
type StepRunner struct {
	// Options are the options of the sandboxes. Image, Store, Env, Cwd, Launcher and Zygote are ignored. Zero fields of Limits
	// use the defaults of [StepLimits].
	Options Options

	// Timeout is the time limit of a command. Zero: 10 minutes. Negative: no limit.
	Timeout time.Duration
}

// DefaultStepTimeout is the default of StepRunner.Timeout.
const DefaultStepTimeout = 10 * time.Minute

// StepLimits returns the default limits of steps. They suffice to install the largest packages of npm, and to compile
// native ones.
func StepLimits() Limits {
	l := DefaultLimits()
	l.Memory, l.Disk, l.Files, l.Pids = 1<<30, 4<<30, 1<<18, 256
	return l
}

// Limits returns Options.Limits with the defaults of [StepLimits].
func (r StepRunner) Limits() Limits {
	l, usual := r.Options.Limits, StepLimits()
	l.Memory, l.CPUs, l.Disk = cmp.Or(l.Memory, usual.Memory), cmp.Or(l.CPUs, usual.CPUs), cmp.Or(l.Disk, usual.Disk)
	l.Files, l.Pids = cmp.Or(l.Files, usual.Files), cmp.Or(l.Pids, usual.Pids)
	return l
}

// CommandError is the error of a step whose command failed.
type CommandError struct {
	Result *Result // without output
}

// Error describes the end of the command.
func (e *CommandError) Error() string {
	switch e.Result.Cause {
	case CauseNone:
	case CauseSignal:
		return "the command was killed by " + e.Result.Signal
	default:
		return fmt.Sprintf("the command was ended, cause %s", e.Result.Cause)
	}
	return fmt.Sprintf("the command ended with exit code %d", e.Result.ExitCode)
}

// Key implements [rootfs.Runner]: it returns the permissions, or "" if the options show files or commands of the host.
func (r StepRunner) Key() string {
	o := r.Options
	if len(o.Mounts)+len(o.Files)+len(o.Folders)+len(o.Commands) > 0 || o.NodeModules+o.Snapshot != "" {
		return ""
	}
	text, err := json.Marshal(o.Permissions)
	if err != nil {
		return err.Error() // Create refuses such permissions
	}
	return string(text)
}

// RunStep implements [rootfs.Runner].
func (r StepRunner) RunStep(ctx context.Context, image *rootfs.Image, c rootfs.StepCommand, collect func(changes *os.File) error) (err error) {
	o := r.Options
	if err := o.Isolation.Check(FeatureDerive); err != nil {
		return optionError("Isolation", "%w", err)
	}
	o.Image, o.Store, o.Cwd, o.Launcher = image.ID, image.StoreDir(), "", LauncherExec
	o.Env, o.Limits, o.Zygote = stepEnv(c), r.Limits(), ZygoteOptions{}
	s, err := o.check()
	if err != nil {
		return err
	}
	s.oneOverlay = true
	if err := s.own(c.Owner); err != nil {
		return err
	}
	rt, err := create(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	const script = `mkdir -p "$0" && cd "$0" && exec /bin/sh -c "$1"`
	res, err := rt.Command(ctx, "/bin/sh", []string{"-c", script, c.Dir, c.Script}, RunOptions{
		Timeout: cmp.Or(r.Timeout, DefaultStepTimeout),
		OnEvent: func(e Event) { writeOutput(c, e) },
	})
	if err != nil {
		return err
	}
	if res.ExitCode != 0 || res.Cause != CauseNone {
		return &CommandError{res}
	}
	native, ok := rt.sandbox.(interface{ Changes() (*os.File, error) })
	if !ok {
		return ErrUnsupported
	}
	changes, err := native.Changes()
	if err != nil {
		return err
	}
	defer changes.Close()
	return collect(changes)
}

// own lets the guest own the image, unless its permissions deny all writes there: ownership would allow chmod.
func (s *settings) own(owner bool) error {
	s.owned = owner
	err := s.setPermissions(s.Permissions)
	if err == nil && owner && slices.Contains(s.plan.Sealed, "/") {
		return s.own(false)
	}
	return ofOption("Permissions", err)
}

// stepEnv returns the variables of a step. Installations are for all users, and caches are not kept.
func stepEnv(c rootfs.StepCommand) map[string]string {
	env := map[string]string{"XDG_CACHE_HOME": "/tmp/.cache", "npm_config_cache": "/tmp/.npm", "HOME": string(vfs.Home)}
	if c.Owner {
		env["HOME"], env["npm_config_prefix"] = "/root", "/usr/local"
	}
	maps.Copy(env, c.Env)
	return env
}

// writeOutput writes what the command prints. A failed write does not fail the step.
func writeOutput(c rootfs.StepCommand, e Event) {
	switch e := e.(type) {
	case StdoutEvent:
		_, _ = c.Output.Write(e.Data)
	case StderrEvent:
		_, _ = c.Output.Write(e.Data)
	}
}
