// Package bench measures what a sandbox costs, beside bare Node with the same program,
// on the same machine and in the same minutes. gaol bench prints the result.
//
//	Measure ── for each of figures: bare │ exec │ zygote │ bare │ exec │ zygote │ ... ──> Report
//	                                                                                Table, JSON
//
// The machines it runs on are shared, so that a time alone says little. Bare and jailed
// samples therefore take turns, so that drift affects all of them. A claim about speed
// is a ratio, of medians unless its name says otherwise: a p99 is divided by bare Node's
// p99, which had the same neighbors. The cost of a run beside other live runtimes is a
// ratio to the same run without them, instead.
//
// # Measurements
//
// A run prints a line and returns a value. Both are checked, so that a program that failed
// early is not counted as a fast one. The time is that of the call of Run: the jail is
// entered, the program runs, its processes are reaped. Bare Node prints the same and is
// started by os/exec, with pipes for its output.
//
// Programs that take long have the same source on all sides, and the times are those of
// whole processes, with the start of Node. Their jails may use all processors and
// plenty of memory, so that no limit is measured.
//
// The throughput of output is that of a gigabyte from a program that prints without
// pause, from the start to the end of the run, with the default limits. Bare Node is
// piped into the host's cat, which writes to /dev/null.
//
// Callers of the pool arrive at a steady rate, whether or not the previous one has left.
// They wait for Get and Run, while the pool creates the next runtimes and the previous
// caller's is closed. Bare Node is started at the same rate.
//
// The memory of an idle runtime is the PSS of its processes. The memory of a running
// program is its private pages while an equal program runs, which is what one more
// program costs: the first one shares the text of Node, and what a zygote shares with its
// forks. Growth of the host process and kernel memory are not included.
//
// Runs with all permissions denied take turns with runs with the default permissions, on
// the same side.
//
// File work on a snapshot, which is an overlay, has two figures. A project's file work
// is that of npm, a compiler and Node's loader, in the mix that strace found, with a small
// part of their computing: that is what guests do. The file calls alone are the file-heavy
// program, which only creates, renames and removes small files: its ratio is overlayfs's
// own cost of a call. It has no bar, because programs that do something with their files
// do not pay it. The project's bar is also for exec: overlayfs costs both the same.
//
// The time of what happens in the host, calls of functions and parsing of snippets,
// depends on how often Go collects garbage there. This process therefore has a heap of
// 16 MiB, as a small server has: with its own 2 MB a snippet of 20 KB takes half as
// long again (6.9 against 4.7 ms).
//
// A call of a host function is measured in the guest, from the call to its result, with
// Node's and gaol's parts: a thousand calls in a fresh run, one after the other, and then a
// thousand at once. For comparison, bare Node sends the same arguments to a server in this
// process by HTTP, over persistent connections: a guest that may use the network would call
// its host like that.
//
// # Isolations
//
// Isolations take the place of launchers if Options names some: bare │ native │ runc │ bare │ ...
// Each uses its fastest launcher: the native isolation forks, the others start a new Node. Only
// starts are measured, because running programs use the same kernel with the same limits.
//
// # Bare Node
//
// Bare Node is the image's own binary, the same file on disk, started on the host
// with the image's own dynamic loader, so that the host needs none of its libraries.
// That costs what starting it directly does (measured: 26.7 against 26.7 ms, 29.4 against
// 29.6). A copy of the binary, or a chroot with one, would not do: copies differ by
// 3 to 4 ms, depending on how they came into the page cache. So the file must be the one
// that the jails start. The environment is minimal; the host's NODE_EXTRA_CA_CERTS alone
// would cost 26 ms. Its working directory is in memory if possible, as that of the jails is.
//
// # Limits
//
// Other load need not slow down all sides alike: bare Node shares the cpu cgroup of this
// process with other processes of the host; a run is in a cgroup below the jails' parent,
// and shares that with other jails. Quote figures from a quiet machine.
//
// The first start after a boot, when nothing is cached, and the building of an image are
// not measured. A slowdown of Node itself is not found, because it is on both sides of
// every ratio.
package bench
