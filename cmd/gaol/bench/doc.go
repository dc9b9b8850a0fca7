// Package bench measures what a sandbox costs beside starting bare Node with the
// same program, on the same machine and in the same minutes. gaol bench prints it.
//
//	Measure ── for each figure: bare │ exec │ zygote │ bare │ exec │ zygote │ ... ──> Report
//	                                                      WriteTable, JSON, WritePicture
//
// The machines it runs on are shared, so that a time by itself says little. Bare
// and jailed samples take turns for that reason, so that drift hits all. A claim
// about speed is a ratio, of their medians if nothing else is said: a p99 is
// divided by bare Node's own p99, which has met the same neighbours. Only the cost
// of a run beside other live runtimes is a ratio to the same run without them.
//
// # What is measured
//
// A run prints a line and hands back a value; both are checked, so that a program
// that failed early does not count as a fast one. It goes from the call of Run to
// its return: jail entered, program run, processes reaped. Bare Node prints the
// same and is started by os/exec, with pipes for its output.
//
// The programs that take long are the same source on all sides, and their whole
// processes are measured, Node's start included. Their jails may use all processors
// and plenty of memory, so that no limit is what is measured.
//
// Output that goes by is a gigabyte from a program that prints without pause. It counts
// from the start to the end of the run, under the default limits, and bare Node has the
// host's cat behind it, which writes to /dev/null.
//
// Callers of the pool come at a steady rate, whether or not the last one has left:
// what they wait for is Get and Run, while the pool makes the next runtimes and the
// last caller's is closed. Bare Node is started at the same rate.
//
// An idle runtime is weighed as the PSS of its processes. A running program is
// weighed as its private pages while another one like it runs, which is what one
// more costs: the text of Node, and what a zygote shares with its forks, is there
// anyway. Neither sees what grows in the host process, or in the kernel.
//
// What permissions cost is told in two ways: runs that may do nothing take turns with
// runs under the default, on the same side; and a file-heavy program that may write
// below one folder only is compared with bare Node under such a Landlock ruleset, as
// the kernel's own checks are not the jail's.
//
// File work on a snapshot, which is an overlay, is told in two ways as well. A project's
// is what npm, a compiler and Node's loader do with files, in the mix that strace found
// in them, with a small part of their computing: that is what guests do. The file calls
// alone are the file-heavy program, a pure stress of making, renaming and removing small
// files: its ratio is overlayfs's own price for a call, which nobody pays who does
// anything with the files, so that it has no bar.
//
// What happens in the host itself, calls of functions and the reading of snippets, depends
// on how often Go collects garbage there. This process has a heap of 16 MiB for that reason,
// as a small server has: with its own 2 MB a snippet of 20 KB takes half as long again
// (6.9 against 4.7 ms).
//
// A call of a host function is measured in the guest, from the call to its result, Node's
// and gaol's parts included: a thousand in a fresh run, one after the other, and then a
// thousand at once. Beside them bare Node asks a server in this process the same by
// HTTP, over connections that stay open.
//
// # Bare Node
//
// Bare Node is the image's own binary, the same file on disk, started on the host
// through the image's own dynamic loader, so that the host needs none of its
// libraries. That costs what starting it directly does (measured: 26.7 against
// 26.7 ms, 29.4 against 29.6). A copy of the binary would not do, nor a chroot into
// one: copies differ by 3 to 4 ms, by how they came into the page cache. So the
// file must be the one that the jails start. The environment is minimal; the
// host's NODE_EXTRA_CA_CERTS alone would cost 26 ms. It works in a folder in
// memory, where there is one, as the jails do.
//
// # What it does not tell
//
// What else runs on the machine need not slow down all sides alike: bare Node is in
// the cpu cgroup of this process, and shares it with all that is there; a run is in
// one below the jails' parent, and shares that with other jails. Quote figures from
// a quiet machine.
//
// It does not measure the first start after the machine's, when nothing is cached,
// and the building of an image. Nor does it find a slowdown of Node itself, which
// is on both sides of every ratio.
package bench
