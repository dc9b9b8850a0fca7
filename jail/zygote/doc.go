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
// Node's helper threads stay behind in the zygote. The first signal of a child to one
// of them makes it anew in the child, where it slept in the zygote, but not before the
// child's filter is on, and there is room for it in the run's group: a small run needs
// none, and one that collects much garbage has them all.
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
