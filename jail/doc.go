// Package jail holds processes with the kernel: namespaces, mounts, cgroups,
// system call filters, ids, limits, killing and accounting. It is mechanism
// only: it takes a plain [Spec] and never hears of a permission.
//
//	Create ── slot (uid range, name) ── cgroups ── stage (tmpfs, overlay, root, /dev,
//	   │                                            mounts of the host's, what covers places)
//	   │         └─ enter: namespaces, /proc, root, no rights, filter ── pid 1: catatonit -P
//	   │
//	   ├─ Start ── run cgroup ── enter: namespaces, no rights, ruleset, filter ── PROGRAM
//	   │                      └─ or a zygote forks, and its child does the same
//	   │             ├─ the filter's listener: calls that it refuses are told
//	   │             └─ Wait: reap, kill what is left in the cgroup, account, clear the cgroup
//	   │
//	 Close ── kill, reap pid 1, remove cgroups and state, give the slot back
//
// The host mounts what it can, on a thread with a mount namespace of its own. What
// only a process of the jail can do, or only one with a single thread, is package
// enter's: a list of steps for it tells the whole way.
//
// A host in a chroot has jails too: package chroot has the stage's thread leave it, without
// which the kernel would refuse the jail's user namespace.
//
// A program that imports this package needs no call in its main. Its main goroutine
// keeps the main thread: see runtime.LockOSThread.
//
// # What ends a jail
//
// Close does. So does the death of the host process, however it dies: the kernel
// kills pid 1 when the host thread that started it ends, and with pid 1 all that
// is in the pid namespace. Pid 1 executes its program only after the host has confirmed
// that it is alive and the signal is set; until then, it ends by itself when the host
// does. What a killed host left in /run/gaol and in the cgroups is cleared by the next
// process that makes a jail.
//
// # What it does not protect against
//
// A bug in the host's kernel. One run of a jail from another run of the same
// jail: they share a user id, a file tree and a pid namespace. Side channels
// through the processor. What /proc shows of the machine: see package procfs. Hosts that
// do not share a state folder, as where one is in a chroot with a /run of its own, may
// give two jails the same user ids.
package jail
