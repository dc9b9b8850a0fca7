package runtime

import (
	"io"
	"io/fs"
	"syscall"
	"time"

	"gaol/policy"
)

// Options are the options of [Create]. The zero value is a complete, safe sandbox: the
// default image, the default limits, no network but its own localhost.
type Options struct {
	// Image is the image that the guest sees as its root, as `gaol image ls` prints it: a
	// name, an ID, or a unique prefix of an ID. Empty: the default image, which Create builds
	// if the store lacks it.
	Image string

	// Store is the folder of the image store. Empty: /var/lib/gaol. A given folder must exist: `gaol image build --store`
	// creates one.
	Store string

	// Env has variables for every run. They replace or add to PATH, HOME, USER, LANG and
	// TMPDIR. Runs never see the host's environment.
	Env map[string]string

	// Cwd is the working directory of the runs: an absolute path in the guest's tree. It is
	// created if it is missing, and owned by the guest. Choose a folder in which the image has
	// no files, see package vfs. For one below a mount see [Mount]. Empty: /workspace.
	Cwd string

	// Mounts are folders and files of the host that the guest sees. The guest can also read
	// their paths on the host, see [Mount].
	Mounts []Mount

	// MountUser is the user of the host whose files in Mounts and NodeModules appear as the
	// guest's. The guest can then access files there as that user could, as a member of one
	// group. Nil: the owner of each source; the guest can then access all files below the source
	// as the owner could.
	MountUser *MountUser

	// UnixSockets allows runs to create unix sockets although a mount in Mounts is ReadOnly
	// or ReadWrite. Such a socket can connect to any process that listens on a socket file in
	// a mounted folder, including processes of the host, whatever the permissions for the
	// network: the kernel cannot distinguish them. Without UnixSockets such runs can only
	// create connected pairs, which child_process uses. If all mounts are CopyOnWrite or
	// NodeModules, runs can create any unix socket: they see those folders through an overlay,
	// where they cannot connect to sockets of the host.
	UnixSockets bool

	// NodeModules is a folder of the host with packages. It is mounted read-only as
	// node_modules in Cwd, where programs find them. If Cwd is a ReadWrite mount without
	// node_modules, an empty folder remains on the host. Links inside it, as pnpm creates
	// them, work; links that lead out of it do not. Changes of the host after Create may not
	// be visible. "snapshot:NAME" mounts the node_modules of a snapshot's working directory
	// instead.
	NodeModules string

	// NodeModulesPath is where the guest sees NodeModules: an absolute path in its tree, such as
	// /tmp/node_modules. Programs below its parent find the packages: [RunOptions.Name] determines
	// a program's folder, by default the working directory. Empty: node_modules in Cwd.
	NodeModulesPath string

	// Files are written into the tree before the first run: guest paths with contents. Missing
	// folders are created. The files have mode 0644. They and the new folders belong to the
	// guest, unless Permissions deny chmod for some paths only. /proc, /sys, /dev (except for /dev/shm) and
	// /usr/libexec/gaol cannot have any. Files and Folders together must fit in Limits.Disk
	// and Limits.Files; they do not reduce the guest's own share of these.
	Files map[string][]byte

	// Folders are copied into the tree: guest paths with contents. The files belong to the
	// guest like those above, with mode 0644, or 0755 if they are executable. Links and
	// special files are an error.
	Folders map[string]fs.FS

	// Snapshot is the initial content of the guest's own folders, as [NodeRuntime.Snapshot]
	// saved it: a name or an ID in the store of Image. The runtime uses the snapshot's home
	// folder, /workspace and Cwd. Each becomes a mount, so files cannot be renamed from one to
	// another (EXDEV).
	Snapshot string

	// ReadOnlyRoot makes everything read-only (EROFS) except for writable mounts: Cwd, the home
	// folder and the temporary folders, too.
	ReadOnlyRoot bool

	// Hostname is the guest's host name. Empty: "secure-exec".
	Hostname string

	// Limits bound the runs and the tree. A zero field takes its default, see [DefaultLimits].
	Limits Limits

	// Heap is the size of V8's heap in bytes, for all programs. Zero, and the maximum: what
	// Limits.Memory leaves. See docs/isolation.md.
	Heap int64

	// Network bounds the use of external hosts by all runs together.
	Network NetworkLimits

	// NetworkQuota, if not nil, bounds that use together with other runtimes. Without it, all runtimes
	// of a process together may use an eighth of its descriptors for pending connects, and a sixteenth for look-ups.
	NetworkQuota NetworkQuota

	// HostPorts are TCP ports of localhost that lead to the same ports of the host's localhost:
	// guests' connections to 127.0.0.1 and [::1] reach a server on 127.0.0.1 or [::1] of the
	// host, and guests cannot listen there. Permissions must allow to connect to each, for example
	// by tcp://localhost:3000; permissions of single runs can exclude them. The connections count
	// towards Network, and cause the same events as connections to external hosts. At most 64. No
	// other port of the host's localhost is ever reached.
	HostPorts []int

	// Proxy is the HTTP proxy through which external hosts are reached, by CONNECT, such as
	// "http://user:password@proxy.example:3128". Empty: HTTPS_PROXY and HTTP_PROXY of this
	// process. "none": no proxy. Hosts in this process's NO_PROXY are reached directly. The
	// guest does not see it.
	Proxy string

	// ProxyNames lets the proxy look up names, where this process cannot. Addresses are then not
	// checked: the proxy must refuse forbidden addresses, such as private ones.
	ProxyNames bool

	// CgroupParent is the cgroup in which jails are created, as an absolute path in the
	// hierarchy. Empty: "/gaol". Runtimes with the same one are one trust domain: their
	// code is compiled by the same processes, see WorkInProcess.
	CgroupParent string

	// WorkInProcess compiles code and checks values against schemas in this process. Hostile
	// code can then use any amount of its time and memory, and end it. It is for programs that run
	// their own user's code only. By default, confined processes in CgroupParent do that work: this
	// program, executed again, of which only the initialization of packages runs; see
	// the package comment.
	WorkInProcess bool

	// Permissions are what runs may do. An omitted scope uses [policy.Default]: everything
	// inside the sandbox, with its own localhost, and no other host. The kernel enforces each rule. Create refuses
	// rules that cannot be enforced (*policy.RuleError), or not by this kernel
	// (*landlock.ABIError). Package policy documents the language and how each operation is
	// enforced.
	Permissions policy.Permissions

	// AllowDegraded lets Create succeed if the kernel's Landlock lacks a right that Permissions
	// need. Operations that the kernel cannot deny are then allowed, see [NodeRuntime.Missing].
	AllowDegraded bool

	// AuditDenials adds what Landlock denies, mostly access to files, to Result.Denials. It
	// reads the kernel's audit log, which must be enabled (`auditctl -e 1`) and needs Linux
	// 6.15: otherwise Create fails. Without AuditDenials such denials are reported only if a
	// program fails because of one. The log is shared by the whole machine, and a hostile
	// guest can flood it.
	AuditDenials bool

	// Isolation is the mechanism that confines the sandbox's processes. OCI are the options of
	// IsolationOCI. Create refuses options that the isolation lacks, see [Feature].
	Isolation Isolation
	OCI       OCIOptions

	// Launcher is how runs are started. IsolationOCI lacks LauncherZygote, which means
	// LauncherExec there.
	Launcher Launcher

	// Bindings are variables in globalThis of every program: by name, host functions
	// ([Function]), maps (map[string]any) that contain functions, and data. Data is encoded
	// once, by encoding/json; []byte and time.Time become Uint8Array and Date. Names must be
	// valid JavaScript identifiers, except globals that programs need from Node, such as process
	// and Object.
	Bindings map[string]any

	// BigInts are for integers that a JavaScript number cannot hold, beyond ±(2^53-1): those in Bindings,
	// Globals and results of functions become BigInts in the guest, and BigInts of the guest become integers of JSON.
	// Without BigInts both are an error that names the path of the value.
	BigInts bool

	// Commands are programs that this process implements, by their names in the guest. Names
	// have a-z, 0-9 and, after the first, dots, underscores and hyphens. NodeRuntime.AddCommands
	// adds more, unless Commands is nil.
	Commands map[string]HostCommand

	// Calls bound the calls that each run can make of the functions in Bindings and of Commands.
	Calls CallLimits

	// MaxConcurrentRuns is the maximum number of active runs, at most 8,192. Further
	// runs wait for their turn in order, as long as their context allows; Timeout starts with
	// the turn. Runs that wait for each other, for example through files or because a callback
	// starts another run, must fit in together: otherwise they end only by their Timeout. A
	// spawned process counts for as long as it lives. Zero: 64, which may use 16 GiB with the
	// default Limits.Memory, or a 32nd of the files that this process may have open if that is
	// less.
	//
	// Starts of all runtimes of a process also wait for their turn: a few at a time for each
	// processor.
	MaxConcurrentRuns int `bounds:"1..8192"` // each holds some ten descriptors of the host

	// MaxContexts is the maximum number of open contexts ([NodeRuntime.NewContext]).
	// Each is a run, and also counts towards MaxConcurrentRuns. Zero: 16.
	MaxContexts int `bounds:"1..8192,16"`

	// Zygote is for LauncherZygote; with another launcher, or an isolation without it, it is an
	// error.
	Zygote ZygoteOptions

	// Progress receives the progress of building a missing default image: a line that lists
	// the downloads with their sources and sizes, then a line for each slow step. On a
	// terminal, a bar shows the percentage of each download. It may be nil.
	Progress io.Writer
}

// RunOptions are the options of one run. The zero value uses the runtime's settings, a
// timeout of 30 seconds, and an empty standard input.
type RunOptions struct {
	// Permissions restrict the run further than its runtime; rules that allow more are an
	// error. Omitted scopes use the runtime's. Runs share the runtime's mounts, so only some
	// rules can be enforced, see [policy.LowerRun].
	Permissions policy.Permissions

	// Name is the program's file name. A name without a slash becomes a file in a folder of this
	// run, below /run/gaol, which the guest can read and not change, until the run ends. Imports,
	// require and __dirname begin in the working directory all the same; import.meta.dirname and
	// processes that run the file begin in its folder, where node_modules leads to that of the
	// working directory. With an absolute path no file is written, and imports begin in its
	// folder; neither need exist. The ending determines the language: .js, .mjs and
	// .cjs are JavaScript; .ts, .mts, .cts, .tsx and .jsx are TypeScript or JSX, see below. It
	// may also determine the format: .mjs and .mts are ES modules, .cjs and .cts are
	// CommonJS; for the others see Format. Empty: "main.mjs", or "main.cjs" for CommonJS. Command
	// ignores it.
	//
	// esbuild translates TypeScript and JSX to JavaScript, see Options.WorkInProcess: enum, namespaces,
	// parameter properties and decorators work; types are not checked. A source map keeps the
	// lines in stack traces. Imported names that are not used as values are removed, as they may be types;
	// JSX becomes React.createElement unless a comment contains @jsx or @jsxRuntime, and decorators are
	// JavaScript's unless a comment contains @experimentalDecorators, or the nearest tsconfig.json of the
	// sandbox has it: then decorators of parameters are accepted, too. Its other options are ignored. In CommonJS, import and export declarations become
	// require and exports. Code of more than 256 KiB is passed to Node, which can only strip types; as
	// .tsx or .jsx it throws a SyntaxError, as does code whose translation takes too long or too much memory.
	//
	// Files that such a program imports, or a program of JavaScript by a path with .ts, .mts or .cts, are
	// translated in the same way, except in packages and workers: at most 2,000, in 30 seconds. Paths may
	// omit the extension or have that of JavaScript, as in ./util and ./util.js for util.ts. The option
	// emitDecoratorMetadata of a tsconfig.json is refused, and "extends" is ignored.
	Name string

	// Format is the program's module format. A format that contradicts the ending of Name is
	// an error. Command ignores it.
	Format ModuleFormat

	// Args are the program's arguments: process.argv from its third element on.
	Args []string

	// Env replaces or adds to the runtime's Env.
	Env map[string]string

	// Cwd is this run's working directory, which must exist. Empty: the runtime's.
	Cwd string

	// Stdin is the standard input; nil means empty. It is read as the run consumes it. The
	// run's end does not wait for a blocked Read, whose data is dropped. If a Read fails
	// during the run, the run's error wraps that error.
	Stdin io.Reader

	// Signals, if not nil, are sent to the run's first process, as [Process.Signal] does. The run
	// receives from it from its start to its end. Signals that do not exist are dropped.
	Signals <-chan syscall.Signal

	// Timeout is the wall-clock time that the run may take, including its start but not the
	// wait for its turn (Options.MaxConcurrentRuns); a context with a deadline bounds both.
	// Zero: [DefaultTimeout]. Negative: no limit.
	Timeout time.Duration

	// Network bounds this run's use of external hosts.
	Network NetworkLimits

	// OnStdout and OnStderr are called with all output as it arrives, even beyond the capture
	// limit. Each is called by one goroutine at a time; the slice is valid during the call. A
	// slow function slows down the guest.
	OnStdout, OnStderr func([]byte)

	// OnEvent, if not nil, is called with each event of the run, one at a time, by the goroutine that has called
	// Run, Exec or Command. Output becomes events and is not kept: the Result has none, OnStdout and OnStderr are
	// an error, and with KillOnOutput Limits.Output bounds the total output of the run. The data of an event is
	// valid during the call. To end the run early, cancel its context.
	//
	// A slow function slows down the guest: the run blocks as soon as the kernel holds 64 KiB of an output, or 1 MiB
	// of a busy one. It still ends by its Timeout, its context, or its runtime's Close, and the function
	// gets the rest of the events afterwards. It may use the runtime, but must not wait for anything that
	// the run does next.
	//
	// The order of events is exact within each output, within logs, and within calls. Across them it is the order in
	// which this process received them: events of both outputs within a few milliseconds, or while the function
	// is busy, may be swapped. Standard output and standard error are two pipes without a common order. A program
	// whose outputs must stay in order prints to one of them, for example by "2>&1" in a shell, or uses a terminal
	// ([NodeRuntime.Spawn]).
	OnEvent func(Event)

	// OnOutputLimit is what happens when the captured output of a stream exceeds
	// Limits.Output. The zero value drops the rest and lets the program continue.
	OnOutputLimit OutputAction
}

// OutputAction is what happens to a run that prints more than is captured.
type OutputAction int

const (
	TruncateOutput OutputAction = iota // drop output beyond the limit, and set Result.Truncated
	KillOnOutput                       // end the run with CauseOutput
)
