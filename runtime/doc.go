// Package runtime runs untrusted Node.js programs, each in a jail that the
// kernel holds, and says what came of them. It is gaol's public SDK.
//
//	Create ──> NodeRuntime ─┬─ Run, Exec, Command ───────────────────────> Result
//	                │       ├─ Spawn, SpawnCode ──> Process ── Wait ──────> Result
//	                │       ├─ Evaluate ──────────────────────────────────> Evaluation
//	                │       ├─ FollowRun, ... ────> Stream ─── Events ────> one of these
//	                │       └─ NewContext ──> Context ── Evaluate, again ─> Evaluation
//	              Close        (as many as you like, also at once)
//
// A runtime is one sandbox: a file tree that lasts from run to run, and a jail
// around it. A run is one fresh process in it; nothing of its memory outlives it,
// and when its first process ends, what it left running is killed.
//
//	rt, err := runtime.Create(ctx, runtime.Options{})
//	if err != nil { ... }
//	defer rt.Close()
//	res, err := rt.Run(ctx, `__return({ sum: 1 + 2 })`, runtime.RunOptions{})
//
// A guest that fails is a [Result]; a host that fails is an error. So a program
// that throws, exits with 3, is killed for memory or runs out of time comes back
// with a nil error, and an error means that gaol could not do its job, or that the caller's
// context, or Close, ended the run: then the Result of what there was by then is beside it.
//
// A spawned process lives until it ends, is killed, or its runtime is closed. Its caller
// writes and reads its streams, or works at its terminal, sends it signals, and waits for
// it. [NodeRuntime.Processes] lists what runs.
//
// A run can be followed as it goes on, by [NodeRuntime.FollowRun] and its like and by
// [Process.Events]: what it prints, calls and is denied comes as events, and its exit as
// the last. A slow receiver slows the guest down; of each output the host holds
// two pieces of 256 KiB at most, and after its end what the kernel held.
//
// A [Pool] keeps runtimes ready for who can't wait for Create.
//
// The host reads and writes the tree by [NodeRuntime.FS], also while runs are under way.
//
// Any number of runs can be asked for at once. A runtime has 64 of them under way,
// or Options.MaxConcurrentRuns, and the others wait for their turn.
//
// # What models write
//
// [NodeRuntime.Evaluate] takes a snippet as a model hands it over, runs it in a process
// of its own, and has its value, what it printed, and an error that can be told to the
// model. Options.Bindings and EvaluateOptions.Globals give programs data and functions
// of the host's, which look like any others to them: see [Function]. What crosses between
// the two is package internal/wire's, and bounded by [CallLimits].
//
// A [Context] keeps what such code declares for what comes after it, as a notebook does:
// it is one process that lives until it is closed, or nobody has used it for a time.
//
// # What holds the guest
//
// The kernel: user, pid, mount, network, ipc, uts and cgroup namespaces, no
// capability, no_new_privs, a system call filter, cgroup limits, a read-only image
// under a bounded writable layer. See package jail. The guest's JavaScript has no
// part in it.
//
// # Permissions
//
// Options.Permissions say what the runs may do, in the language of package policy, and
// RunOptions.Permissions what one run may, where that is less. What is left out is
// the default's: no network, all else within the guest's own world.
//
//	scope         operations                         held by                        errno           kernel  not covered
//	fs            read write readdir create_dir      mounts that hide, or are       EACCES, EROFS,  6.2     stat where anything else
//	              rm rename symlink chmod truncate   read-only or noexec;           EXDEV, EPERM            is allowed
//	              execute stat readlink              Landlock; owners; seccomp
//	network       fetch connect listen dns           no sockets: seccomp; ports:    EACCES,         6.7 *   UDP by port;
//	                                                 Landlock; no way out           ENETUNREACH             hosts outside
//	childProcess  spawn                              seccomp; a list of programs:   EPERM, EACCES   6.2 **  what a listed one
//	                                                 Landlock and noexec mounts                             runs itself
//	process       signal inspect                     Landlock's scope; /proc        EPERM, ENOENT   6.12    the run's own
//	env           read                               the variable is not passed     not there       any
//
// * for rules about ports, ** for a list of programs; else any. Package policy has it
// by operation, and what is refused because nothing holds it. Create refuses what this
// kernel is too old for; [CheckPermissions] says all of it without making anything, as
// `gaol policy check` does.
//
// What a run was denied is in Result.Denials, by rule and with its source: the kernel's
// word, or a hint from what Node printed last. Folders within the guest's own that it
// is let write in are made by Create.
//
// # What it does not protect against
//
// Where the sources of [Mount] are on the host: the guest can read it, unless they are
// copied on write. What the host's own functions let a guest do: any code of the guest may call them, with
// any arguments. A bug in the host's kernel; side channels through shared hardware; one run of a
// runtime from another run of the same runtime, whose terminals it can open: use one
// runtime for each party that must not see the others. What a guest's escape sequences
// do to a terminal that its output is shown on.
//
// # Requirements
//
// Linux on amd64 or arm64, root, and what `gaol doctor` checks for.
package runtime
