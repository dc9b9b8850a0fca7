// Package seccomp makes the system call filter that guests run under: a classic
// BPF program, made from two tables that carry their reasons.
//
//	call ──> other architecture, x32 ───────────────> process killed
//	     ──> a restriction's Refusal matches ───────> its errno, or the listener
//	     ──> in Allowed ──> a Refusal matches ──────> its errno, or 0 without effect
//	     │              └─> none does ──────────────> allowed
//	     ──> in Denied ─────────────────────────────> EPERM, or the row's own errno
//	     └─> in neither ────────────────────────────> ENOSYS
//
// A legitimate program never dies of the filter, and falls back as on a kernel
// that lacks the call. clone3 is in neither table on purpose: its flags lie in
// memory, which a filter can't read, and C libraries go back to clone on ENOSYS
// only. openat2 is in neither for the same reason: of the mode of new files. seccomp
// is in neither since filters take memory that all of the machine shares.
//
// # Restrictions
//
// What a policy takes away is laid over the tables: [NoSpawn] and its neighbours, in
// any combination. Their refusals carry labels, by which the host may hear of them:
// package notify answers calls that such a filter sends to its listener. Where a
// guest's own filter gives the call an errno, the kernel takes that and the host
// hears nothing; the call is refused all the same.
//
// # How it is made
//
//	tables, restrictions ── compile ──> graph of questions ── assemble ──> []sock_filter
//	                                      one node for all      loads, jumps, one
//	                                      equal questions       return for an answer
//
// Which call? is a search tree over ranges of numbers, which arguments? the same
// over the values that refusals name. libseccomp tells the calls' numbers only:
// it knows no "none of these values" under a mask, so that a list of good ones
// takes it a rule for each way to miss them, and 2,179 instructions in all.
//
// Size matters since each run loads the filter anew. The kernel checks and
// translates each instruction, and then goes through the program once for each
// call there is: see BenchmarkLoad.
//
// # Life cycle
//
// [Compile] once for a set of restrictions, load the bytes in each guest: after
// no_new_privs is set, or with CAP_SYS_ADMIN, as the last step before guest code or
// execve. A filter can't be taken off and is inherited.
//
// # What it does not protect against
//
// It sees numbers and flags, never the memory behind a pointer: paths, addresses
// and structures are the business of mounts, Landlock and namespaces. An allowed
// call may have a bug in the kernel. Limits on amounts are those of cgroups. What
// runs already when a restriction is put on goes on: sockets that are open stay so.
package seccomp
