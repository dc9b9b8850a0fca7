package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/rootfs"
	"gaol/runtime"
)

// runFlags are the flags of gaol run.
type runFlags struct {
	set *pflag.FlagSet // where they were read from

	json, stdin, command, tty bool
	interleave                bool
	eval                      string
	format                    moduleFormat

	timeout, cpuTime        period
	memory, disk, maxOutput size
	cpus                    share
	pids, openFiles         count
	launcher                launcher

	granted granted

	mounts         mounts
	files          guestFiles
	unixSockets    bool
	nodeModules    string
	readOnlyRoot   bool
	snapshot, save string

	env                       variables
	cwd, hostname, image, dir string
}

// defaultRunFlags has the defaults that package runtime documents; they are
// written out so that --help and the lines about a limit can name them.
func defaultRunFlags() *runFlags {
	return &runFlags{
		timeout:   period(30 * time.Second),
		memory:    256 << 20,
		disk:      64 << 20,
		maxOutput: 16 << 20,
		cpus:      1,
		pids:      64,
		openFiles: defaultOpenFiles,
		launcher:  launcher(runtime.LauncherExec), // for one run, the sooner: see the flag
	}
}

// add defines the flags of gaol run on cmd.
func (f *runFlags) add(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.SortFlags = false

	f.set.StringVarP(&f.eval, "eval", "e", "", "run `CODE` in place of a file")
	f.set.Var(&f.format, "format", "module format of the code: esm or cjs, or auto, by its name and syntax")
	f.set.BoolVar(&f.command, "command", false, "run a program of the image, named after --, in place of code")
	f.set.BoolVar(&f.json, "json", false, "print one JSON object about the run and nothing else")
	f.set.BoolVar(&f.interleave, "interleave", false, "with --json, also list what was printed to both streams in the order in which it was read")
	f.set.BoolVar(&f.stdin, "stdin", false, "pass standard input on to the program, which else has an empty one")

	f.set.BoolVar(&f.tty, "tty", false, "work at the program from this terminal; it has then no time limit unless --timeout is given")

	f.addLimits()
	f.set.Var(&f.maxOutput, "max-output", "bytes --json keeps of each output stream; if given without --json, what goes through")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"auto", "esm", "cjs"}, cobra.ShellCompDirectiveNoFileComp))
	f.set.StringVar(&f.save, "save", "", "take a snapshot by that `NAME` when the program has ended, whatever its exit status")
	f.addWorld(cmd)
}

// addLimits defines those that bound what code may use.
func (f *runFlags) addLimits() {
	f.set.Var(&f.timeout, "timeout", "time the run may take; 0 for no limit")
	f.set.Var(&f.memory, "memory", "memory it may use; there is no swap")
	f.set.Var(&f.cpus, "cpus", "processors it may keep busy")
	f.set.Var(&f.cpuTime, "cpu-time", "processor time it may use; 0 for no limit")
	f.set.Var(&f.pids, "pids", "processes and threads it may have")
	f.set.Var(&f.openFiles, "open-files", "files that each of its processes may have open; by default no more than gaol itself may have")
	f.set.Var(&f.disk, "disk", "bytes it may write to its file system")
}

// addWorld defines those of what code finds and may do.
func (f *runFlags) addWorld(cmd *cobra.Command) {
	f.granted.add(cmd)

	f.set.Var(&f.mounts, "mount", "folder or file of the host that the program sees: read-only unless it says rw, or, for a folder, cow for a copy to write to; may be repeated")
	f.set.BoolVar(&f.unixSockets, "unix-sockets", false, "let a program with read-only or writable mounts make unix sockets, which connect to any process that listens in there, the host's too")
	f.set.Var(&f.files, "file", "file of the host whose content the program finds at GUEST as its own; may be repeated")
	f.set.StringVar(&f.nodeModules, "node-modules", "", "`DIR` of the host, or snapshot:NAME, with packages, shown read-only as node_modules in --cwd")
	f.set.StringVar(&f.snapshot, "snapshot", "", "`NAME` or id of a snapshot that the program's folders begin with")
	_ = cmd.RegisterFlagCompletionFunc("snapshot", completer(openSnapshots))
	f.set.BoolVar(&f.readOnlyRoot, "read-only", false, "let the program write nowhere but to mounts that say so")

	f.set.Var(&f.env, "env", "environment variable the program sees; may be repeated")
	f.set.StringVar(&f.cwd, "cwd", "/workspace", "`DIR` in the guest to work in, made if missing, unless it is in a mount that is read-only")
	f.set.StringVar(&f.hostname, "hostname", "secure-exec", "host `NAME` in the guest")
	f.set.StringVar(&f.image, "image", "", "`NAME` or id of the image the guest sees (default: the default image, built if missing)")
	f.set.Var(&f.launcher, "launcher", "exec; or zygote, which has to warm up: for the one run of a command it takes twice as long")
	addStoreFlag(cmd, &f.dir)
	_ = cmd.RegisterFlagCompletionFunc("image", completer(rootfs.Open)) // fails only for a flag that isn't there
	_ = cmd.RegisterFlagCompletionFunc("launcher", cobra.FixedCompletions([]string{"exec", "zygote"}, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses what pflag lets through.
func (f *runFlags) check(ctx context.Context) error {
	for name, value := range map[string]string{"cwd": f.cwd, "hostname": f.hostname, "image": f.image, "store": f.dir, "node-modules": f.nodeModules, "snapshot": f.snapshot, "save": f.save} {
		if value == "" && f.set.Changed(name) {
			return errors.New("--" + name + " is empty")
		}
	}
	if !path.IsAbs(f.cwd) {
		return errors.New("--cwd " + quote(f.cwd) + ": want an absolute path in the guest")
	}
	if f.nodeModules != "" && !strings.HasPrefix(f.nodeModules, "snapshot:") { // as --mount does with its own
		dir, err := filepath.Abs(f.nodeModules)
		if err != nil {
			return err
		}
		f.nodeModules = dir
	}
	if f.save != "" { // after the run it would be too late
		if err := rootfs.CheckName(f.save); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	return f.checkPermissions(ctx)
}

// options gives what the flags say about the sandbox.
func (f *runFlags) options() runtime.Options {
	return runtime.Options{
		Image:    f.image,
		Store:    f.dir,
		Env:      f.env,
		Cwd:      f.cwd,
		Hostname: f.hostname,
		Launcher: runtime.Launcher(f.launcher),

		Mounts:       f.mounts,
		UnixSockets:  f.unixSockets,
		NodeModules:  f.nodeModules,
		Files:        f.files,
		ReadOnlyRoot: f.readOnlyRoot,
		Snapshot:     f.snapshot,

		Permissions:   f.permit(),
		AllowDegraded: f.granted.degraded,
		AuditDenials:  f.granted.audit,

		Limits: runtime.Limits{
			Memory:  int64(f.memory),
			CPUs:    float64(f.cpus),
			CPUTime: time.Duration(f.cpuTime),
			Pids:    int64(f.pids),
			Files:   f.filesLimit(),
			Disk:    int64(f.disk),
			Output:  f.capture(),
		},
	}
}

// defaultOpenFiles is the default of runtime.Limits.Files where the host process may have as many.
const defaultOpenFiles = 1024

// filesLimit is what was asked for, or zero for a default that the runtime finds.
func (f *runFlags) filesLimit() int64 {
	if !f.set.Changed("open-files") {
		return 0
	}
	return int64(f.openFiles)
}

// notes are the lines about what the sandbox lacks of what it would have elsewhere.
func (f *runFlags) notes(sb sandbox) (lines []string) {
	if missing := sb.Missing(); len(missing) > 0 {
		lines = append(lines, "this kernel does not hold: "+strings.Join(missing, ", "))
	}
	if files := sb.Limits().Files; !f.set.Changed("open-files") && files < defaultOpenFiles {
		lines = append(lines, fmt.Sprintf("a process may have %d open files, not %d: gaol's own hard limit is no higher (`ulimit -Hn`)", files, defaultOpenFiles))
	}
	return lines
}

// capture gives the number of bytes of each stream that the runtime is to keep.
func (f *runFlags) capture() int64 {
	if f.json {
		return int64(f.maxOutput)
	}
	return 1 // the output goes through and what was kept of it is never read
}

// runTimeout gives the time limit as [runtime.RunOptions] has it, where zero
// means the default and a negative time none.
func (f *runFlags) runTimeout() time.Duration {
	if f.timeout == 0 {
		return -1
	}
	return time.Duration(f.timeout)
}
