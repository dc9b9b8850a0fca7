// Package zygote keeps a warmed-up Node process that forks: each child enters a jail and
// becomes a run, without the cost of starting Node.
//
//	Start ── mount namespace (image, read-only, and nothing else) ── node, warm ── waits
//	   │
//	   ├─ Fork ── order + descriptors ──> zygote: clone into the jail's pid namespace
//	   │             ├─ request ────────> child: cgroup, namespaces, descriptors, limits,
//	   │             │                    user, no capabilities
//	   │             └─ program ────────> arguments, filter ─> JavaScript, or execve
//	 Close
//
// Fork sends both. Without a program it sends only the request, and the child is parked until
// Child.Run sends the program. A parked child first runs a small program, which copies the pages
// that a run writes to.
//
// A child has none of the zygote's helper threads. Each of them sleeps when the zygote
// forks, and Start fails if one sleeps where a child could not revive it. A child revives a
// helper when something first wakes it, but not before the child's filter is loaded, and
// only if its cgroup permits another thread. A small run revives none, and a run that collects
// much garbage revives all. These are the threads of Node 22, 24 and 26, as gdb shows them
// in a zygote:
//
//	V8Worker (4)          collects garbage and compiles in the background. It sleeps in
//	                      pthread_cond_wait, and is revived by pthread_cond_signal.
//	DelayedTaskScheduler  holds delayed tasks for the V8Workers, such as the time limit of
//	                      the inspector's Runtime.evaluate. It sleeps in epoll_pwait, in
//	                      a separate event loop, and is revived by a write to the
//	                      loop's eventfd. A child renews the loop's descriptors.
//
// These are all threads of a zygote. The flag --disable-sigusr1 prevents the thread that would
// wait for SIGUSR1. libuv's pool starts with its first task, and the inspector's server, the
// watchdog of SIGINT and the profilers start when a program uses them: in the child. OpenSSL
// starts no threads, and its random generator is reseeded in the child.
//
// A [Pool] starts zygotes on demand and replaces old, dead and hung ones. If a
// zygote dies after a fork but before it reports the pid, the child gets no request and
// exits, and Close reaps it.
//
// A zygote is outside of every jail. It holds no secrets, has never run guest code, and its only
// descriptor of the host's is its socket. It dies with the host process.
//
// src/protocol.c describes the protocol. The caller provides the module that Node runs,
// which warms it up and resets a child's JavaScript state: see [Spec].
//
// # Not protected against
//
// V8 chooses random addresses for the pages of its heap. In a zygote and its children they are next to each
// other and below the libraries, where the kernel puts mappings: an address in one of them gives
// away the others. That layout is random for each zygote. Children of one zygote have the same address space layout and the same seed of V8's hash
// tables: a guest that finds out its own layout and seed knows its siblings'. A [Pool] limits how many
// share them. Math.random is different in each child, in all contexts and workers: a child renews the generator
// that gives contexts their seeds. The zygote must not use Math.random, which computes 64 numbers in advance.
package zygote
