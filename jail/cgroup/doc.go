// Package cgroup limits, accounts and kills groups of processes, with the same interface
// for cgroup v1 and v2. It detects the version that the machine uses, see [Detect]; callers
// can't choose it.
//
// # Life cycle
//
//	New ──> AddPID, or the process joins Dirs itself, or CLONE_INTO_CGROUP
//	  └──> Kill ──> Usage ──> Delete
//
// [NewNamespaceRoot] creates the root of a cgroup namespace, with rules for devices. A
// process in the namespace sees only the groups below.
//
// A [Pool] creates and deletes groups that follow each other. It reuses their names and,
// on v1, their memory groups, because the kernel may keep removed ones.
//
// Read Usage after Kill, when no process can run any more, and before Delete, which removes
// the counters. All three also work on a [Group] from [Open]. That and [Group.Sweep] remove what
// a crashed process has left behind.
//
// v1 lacks cgroup.kill, so each process gets a signal. A group that survives
// several rounds, such as a fork bomb, may not fork any more. It is not frozen
// first: frozen processes do not die on v1, and would outlive this process if it were killed at
// that point. The same is true of a group that [Group.SetFrozen] has stopped.
//
// # Limits
//
// Memory includes page cache and kernel memory, and nothing is swapped. When it runs out,
// the kernel kills the largest process of the group, not the whole group: v1 can't do the
// latter, and guests must not be able to distinguish the versions.
//
// # Not protected against
//
// A process that can write to a cgroup mount can leave its group. The jail's mounts must
// prevent that. The kernel does not charge disk bandwidth, disk space or open files to a
// group, so they are not limited. CPU time is limited in periods of 100 ms, so a short
// burst may use more processors than the limit.
//
// The kernel keeps the memory part of a removed group until nothing is charged to it any
// more. A page of a file is charged to the group that was the first to read it, and stays
// in the page cache until memory is short. So /proc/cgroups may count more groups than
// exist: up to one for each jail that was closed and, on v2, one for each group that read
// or wrote files.
package cgroup
