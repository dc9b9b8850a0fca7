// Package jail confines processes with kernel mechanisms: namespaces, mounts, cgroups,
// system call filters, user ids and limits. It starts, kills and accounts for them. It does
// not know permissions: it enforces a [Spec].
//
//	Create ── slot (user ids, name) ── cgroups ── package mounts: the file tree
//	   │         └─ package enter: namespaces, /proc, root directory, no rights, filter ── pid 1: the reaper (catatonit -P)
//	   │
//	   ├─ Start ── run cgroup ── launcher: the entry program (package enter), or a fork of a zygote
//	   │             │             └─ namespaces, no rights, ruleset, filter ── PROGRAM
//	   │             ├─ notifications of the filter: refused calls are reported
//	   │             └─ Wait: reap, kill the rest of the cgroup, account, remove the cgroup
//	   ├─ Park ── the same up to the program, which a later Start provides
//	   │
//	 Close ── kill, reap pid 1, remove cgroups and state, release the slot
//
// The host mounts the file tree on a thread with its own mount namespace. What only a
// process of the jail can do, or only a single-threaded process, is done by the entry
// program, from a list of steps: see steps.go for their order.
//
// With Spec.OCI the jail is a container: an OCI runtime makes the namespaces, the root directory and
// pid 1, and starts the entry program of each process. Everything else is the same,
// but there are no zygotes. A supervisor kills pid 1 when the host dies.
//
// A host in a chroot can create jails, too: mounts.OutsideChroot moves the thread out of the
// chroot, without which the kernel would refuse to create the user namespace.
//
// The package locks the main goroutine of every program that imports it to the main thread:
// see runtime.LockOSThread. The program may call the package from any goroutine.
//
// # What ends a jail
//
// Close, or the death of the host process, however it dies: the kernel kills pid 1 when the
// host thread that started it ends, and with pid 1 all processes of its pid namespace. Pid
// 1 executes its program only after the host has confirmed that it is alive and that the
// death signal is set; until then, pid 1 ends when its socket to the host is closed. The
// next process that creates a jail removes the leftovers of a killed host in /run/gaol and
// in the cgroups. With cgroup v1, these include the processes that SetPaused has stopped.
//
// # Not protected against
//
// A bug in the host's kernel. One run of a jail from another run of the same jail: they
// share a user id, a file tree and a pid namespace. Side channels through the processor.
// What /proc shows of the machine: see package procfs. Hosts that do not share a state
// folder, for example because one is in a chroot with its own /run, may give two jails the
// same user ids.
package jail
