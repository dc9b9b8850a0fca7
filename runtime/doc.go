// Package runtime is gaol's public SDK. It runs untrusted Node.js programs, each in a jail
// that the kernel enforces, and reports how they ended.
//
//	Create ──> NodeRuntime ─┬─ Run, Exec, Command ───────────────────────> Result
//	                │       ├─ Spawn, SpawnCode ──> Process ── Wait ──────> Result
//	                │       ├─ Evaluate ──────────────────────────────────> Evaluation
//	                │       └─ NewContext ──> Context ── Evaluate, again ─> Evaluation
//	              Close        (any number, concurrently)
//
// A runtime is one sandbox: a file tree that persists between runs, and a jail around it. A
// run is one fresh process in it. Nothing of its memory survives it, and when its first
// process ends, all other processes of the run are killed.
//
//	rt, err := runtime.Create(ctx, runtime.Options{})
//	if err != nil { ... }
//	defer rt.Close()
//	res, err := rt.Run(ctx, `__return({ sum: 1 + 2 })`, runtime.RunOptions{})
//
// A failing guest is a [Result]; a failing host is an error. A program that throws, exits
// with 3, runs out of memory or exceeds its timeout returns a nil error. An error means that gaol
// failed, or that the caller's context or Close ended the run; then the Result so far is
// returned, too.
//
// A spawned process lives until it exits, is killed, or its runtime is closed. Its caller
// writes and reads its streams, or uses its terminal, sends signals, and waits for it.
// [NodeRuntime.Processes] lists active runs.
//
// RunOptions.OnEvent, EvaluateOptions.OnEvent and [Process.Events] report the events of a run while it
// runs: output, calls of host functions and denials. Slow consumers apply backpressure: for each output the host holds two buffers of 256 KiB at
// most. When the run has ended, it also reads the rest of the pipes, 1 MiB each at most.
//
// [NodeRuntime.Pause] stops all processes of a runtime until [NodeRuntime.Resume].
//
// Use a [Pool] when Create is too slow for a request.
//
// [NodeRuntime.FS] gives the host access to the tree, also during runs. [NodeRuntime.Dial] and
// [NodeRuntime.NewTransport] connect the host to the guest's servers.
//
// Any number of runs can be requested concurrently. At most 64, or Options.MaxConcurrentRuns, are
// active in a runtime; further runs wait for their turn.
//
// # Code from models
//
// [NodeRuntime.Evaluate] runs a snippet as a model wrote it, in a new process. It returns the
// snippet's value, its output, and an error that can be shown to the model.
// Options.Bindings and EvaluateOptions.Globals provide data and host functions to programs,
// see [Function]. Package internal/wire defines the frames between the two sides, and
// [CallLimits] bounds them. Options.Commands are programs of the guest that call the host, see
// [HostCommand].
//
// A [Context] keeps the declarations of its cells, as a notebook does: it is one process that
// lives until it is closed, or unused for some time.
//
// # Compiling code
//
// TypeScript, JSX and the code of Evaluate are compiled before they run, by confined processes that
// are this program, executed again: they start with the first such code, and end after half a minute
// without any. Runtimes with the same Options.CgroupParent share them. Code that exhausts such a process
// is an error of its author. main does not run there, but Go has initialized some of the program's packages
// before package runtime takes the process over: its imports, and packages whose import paths precede
// it. Their variables and init functions run as root with few capabilities, without arguments and
// environment, and their files are closed. So they should have no effects outside the process, such as
// listening, and must not fail without a variable. Options.WorkInProcess compiles in this process instead.
//
// # What confines the guest
//
// The kernel: user, pid, mount, network, ipc, uts and cgroup namespaces, no capabilities,
// no_new_privs, a system call filter, cgroup limits, a read-only image under a bounded
// writable layer. See package jail. Nothing depends on the guest's JavaScript.
//
// # Permissions
//
// Options.Permissions restrict all runs, in the language of package policy.
// RunOptions.Permissions restrict a single run further. Omitted scopes use the default:
// everything inside the sandbox, with its own localhost, and no other host.
//
//	scope         operations                         enforced by                    errno           kernel  not covered
//	fs            read write readdir create_dir      hidden, read-only and noexec   EACCES, EROFS,  6.2     stat where another
//	              rm rename symlink chmod truncate   mounts; Landlock; file owners; EXDEV, EPERM            operation is allowed
//	              execute stat readlink              seccomp
//	network       fetch connect listen dns           no IP sockets: seccomp; ports: EACCES,         6.7 *   UDP by port; what
//	                                                 Landlock; hosts: BPF, egress   EAI_AGAIN               TLS hides
//	childProcess  spawn                              seccomp; a list of programs:   EPERM, EACCES   6.2 **  what a listed program
//	                                                 Landlock and noexec mounts                             executes itself
//	process       signal inspect                     Landlock's scopes; /proc       EPERM, ENOENT   6.12    the run's own
//	env           read                               the variable is not passed     unset           any
//
// The column kernel lists the oldest version that enforces the rules: * only for rules about
// ports, ** only for a list of programs; otherwise any version. Package policy documents each
// operation, and which rules are refused because nothing can enforce them. Create
// refuses rules that this kernel is too old for. [CheckPermissions] reports the same without
// creating anything, as `gaol policy check` does.
//
// Create makes missing folders that the rules allow writing to, if they are inside the
// guest's own folders. Result.Denials lists the operations that a run was denied, by rule and
// with the source: the kernel, or a hint from the error that Node printed last.
//
// # Not protected against
//
//   - Bugs in the host's kernel, and side channels through shared hardware.
//   - Mistakes in host functions: any code of the guest may call them with any arguments.
//   - Other runs of the same runtime, which can open each other's terminals: use one runtime
//     for each user.
//   - The location of a [Mount]'s source on the host, which the guest can read unless the
//     mount is copy-on-write.
//   - Escape sequences in the guest's output, if a terminal of the host shows it.
//
// # Requirements
//
// Linux on amd64 or arm64, root, and what `gaol doctor` checks.
package runtime
