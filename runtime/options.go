package runtime

import (
	"io"
	"io/fs"
	"time"

	"gaol/policy"
)

// Options says what [Create] makes. The zero value is a complete, safe sandbox:
// the default image, the default limits, no network.
type Options struct {
	// Image names the image that the guest sees as its root, as
	// `gaol image ls` prints it: a name, an id, or an id's unique prefix.
	// Empty: the default image, which Create builds when the store lacks it.
	Image string

	// Store is the folder of the image store. Empty: /var/lib/gaol, or
	// $XDG_DATA_HOME/gaol where the former can't be written. One that is named must
	// exist: `gaol image build --store` makes one.
	Store string

	// Env are the variables every run sees, besides PATH, HOME, USER, LANG and
	// TMPDIR, which it may replace. Nothing of the host's environment is
	// passed on.
	Env map[string]string

	// Cwd is the working directory of the runs: an absolute path in the
	// guest's tree, made if missing and owned by the guest. Best is one that the
	// image has nothing in: see package vfs. Of one below a mount see [Mount].
	// Empty: /workspace.
	Cwd string

	// Mounts are folders and files of the host that the guest sees. It can also read their
	// paths on the host, see [Mount].
	Mounts []Mount

	// UnixSockets lets runs with Mounts that are ReadOnly or ReadWrite make unix sockets.
	// Such sockets connect to any process that listens on a socket file in a mounted folder,
	// processes of the host included, whatever Permissions say of the network: the kernel
	// can't tell them apart. Without it such runs have connected pairs only, as
	// child_process uses them. Runs whose mounts are CopyOnWrite, or NodeModules, can make any
	// unix socket: they see these folders through an overlay, where sockets of the
	// host can't be connected to.
	UnixSockets bool

	// NodeModules is a folder of the host with packages, not a file, shown read-only as
	// node_modules in Cwd, where imports and requires of programs find them. If Cwd is a
	// ReadWrite mount that has none, an empty one is left in the host's folder. Links
	// inside it, as pnpm makes them, work; links that lead out of it don't. What the host
	// changes in it after Create may not show.
	// "snapshot:NAME" shows that of a snapshot's working directory in its place.
	NodeModules string

	// Files are written into the tree before the first run: guest paths, whose
	// folders are made if missing, and what is in them. They are the guest's, but
	// where Permissions deny chmod and not everywhere, with mode 0644. In /proc, /sys,
	// /dev (but for /dev/shm) and /usr/libexec/gaol there can be none. All that Files and Folders write must fit in Limits.Disk and
	// Limits.Inodes, which the guest then has for itself besides.
	Files map[string][]byte

	// Folders are copied into the tree: a guest path, and what comes there. Files
	// are the guest's, as those above, with mode 0644, or 0755 if they can be executed; links, and
	// what is no file, are an error.
	Folders map[string]fs.FS

	// Snapshot names what the guest's own folders begin with, as [NodeRuntime.Snapshot]
	// took it: a name or an ID, in the store of Image. Of its folders those are there
	// that are this runtime's own, too: the home folder, /workspace and Cwd. Each is
	// a mount of its own then: nothing can be renamed from one to another (EXDEV).
	Snapshot string

	// ReadOnlyRoot leaves the guest nothing to write to but the mounts that say so:
	// Cwd, the home folder and the temporary folders are read-only (EROFS).
	ReadOnlyRoot bool

	// Hostname is the guest's host name. Empty: "secure-exec".
	Hostname string

	// Limits bound the runs and the tree. A zero field takes its default.
	Limits Limits

	// CgroupParent is the cgroup below which jails are made, as an absolute
	// path in the hierarchy. Empty: "/gaol".
	CgroupParent string

	// Permissions are what the runs may do. A scope that is left out is that of
	// [policy.Default]: no network, all else within the guest's own world. Each rule
	// is held by the kernel; Create refuses one that can't be (*policy.RuleError), or
	// that this kernel can't hold (*landlock.ABIError). Package policy has the language,
	// and what each operation comes to.
	Permissions policy.Permissions

	// AllowDegraded has Create go on where the kernel lacks a right of Landlock's
	// that Permissions need: what it can't hold is then allowed, see
	// [NodeRuntime.Missing].
	AllowDegraded bool

	// AuditDenials has Result.Denials tell also of what Landlock denies, above all
	// of files, as the kernel's audit records it. That must be on (`auditctl -e 1`),
	// and takes Linux 6.15: Create fails otherwise. Without it, such denials are told only
	// when a program fails by one. The records are the machine's, for all that read
	// them: a hostile guest can fill them.
	AuditDenials bool

	// Launcher is how runs are started.
	Launcher Launcher

	// Bindings are what programs find in globalThis, for the life of the runtime: by
	// name, host functions ([Function]), maps (map[string]any) with functions in them, and
	// data. Of data that is what encoding/json can write, as of now; []byte and time.Time
	// become Uint8Array and Date. Names are those of JavaScript's variables, but for what
	// programs need as Node has it, such as process and Object.
	Bindings map[string]any

	// Calls bound what each run may ask of the functions in Bindings.
	Calls CallLimits

	// MaxConcurrentRuns is how many runs the runtime has at once, at most 8,192.
	// Further ones wait for their turn, in the order in which they were asked for,
	// as long as their context lets them; Timeout counts from the turn. Runs that
	// wait for each other, as through files, or through a callback that asks for
	// another run, must fit in together: otherwise they end by their Timeout alone.
	// A spawned process counts for as long as it lives.
	// Zero: 64, which may use 16 GiB with the default Limits.Memory.
	//
	// In the host process as a whole only starts take turns: a few at a time for
	// each processor.
	MaxConcurrentRuns int

	// MaxContexts is how many contexts ([NodeRuntime.NewContext]) the runtime has at
	// once. Each is a run, and counts among MaxConcurrentRuns, too. Zero: 16.
	MaxContexts int

	// Zygote is for LauncherZygote; with another it is an error.
	Zygote ZygoteOptions

	// Progress is where the building of a missing default image is reported.
	// Nil: nowhere.
	Progress io.Writer
}

// RunOptions says how one run goes. The zero value runs with the runtime's own
// settings, 30 seconds at most, and an empty standard input.
type RunOptions struct {
	// Permissions are what the run may do, where that is less than its runtime may:
	// what allows more is an error. A scope that is left out is the runtime's. A run
	// has no mounts of its own, so that only some rules can be held, see
	// [policy.LowerRun].
	Permissions policy.Permissions

	// Name is the file name that the program has in stack traces and in
	// import.meta: a plain name in the working directory, without a slash.
	// Its ending says the language: .js, .mjs and .cjs are JavaScript; .ts, .mts, .cts,
	// .tsx and .jsx are TypeScript or JSX, see below. It also says the format: .mjs and .mts
	// are ES modules, .cjs and .cts are CommonJS, for the others see Format.
	// No such file is written. Empty: "main.mjs", or "main.cjs" for CommonJS. Command
	// ignores it.
	//
	// TypeScript and JSX become JavaScript on the host, by esbuild: enum, namespaces,
	// parameter properties and decorators work; types are not checked. A source map keeps
	// the lines of stack traces those of the code. No tsconfig.json is read: imports stay
	// unless they say type, and JSX becomes React.createElement unless a comment says
	// @jsx or @jsxRuntime. In CommonJS, import and export declarations become require
	// and exports. Code of more than 64 KiB, or code that is too complex for the host, is
	// left to Node, which only removes types; as .tsx or .jsx it throws a SyntaxError.
	Name string

	// Format is the program's module format. A format that contradicts the ending of Name
	// is an error. Command ignores it.
	Format ModuleFormat

	// Args are the program's arguments: process.argv from its third on.
	Args []string

	// Env is laid over the runtime's Env.
	Env map[string]string

	// Cwd is this run's working directory, which must exist.
	// Empty: the runtime's.
	Cwd string

	// Stdin is read as the run consumes it. Nil: empty. A run's end does not
	// wait for a Read that is still blocked; that Read's data is dropped. If a
	// Read fails during the run, the run's error is that.
	Stdin io.Reader

	// Timeout is the wall-clock time a run may take, its start included, but not
	// what it waits for its turn (Options.MaxConcurrentRuns): a context with a
	// deadline bounds both. Zero: 30 seconds. Negative: no limit.
	Timeout time.Duration

	// OnStdout and OnStderr get the output as it comes, all of it, whatever
	// the capture limit says. Each is called from one goroutine at a time; the
	// slice is valid during the call. A slow callback slows the guest down.
	OnStdout func([]byte)
	OnStderr func([]byte)

	// OnOutputLimit says what happens when the captured output of a stream
	// reaches Limits.Output. The zero value drops the rest and lets the
	// program go on.
	OnOutputLimit OutputAction
}

// OutputAction is what happens to a run that prints more than is captured.
type OutputAction int

const (
	TruncateOutput OutputAction = iota // drop what is over the limit; Result.Truncated says so
	KillOnOutput                       // end the run with CauseOutput
)
