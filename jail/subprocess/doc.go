// Package subprocess runs a part of this program in a separate, confined process, because the
// part parses or carries hostile bytes: the kernel charges and limits its memory, processor time and
// descriptors, and a fault in it ends only the process.
//
// The program executes itself again. A [Role] that a package-level variable or an init function has
// registered takes over in the new process while packages are initialized, so main does not run:
//
//	host                                      subprocess
//	Start ── slot, cgroup ── /proc/self/exe ──> package initialization up to Register
//	      ── joins the cgroup (v1) ── go ─────> descriptors, root, limits, ids, capabilities, death signal
//	      <──────────────────────────── armed ──
//	      ── still alive ─────────────────────> no_new_privs and filter, for all threads
//	      <──────────────────────────── ready ── Role.Serve, with the socket as descriptor 3
//	Close ── kill, reap, remove the cgroup, release the slot
//
// Package initializers that Go runs before Register run in the subprocess too, as root with few
// capabilities, and without arguments and environment. Go initializes packages in the order of
// their import paths, after their imports. Descriptors that such an initializer opens are closed,
// and goroutines that it starts are confined.
//
// # Confinement
//
//   - A user and a group that nothing else on the machine has, no further groups, no capabilities, and none in the bounding set.
//   - An empty, read-only root directory. The only descriptors are 0 to 3: /dev/null, twice a pipe to the host, the socket.
//   - Its own pid, IPC and UTS namespaces, and unless the role needs the host's, an empty network namespace.
//   - A cgroup with limits; a limit on descriptors; no core files; not dumpable.
//   - A filter that allows only the calls of Go's runtime and the calls of the role.
//   - The kernel kills it when the host dies.
//
// # Not protected against
//
// A subprocess that hostile bytes have taken over can send its host any bytes: decode them strictly.
// It retains data from the host, so it must serve one trust domain only.
package subprocess
