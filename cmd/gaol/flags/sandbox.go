package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/publish"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/vfs"
)

// Sandbox holds the flags that gaol run, eval and repl share.
type Sandbox struct {
	Set *pflag.FlagSet

	// Server is the socket or URL of the server that makes the sandbox. Empty: this process does.
	Server string

	// Isolation is the value of --isolation: on a server, one of the server's names.
	Isolation string

	Published []publish.Port // by --publish

	options     runtime.Options // without Permissions
	timeout     time.Duration
	permissions permissions
}

// NewSandbox returns the flags of cmd with the defaults of package runtime, so that --help
// and the notes about a limit can name them. Server is the default of --server. AddLimits,
// AddEnvironment and AddServer define the flags.
func NewSandbox(cmd *cobra.Command, server string) Sandbox {
	cmd.Flags().SortFlags = false
	return Sandbox{
		Set:     cmd.Flags(),
		Server:  server,
		timeout: runtime.DefaultTimeout,
		options: runtime.Options{
			Hostname: "secure-exec",
			Launcher: runtime.LauncherExec, // one run takes half as long as with a zygote, which has to warm up
			Limits:   runtime.DefaultLimits(),
			Files:    map[string][]byte{},
			Env:      map[string]string{},

			WorkInProcess: true, // the code is the user's own, and a command ends with it
		},
	}
}

// AddTimeout defines --timeout.
func (f *Sandbox) AddTimeout(usage string) { f.Set.Var(Duration(&f.timeout), "timeout", usage) }

// AddLimits defines the other flags that limit what code may use.
func (f *Sandbox) AddLimits() {
	o := &f.options
	f.Set.Var(Size(&o.Limits.Memory), "memory", "memory limit, in bytes or with k, m or g for powers of 1024; there is no swap; with --preset npm the default is at least 512m")
	f.Set.Var(number(&o.Limits.CPUs), "cpus", "processors that it may keep busy")
	f.Set.Var(Duration(&o.Limits.CPUTime), "cpu-time", "limit of processor time; 0 for none")
	f.Set.Var(Count(&o.Limits.Pids), "pids", "limit of processes and threads")
	f.Set.Var(Count(&o.Limits.OpenFiles), "open-files", "limit of open files for each process; the default is never above gaol's own limit")
	f.Set.Var(Size(&o.Limits.Disk), "disk", "bytes that it may write to its file system, kept on disk if more than 64m and a quarter of --memory; with --preset npm the default is at least 4g")
	f.Set.Var(Count(&o.Limits.Files), "files", "files and folders that it may make in its file system")
}

// AddEnvironment defines the flags for what code sees and may do.
func (f *Sandbox) AddEnvironment(cmd *cobra.Command) {
	o := &f.options
	f.permissions.add(cmd, o)

	f.Set.Func("mount", "folder or file of the host to show, as `HOST:GUEST[:ro|rw|cow]`: read-only by default; rw for writable; cow, for folders, for a private writable copy; repeatable", f.addMount)
	f.Set.BoolVar(&o.UnixSockets, "unix-sockets", false, "allow unix sockets beside read-only or writable mounts; they connect to any process that listens in a mount, also of the host")
	f.Set.Func("file", "file of the host, of at most 256m, to copy, as `GUEST=HOST`; repeatable", f.addFile)
	f.Set.Var(text(&o.NodeModules, nodeModules), "node-modules", "`DIR` of the host, or snapshot:NAME, with packages to show read-only as node_modules in --cwd")
	f.Set.Var(Text(&o.Snapshot), "snapshot", "`NAME` or id of a snapshot with the initial content of the program's folders")
	f.Set.BoolVar(&o.ReadOnlyRoot, "read-only", false, "allow writes to writable mounts only")

	f.Set.Func("host-port", "`PORT` of the host's localhost that its own localhost leads to, and to which it may connect; repeatable", f.addHostPort)
	f.Set.Func("env", "environment variable of the program, as `NAME=VALUE`; repeatable", f.addVariable)
	AddCwd(cmd, &o.Cwd, "working `DIR` in the guest, created if missing, unless it is in a read-only mount")
	f.Set.Var(Text(&o.Hostname), "hostname", "host `NAME` in the guest")
	AddImage(cmd, &o.Image)
	AddIsolation(cmd, &f.Isolation, "the program")
	Launchers.Add(cmd, &o.Launcher, "launcher", "exec or zygote; zygote takes twice as long for the one run of a command, because it has to warm up")
	AddStore(cmd, &o.Store)
	Complete(cmd, "snapshot", StoreNames(rootfs.OpenSnapshots))
}

// nodeModules parses a value of --node-modules.
func nodeModules(s string) (string, error) {
	if strings.HasPrefix(s, "snapshot:") {
		return s, nil
	}
	return filepath.Abs(s)
}

// addHostPort parses a value of --host-port.
func (f *Sandbox) addHostPort(s string) error {
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || port == 0 {
		return errors.New("want a port from 1 to 65535")
	}
	f.options.HostPorts = append(f.options.HostPorts, int(port))
	return nil
}

// AddPublish defines --publish.
func (f *Sandbox) AddPublish() {
	f.Set.Func("publish", "port of the host, on 127.0.0.1 or ADDRESS, that leads to a port of the program while it runs, and allows it to listen, as `[ADDRESS:]PORT:PORT`; port 0 of the host for any, which is printed; repeatable", func(s string) error {
		p, err := publish.ParsePort(s)
		f.Published = append(f.Published, p)
		return err
	})
}

// AddCwd defines --cwd. Presets need its default before there is a runtime.
func AddCwd(cmd *cobra.Command, cwd *string, usage string) {
	*cwd = "/workspace"
	cmd.Flags().Var(text(cwd, func(s string) (string, error) {
		p, err := vfs.ParsePath(s)
		return string(p), err
	}), "cwd", usage)
}

// Complete sets the shell completion of a flag.
func Complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is not defined, or completed twice
	}
}

// Check rejects values that the parsers of the single flags cannot reject, and reads
// the permissions.
func (f *Sandbox) Check(ctx context.Context) error {
	if f.Server != "" {
		if err := RejectOnServer(f.Set, NotOnServer...); err != nil {
			return err
		}
	}
	if f.permissions.preset.Name == npmPreset {
		f.raise()
	}
	if err := f.checkIsolation(); err != nil {
		return err
	}
	return f.checkPermissions(ctx)
}

// MountFolder shows a folder of the host, read-only, which becomes the working directory unless the
// flags name another.
func (f *Sandbox) MountFolder(dir, target string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	f.options.Mounts = append(f.options.Mounts, runtime.Mount{Source: dir, Target: target})
	if !f.Set.Changed("cwd") {
		f.options.Cwd = target
	}
	return nil
}

// Options returns the options of the sandbox. The caller sets Limits.Output.
func (f *Sandbox) Options() runtime.Options {
	o := f.options
	o.Permissions = f.allowed()
	if !f.Set.Changed("open-files") {
		o.Limits.OpenFiles = 0 // the default, or less if this process may not have as many
	}
	return o
}

// raise sets limits that the user has not given to the least values that the preset npm needs.
func (f *Sandbox) raise() {
	l := &f.options.Limits
	for flag, least := range map[string]func(){
		"disk":    func() { l.Disk = max(l.Disk, npmDisk) },
		"memory":  func() { l.Memory = max(l.Memory, npmMemory) },
		"timeout": func() { f.timeout = max(f.timeout, npmTimeout) },
	} {
		if !f.Set.Changed(flag) {
			least()
		}
	}
}

// Timeout returns the time limit of a run as [runtime.RunOptions] has it: 0 is the
// default, and a negative time is no limit.
func (f *Sandbox) Timeout() time.Duration {
	if f.timeout == 0 {
		return -1
	}
	return f.timeout
}

// Notes returns lines about what this machine cannot enforce or offer, given the
// Missing and Limits of the sandbox.
func (f *Sandbox) Notes(missing []string, limits runtime.Limits) (lines []string) {
	if len(missing) > 0 {
		lines = append(lines, "this kernel does not enforce: "+strings.Join(missing, ", "))
	}
	if files := f.options.Limits.OpenFiles; !f.Set.Changed("open-files") && limits.OpenFiles < files {
		lines = append(lines, fmt.Sprintf("a process may have %d open files, not %d: gaol's own hard limit is no higher (`ulimit -Hn`)", limits.OpenFiles, files))
	}
	return lines
}

// causeNotes describes, by cause, how a limit ended a run, and names the flag that sets the limit.
var causeNotes = map[runtime.Cause]struct{ text, limit, flag string }{
	runtime.CauseTimeout: {"the program was stopped", "it ran longer than %s", "timeout"},
	runtime.CauseMemory:  {"the program was killed for memory", "it needed more than %s", "memory"},
	runtime.CauseCPU:     {"the program was stopped", "it used more than %s of processor time", "cpu-time"},
	runtime.CausePids:    {"the program failed", "it needed more than %s processes and threads", "pids"},
}

// ResultNotes returns the lines about a run that a limit ended or that permissions
// denied something. A command without the flag of a limit does not know its value.
func (f *Sandbox) ResultNotes(res *runtime.Result) (lines []string) {
	if note, ok := causeNotes[res.Cause]; ok {
		how := "it reached the sandbox's limit of " + note.flag
		if flag := f.Set.Lookup(note.flag); flag != nil {
			how = fmt.Sprintf(note.limit, flag.Value) + "; allow more with --" + note.flag
		}
		lines = []string{note.text + ": " + how}
	}
	return append(lines, f.Denials(res)...)
}

// isolations are the names that a shell completes.
var isolations = []string{"native", "gvisor", "microvm", "runc", "crun", "oci=/"}

// AddIsolation defines --isolation. Its usage names the confined object.
func AddIsolation(cmd *cobra.Command, name *string, confined string) {
	cmd.Flags().Var(Text(name), "isolation", "`NAME` of what confines "+confined+": native, gvisor, microvm, or a container of runc, crun or oci=/path, the program of an OCI runtime; runc+systemd lets systemd make its cgroup (default native)")
	Complete(cmd, "isolation", cobra.FixedCompletions(isolations, cobra.ShellCompDirectiveNoFileComp))
}

// ParseIsolation parses the value of --isolation.
func ParseIsolation(name string) (runtime.Isolation, runtime.OCIOptions, error) {
	kind, oci, err := runtime.ParseIsolation(name)
	if err != nil {
		err = fmt.Errorf("--%w", err)
	}
	return kind, oci, err
}

// checkIsolation reads --isolation. A server knows its names.
func (f *Sandbox) checkIsolation() (err error) {
	o := &f.options
	if f.Server == "" {
		o.Isolation, o.OCI, err = ParseIsolation(f.Isolation)
	}
	return cmp.Or(err, CheckLauncher(o))
}

// CheckLauncher reports whether the isolation supports the launcher.
func CheckLauncher(o *runtime.Options) error {
	if err := o.Isolation.Check(runtime.FeatureZygote); err != nil && o.Launcher == runtime.LauncherZygote {
		return fmt.Errorf("--launcher zygote: %w", err)
	}
	return nil
}

// Step holds the flags of commands that build an image.
type Step struct{ Sandbox }

// NewStep defines the flags for cmd.
func NewStep(cmd *cobra.Command) *Step {
	s := &Step{NewSandbox(cmd, "")}
	s.options.Limits, s.timeout = runtime.StepLimits(), runtime.DefaultStepTimeout
	s.options.Cwd = string(vfs.Workspace) // of presets
	s.permissions.add(cmd, &s.options)
	s.AddTimeout("limit of the time of a command; 0 for none")
	s.AddLimits()
	return s
}

// ParseStep parses flags such as --preset=npm before a command of a Gaolfile.
func ParseStep(ctx context.Context, words []string) (rootfs.Runner, error) {
	cmd := &cobra.Command{}
	s := NewStep(cmd)
	if err := cmd.ParseFlags(words); err != nil {
		return nil, err
	}
	if more := cmd.Flags().Args(); len(more) > 0 {
		return nil, fmt.Errorf("%q: want --flag=value", more[0])
	}
	return s.Runner(ctx)
}

// Runner returns the runner of commands with these flags.
func (s *Step) Runner(ctx context.Context) (rootfs.Runner, error) {
	if err := s.Check(ctx); err != nil {
		return nil, err
	}
	return runtime.StepRunner{Options: s.Options(), Timeout: s.Timeout()}, nil
}
