package runtime

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/seccomp"
	"gaol/vfs"
)

// Where the tree has what a run needs.
const (
	nodePath    = "/usr/local/bin/node"
	guestFolder = "/usr/libexec/gaol/"
	preludePath = guestFolder + "prelude.cjs"
	zygotePath  = guestFolder + "zygote.cjs"
)

//go:embed guest/*.cjs
var guestFiles embed.FS

// guestLayer are our own JavaScript files, as the tree has them.
var guestLayer = sync.OnceValue(func() (layer []jail.File) {
	names, err := fs.Glob(guestFiles, "guest/*")
	for _, name := range names {
		var text []byte
		if text, err = guestFiles.ReadFile(name); err == nil {
			layer = append(layer, jail.File{Path: guestFolder + path.Base(name), Mode: 0o644, Data: text})
		}
	}
	if err != nil {
		panic(err) // they are part of this program
	}
	return layer
})

// jailSpec lowers what a runtime is to what the jail is made of.
func jailSpec(s settings, plan vfs.Plan, mounts []jail.Mount, filter *seccomp.Filter) jail.Spec {
	spec := jail.Spec{
		Image:        plan.Image,
		Layer:        guestLayer(),
		Disk:         plan.Disk,
		Inodes:       plan.Inodes,
		Hostname:     s.hostname,
		Reaper:       []string{enter.Reaper, "-P"},
		Filter:       filter,
		CgroupParent: s.cgroupParent,
		Limits:       s.command(s.limits).Limits,
	}
	spec.Dirs = texts(plan.Dirs)
	cover(&spec, s.plan, s.permissions, s.world())
	s.furnish(&spec, mounts)
	return spec
}

// task is what one run starts, before the pipes are made.
type task struct {
	path    string
	args    []string
	env     []string
	dir     vfs.Path
	limits  Limits
	script  int      // place of the program in args, from 1; 0: a Command
	program *program // nil for a Command
	calls   CallLimits
	heapMiB int64  // as the settings have it; 0: a Command
	told    *told  // nil but with Evaluate
	feed    *feed  // of who follows the run; nil: nobody does
	cells   *cells // nil but for a context

	guard *guard // nil: the runtime's

	terminal bool // the standard streams are one
}

// newTask lowers one run's options to what it starts.
func (s settings) newTask(o RunOptions) (*task, error) {
	t := &task{dir: s.cwd, limits: s.limits}
	if o.Cwd != "" {
		dir, err := vfs.ParsePath(o.Cwd)
		if err != nil {
			return nil, optionError("Cwd", "%w", err)
		}
		t.dir = dir
	}
	if err := checkArgs(o.Args); err != nil {
		return nil, err
	}
	if o.OnOutputLimit < TruncateOutput || o.OnOutputLimit > KillOnOutput {
		return nil, fmt.Errorf("option OnOutputLimit: there is no action %d", o.OnOutputLimit)
	}
	env := maps.Clone(s.env)
	err := overlayEnv(env, o.Env)
	if err != nil {
		return nil, optionError("Env", "%w", err)
	}
	if !o.Permissions.IsZero() {
		if t.guard, err = s.narrow(o.Permissions); err != nil {
			return nil, optionError("Permissions", "%w", err)
		}
	}
	maps.DeleteFunc(env, func(name, _ string) bool {
		return !s.permissions.PassesEnv(name) || t.guard != nil && !t.guard.permissions.PassesEnv(name)
	})
	t.env = envList(env)
	return t, nil
}

func checkArgs(args []string) error {
	total := 0
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("option Args: %q has a NUL", arg)
		}
		if len(arg) >= maxString {
			return fmt.Errorf("option Args: an argument has %d bytes, the limit is %d", len(arg), maxString-1)
		}
		total += len(arg) + 1
	}
	if total > maxStrings {
		return fmt.Errorf("option Args: all together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}

// nodeTask is the task of a program for Node.
func (s settings) nodeTask(code string, o RunOptions, hasValue bool) (*task, error) {
	if err := s.needNode(); err != nil {
		return nil, err
	}
	t, err := s.newTask(o)
	if err != nil {
		return nil, err
	}
	held := guard{permissions: s.permissions, plan: s.plan}
	if t.guard != nil {
		held = *t.guard
	}
	if name := startVariable(t.env); name != "" && !s.startsNode(held.permissions, held.plan) {
		return nil, optionError("Env", "Node reads %s when it starts, which takes a Node of its own, and %s is not among the programs that may be started: %w", name, s.nodePath(), ErrUnsupported)
	}
	p := programOptions{name: o.Name, format: o.Format, dir: t.dir, globals: s.bindings, arguments: s.calls.Arguments, evaluate: s.evaluate, context: s.context}
	if hasValue {
		p.value = s.limits.Value
	}
	if t.program, err = newProgram(code, p); err != nil {
		return nil, err
	}
	t.calls, t.heapMiB = s.calls, s.heapMiB
	t.path = s.nodePath()
	t.args = slices.Concat(heapFlags(s.heapMiB), []string{
		"--require=" + preludePath,
		string(t.dir.Join(t.program.name)),
	}, o.Args)
	t.script = len(t.args) - len(o.Args)
	return t, nil
}

// commandTask is the task of any program of the image.
func (s settings) commandTask(name string, args []string, o RunOptions) (*task, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("command %q: no program's name", name)
	}
	if len(o.Args) > 0 {
		return nil, fmt.Errorf("option Args: a command's arguments are Command's own")
	}
	o.Args = args
	t, err := s.newTask(o)
	if err != nil {
		return nil, err
	}
	t.path, t.args = name, args
	return t, nil
}

// command lowers a task to what the jail starts.
func (rt *NodeRuntime) command(t *task) jail.Command {
	c := rt.opts.command(t.limits)
	c.Path, c.Args, c.Env, c.Dir = t.path, t.args, t.env, string(t.dir)
	c.Terminal = t.terminal
	g := cmp.Or(t.guard, rt.guard)
	g.apply(&c, rt.opts)
	if rt.forks != nil {
		usual := t.heapMiB == 0 || t.heapMiB == rt.opts.heapMiB
		c.Zygote = rt.forks.of(t.heapMiB).pool
		switch parked := rt.parked.Swap(nil); {
		case g == rt.guard && usual: // which a parked process is under
			c.Parked = parked
		case parked != nil:
			parked.Kill() // nothing of a later run is to wait where this one can stop it
		}
		if l, _ := t.launcher(LauncherZygote); l == LauncherZygote {
			c.Script = t.script
		}
	}
	return c
}

// command is what the limits alone say of a command.
//
// The tree bounds itself. That no file is larger than it, by its length, is for those that
// are all holes: they take no room, and whoever reads one reads its zeros. A folder of
// the host's that the guest writes to has no such bound, and the kernel knows but one for
// all files of a process.
func (s settings) command(l Limits) jail.Command {
	c := jail.Command{
		Limits:    cgroup.Limits{Memory: l.Memory, CPUs: l.CPUs, Pids: l.Pids},
		OpenFiles: l.Files,
	}
	if !slices.ContainsFunc(s.mounts, func(m Mount) bool { return m.Access == ReadWrite }) {
		c.FileSize = l.Disk
	}
	return c
}
