// Package bench measures the cost of a sandbox against bare Node with the same program,
// on the same machine and in the same minutes. gaol bench prints the result.
//
//	Measure ── for each of Figures: bare │ exec │ zygote │ bare │ exec │ zygote │ ... ──> Report
//	                                                                                Table, JSON
//
// On shared machines, absolute times are not comparable. Bare and jailed samples therefore
// alternate, so that drift affects all of them. A claim about speed is a ratio, of medians
// unless its name includes a percentile: a p99 is divided by bare Node's p99, which had the same
// neighbors.
//
// A run prints a line and returns a value. Both are checked, so that a program that failed
// early is not counted as a fast one. The time is the duration of Run: it enters
// the jail, runs the program and reaps its processes. Bare Node prints the same and is started
// by os/exec, with pipes for its output.
//
// A jailed side is a launcher or an isolation. An isolation uses its fastest launcher: native
// forks, the others start a new Node.
//
// Command test/bench adds the figures and bars of gaol's own development.
//
// # Bare Node
//
// Bare Node is the image's own binary, the same file on disk, started on the host
// with the image's own dynamic loader, so that the host needs none of its libraries.
// That takes as long as starting it directly (measured: 26.7 against 26.7 ms, 29.4 against
// 29.6). A copy of the binary, or a chroot with a copy, would distort the comparison: copies
// differ by 3 to 4 ms, depending on how they were read into the page cache. So bare Node and the
// jails start the same file. The environment is minimal; the host's NODE_EXTRA_CA_CERTS alone
// would cost 26 ms. The working directory is in memory if possible, as in the jails.
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
