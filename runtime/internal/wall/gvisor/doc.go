// Package gvisor makes sandboxes inside gVisor, a kernel in a process of this machine: an agent runs there, and package remote
// uses it.
//
//	this process                          gVisor, by runsc in its own cgroup and mount namespace
//	New ── bundle, socket pair ── runsc ──> gaol agent, pid 1 ── native.New ── jail ── runs
//	remote ═════════ socket, as the agent's standard input ═════╝
//
// The guest sees gVisor's kernel, which implements system calls itself. The jail, its zygote and its filters are the same as
// without gVisor, where that has what they need.
//
// # Limits
//
// gVisor accepts the limits of cgroups, except for that of tasks, and does not enforce them. So there are two others:
//
//   - The agent kills a run that uses more memory than its limit, which it checks some times in a second.
//   - The host's cgroup of the whole sandbox is limited to the memory and the processors of the active runs, the size of the tree,
//     which is in memory, and an amount for gVisor and the agent. If its memory runs out, the kernel kills the sandbox: the cause
//     of its runs is memory.
//
// # Not protected against
//
// Nothing limits the number of files in the tree except memory, and a run may use more processors than its limit if that is
// below one, or while other runs of its sandbox use less.
package gvisor
