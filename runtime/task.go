package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"gaol/internal/wire"
	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/seccomp"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/node"
	"gaol/runtime/internal/stdio"
	"gaol/vfs"
)

// jailSpec lowers settings to the jail that a runtime is made of.
func jailSpec(s settings, plan vfs.Plan, mounts []jail.Mount, filter *seccomp.Filter) jail.Spec {
	spec := jail.Spec{
		Tree:         jail.Tree{Image: plan.Image, Disk: plan.Disk, Inodes: plan.Inodes},
		Hostname:     s.hostname,
		Reaper:       []string{enter.Reaper, "-P"},
		Filter:       filter,
		CgroupParent: s.cgroupParent,
		Limits:       s.command(s.limits).Limits,
	}
	for _, f := range guest.Files() {
		spec.Layer = append(spec.Layer, jail.File{Path: f.Path, Mode: 0o644, Data: f.Data})
	}
	spec.Dirs = texts(plan.Dirs)
	enforce.ConfigureJail(&spec, s.plan, s.permissions, s.tree().World())
	s.configureMounts(&spec, mounts)
	return spec
}

func texts(paths []vfs.Path) []string {
	var out []string
	for _, p := range paths {
		out = append(out, string(p))
	}
	return out
}

// task is what one run starts, before its pipes exist.
type task struct {
	path     string
	args     []string
	env      []string
	dir      vfs.Path
	limits   Limits
	rules    *enforce.Rules // nil: the runtime's
	terminal bool           // the standard streams are a terminal

	feed           *feed      // nil unless the run is followed
	stdout, stderr stdio.Sink // nil except for Evaluate

	// The following are for a Node program.
	program   *guest.Program // nil for a Command
	script    int            // index of the program in args, from 1; 0 for a Command
	functions []hostcall.Function
	calls     CallLimits
	heapMiB   int64 // 0 for a Command
	cells     *cells
	onLog     func(wire.Level, string) // nil except for Evaluate
	maxLog    int64                    // bytes of a line
	report    *guestReport             // where Evaluate wants the guest's report; nil otherwise
}

// newTask lowers the options of one run.
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
		return nil, optionError("OnOutputLimit", "there is no action %d", o.OnOutputLimit)
	}
	env := maps.Clone(s.env)
	err := overlayEnv(env, o.Env)
	if err != nil {
		return nil, optionError("Env", "%w", err)
	}
	if !o.Permissions.IsZero() {
		if t.rules, err = s.narrowed(o.Permissions); err != nil {
			return nil, optionError("Permissions", "%w", err)
		}
	}
	maps.DeleteFunc(env, func(name, _ string) bool {
		return !s.permissions.PassesEnv(name) || t.rules != nil && !t.rules.Permissions.PassesEnv(name)
	})
	t.env = envList(env)
	return t, nil
}

// nodeTask returns the task of a Node program.
func (s settings) nodeTask(code string, o RunOptions, hasValue bool) (*task, error) {
	if s.noNode != nil {
		return nil, fmt.Errorf("%w: %w", s.noNode, ErrUnsupported)
	}
	t, err := s.newTask(o)
	if err != nil {
		return nil, err
	}
	permissions, plan := s.permissions, s.plan
	if t.rules != nil {
		permissions, plan = t.rules.Permissions, t.rules.Plan
	}
	if name := node.StartVariable(t.env); name != "" && !s.mayStartNode(permissions, plan) {
		return nil, optionError("Env", "Node reads %s when it starts, which takes a Node of its own, and %s is not among the programs that may be started: %w", name, s.nodePath(), ErrUnsupported)
	}
	if err := s.addProgram(t, code, o); err != nil {
		return nil, err
	}
	if hasValue {
		t.program.Value = s.limits.Value
	}
	t.functions, t.calls, t.heapMiB = s.bindings.Functions, s.calls, s.heapMiB
	t.path = s.nodePath()
	t.args = slices.Concat(node.HeapFlags(s.heapMiB), []string{"--require=" + guest.Prelude, t.program.Path}, o.Args)
	t.script = len(t.args) - len(o.Args)
	return t, nil
}

// addProgram adds the code of a Node program to a task.
func (s settings) addProgram(t *task, code string, o RunOptions) error {
	if len(code) > maxProgram {
		return fmt.Errorf("the program has %d bytes, the limit is %d", len(code), maxProgram)
	}
	script, err := newScript(code, o.Name, o.Format, s.bindings.Has)
	if err != nil {
		return err
	}
	path := string(t.dir.Join(script.name))
	if !utf8.ValidString(path) {
		return fmt.Errorf("the program's path %q is not UTF-8", path)
	}
	values, err := s.bindings.Values()
	if err != nil {
		return err
	}
	t.program = &guest.Program{
		Path: path, Format: script.format, Mapped: script.mapped, Code: script.code,
		Globals: values, Args: s.calls.Arguments, Evaluate: s.evaluate, Context: s.context,
	}
	for _, f := range s.bindings.Functions {
		t.program.Functions = append(t.program.Functions, f.Path)
	}
	return nil
}

// commandTask returns the task of any program of the image.
func (s settings) commandTask(name string, args []string, o RunOptions) (*task, error) {
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
	t.path, t.args = name, args
	return t, nil
}

// command lowers a task to what the jail starts.
func (rt *NodeRuntime) command(t *task) jail.Command {
	c := rt.opts.command(t.limits)
	c.Path, c.Args, c.Env, c.Dir = t.path, t.args, t.env, string(t.dir)
	c.Terminal = t.terminal
	rules := cmp.Or(t.rules, rt.rules)
	rules.Apply(&c, rt.opts.audit)
	if rt.zygotes != nil {
		usual := t.heapMiB == 0 || t.heapMiB == rt.opts.heapMiB
		c.Zygote = rt.zygotes.Pool(t.heapMiB)
		switch parked := rt.parked.Swap(nil); {
		case rules == rt.rules && usual: // as the parked process was started
			c.Parked = parked
		case parked != nil:
			parked.Kill() // otherwise this run could stop the process of a later run
		}
		if l, _ := t.launcher(LauncherZygote); l == LauncherZygote {
			c.Script = t.script
		}
	}
	return c
}

// command returns the part of a command that depends on the limits alone.
//
// The tree bounds its own size. The limit of a file's length is for sparse files, which
// occupy nothing but are read as zeros. A folder of the host that the guest writes to has
// no such limit, and the kernel has only one for all files of a process.
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
