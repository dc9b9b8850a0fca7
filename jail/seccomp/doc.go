// Package seccomp creates the system call filter of guests: a classic BPF program, compiled
// from tables that give a reason for each call.
//
//	call ──> other architecture, x32 ───────────────> process killed
//	     ──> a restriction's Refusal matches ───────> its errno, or the listener
//	     ──> in Allowed ──> a Refusal matches ──────> its errno, or 0 without effect
//	     │              └─> none matches ───────────> allowed
//	     ──> in Denied ─────────────────────────────> EPERM, or the row's own errno
//	     └─> in neither ────────────────────────────> ENOSYS
//
// The filter never kills a legitimate program, which falls back as on a kernel without the
// call. Three calls are in neither table on purpose. The flags of clone3 are in memory,
// which a filter can't read, and C libraries fall back to clone only on ENOSYS. openat2
// takes the mode of new files in memory. Filters that a guest loads with seccomp take memory
// that the whole machine shares.
//
// # Restrictions
//
// A policy adds restrictions to the tables: [NoSpawn] and others, in any combination. Their
// refusals have labels, by which the host learns of the calls: package notify replies to
// calls that the filter sends to its listener. If a guest's own filter returns an errno for
// the call, the kernel uses that one and does not notify the host; the call is refused all
// the same.
//
// # Compilation
//
//	tables, restrictions ── compile ──> program, from its end to its start:
//	                                    loads, comparisons, returns; equal code is shared
//
// The call's number is looked up in a search tree over ranges, and so are the arguments'
// values. libseccomp only resolves the names of calls: it lacks "none of these values"
// under a mask, so a list of permitted values needs a rule for each way to miss them, and
// 2,179 instructions in all.
//
// Each run loads the filter. The kernel checks and translates each instruction, and then
// runs the program once for each existing call: see BenchmarkLoad.
//
// # OCI containers
//
// [OCI] returns the same tables as the seccomp section of a container's configuration, for
// isolations in which an OCI runtime creates the container. Runs load their own filter too.
// A rule of the section compares the bits of arguments to one value, so the tables are
// split into regions, one for each rule. libseccomp compiles them to 1,145 instructions.
//
// # Life cycle
//
// Call [Compile] once for a set of restrictions and load the program in each guest, after
// setting no_new_privs or with CAP_SYS_ADMIN, as the last step before guest code or execve.
// A filter can't be removed and is inherited.
//
// # Not protected against
//
// The filter sees numbers and flags, but never the memory behind a pointer. Mounts,
// Landlock and namespaces restrict paths, addresses and structures. An allowed call may
// have a bug in the kernel. Cgroups limit amounts. A restriction does not affect existing
// objects: open sockets remain open.
package seccomp
