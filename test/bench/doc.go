// Command bench measures what gaol's own development watches, with bars: the figures of gaol bench and
// those of workloads, memory, snapshots, calls and pools. Package gaol/cmd/gaol/bench describes
// how it measures.
//
//	go run ./test/bench [-sides exec,zygote] [-only ID,...] [-samples N] [-quick] [-json]
//
// It takes some five minutes and up to 1,000 jails. A missed bar is printed and is no failure.
//
// The cost of a run beside other live runtimes is a ratio to the same run without them.
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
// own cost of a call. It is without a bar, because programs that do something with their files
// do not pay it. The project's bar is also for exec: overlayfs costs both the same.
//
// The time of what happens in the host, calls of functions and parsing of snippets,
// depends on how often Go collects garbage there. [bench.Measure] therefore keeps a heap of
// 16 MiB, as a small server has: with its own 2 MB a snippet of 20 KB takes half as
// long again (6.9 against 4.7 ms).
//
// A call of a host function is measured in the guest, from the call to its result, with
// Node's and gaol's parts: a thousand calls in a fresh run, one after the other, and then a
// thousand at the same time. For comparison, bare Node sends the same arguments to a server in this
// process by HTTP, over persistent connections: a guest that may use the network would call
// its host like that.
package main
