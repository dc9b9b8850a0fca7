// Package cgroup bounds, counts and kills groups of processes, alike on cgroup
// v1 and v2. Which of the two it works on is found by looking at the machine,
// see [Detect]; nothing configures it.
//
// # Life cycle
//
//	New ──> AddPID, or the process itself by JoinFiles, or CLONE_INTO_CGROUP
//	  └──> Kill ──> Usage ──> Delete
//
// [NewTop] begins a tree of groups, with rules about devices, that a cgroup namespace
// hides all others from.
//
// A [Pool] makes and deletes groups that follow each other, and reuses their names and,
// on v1, a part of each: what was removed may stay in the kernel.
//
// Usage is read after Kill, when nothing can run any more, and before Delete,
// which takes the counters away. All three work on a [Group] got by [Open] too:
// that, and [Sweep], are how the leftovers of a crashed process are cleared.
//
// On v1, which has no file that kills a group, each of its processes gets a signal.
// A group that survives several rounds of that, as one that forks without end may, is
// not allowed to fork any more. It is never frozen, as frozen processes do not die on v1:
// if this process were killed then, they would outlive it.
//
// # Limits
//
// Memory counts page cache and kernel memory too, and nothing is ever swapped.
// When it runs out the kernel kills the group's biggest process, not the whole
// group: v1 can't do the latter, and both versions are to show a guest the same.
//
// # What it does not protect against
//
// A process that may write to a cgroup mount can leave its group; keeping guests
// away from those is the mount plan's duty. A group bounds nothing that is not
// charged to it: disk bandwidth, disk space, open files. CPU time is bounded over
// periods of 100 ms, so a short burst may use more processors than allowed.
//
// The kernel keeps the memory part of a removed group until nothing is charged to it any
// more. A page of a file is charged to the group that was the first to read it, and stays
// in the page cache until memory is short. So /proc/cgroups may count more groups than
// there are, up to one for each jail that was closed and, on v2, for each group that read
// or wrote files.
package cgroup
