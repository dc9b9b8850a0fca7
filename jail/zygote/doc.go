// Package zygote keeps a warmed-up Node that forks: each child walks into a jail
// and becomes a run, which spares it Node's start.
//
//	Start ── mount namespace (image, read-only, and nothing else) ── node, warm ── waits
//	   │
//	   ├─ Fork ── order + descriptors ──> zygote: clone into the jail's pid namespace
//	   │             ├─ request ────────> child: cgroup, namespaces, descriptors, limits,
//	   │  Park ─────>│                    user, no capabilities
//	   │             └─ program ────────> arguments, filter ─> JavaScript, or execve
//	 Close
//
// Fork does it all at once; Park stops half-way, and Child.Run goes on when there is
// a program. A parked child has gone through a rehearsal of its run, so that the pages
// which a run writes to are its own already.
//
// A child has none of the zygote's helper threads. Each of them sleeps when the zygote
// forks, and Start fails if one sleeps where a child could not revive it. A child revives
// a helper when something first wakes it, but not before the child's filter is on, and
// only if its group has room for a thread: a small run revives none, and one that
// collects much garbage revives all. These are the threads of Node 22, 24 and 26, as gdb
// shows them in a zygote:
//
//	V8Worker (4)          collects garbage and compiles in the background. It sleeps in
//	                      pthread_cond_wait, and is revived by pthread_cond_signal.
//	DelayedTaskScheduler  holds V8's delayed tasks for those, such as the time limit of
//	                      the inspector's Runtime.evaluate. It sleeps in epoll_pwait, in
//	                      an event loop of its own, and is revived by a write to the
//	                      loop's eventfd. A child renews the loop's descriptors.
//
// Others do not exist in a zygote. The flag --disable-sigusr1 prevents the thread that
// would wait for SIGUSR1. libuv's pool starts with its first task, and the inspector's
// server, the watchdog of SIGINT and the profilers start when a program uses them: in
// the child. OpenSSL has no threads, and its generator is reseeded in the child.
//
// A [Pool] starts zygotes when they are needed, replaces those that are old, dead or
// hung, and ends them when nobody wants them any more. A zygote may die between a
// fork and telling of it; the child then gets no request, ends, and is waited for.
//
// A zygote is outside every jail. It holds no secret and has run no guest's code,
// and has no descriptor but its socket's. It ends with the host process.
//
// src/wire.c draws the protocol. The module that Node runs, which warms it up
// and makes a child's JavaScript state its own, is the caller's: see [Spec].
//
// # What it does not protect against
//
// Children of one zygote have the same address layout, and the same seed of V8's
// hash tables: a guest that finds out its own knows its siblings'. A [Pool] bounds
// how many share them. What a vm.createContext of theirs gets from Math.random, which
// is no source of secrets, comes from one sequence, too; that of the main context,
// and of workers, does not.
package zygote
