// Package hostfs gives the host access to the files of a live guest. It reads, writes,
// lists, removes, packs and unpacks them while hostile code changes the same tree
// at full speed.
//
//	root fd of the tree ── New ──> FS ── ReadFile, WriteFile, Walk, Tar, … ──> *fs.PathError
//	                                │
//	                              Close: also closes open files
//
// # What confines an operation to the tree
//
// The kernel resolves paths with openat2(2) and RESOLVE_IN_ROOT from the root's descriptor.
// A guest's symbolic link, absolute or not, therefore leads where it leads the guest. Magic
// links are refused, and so are the kernel's own file systems, such as /proc. An operation
// on the last component of a path uses the descriptor of its folder.
//
// os.Root (Go 1.26) cannot do this. It refuses absolute links instead of resolving them in
// the root, and it enters the kernel's file systems and mounts. It opens files of all types, which
// blocks on a FIFO and has side effects on a device, and its RemoveAll removes mount points.
//
// A file is first opened with O_PATH, which neither blocks nor has side effects. It is
// reopened for reading or writing only if it is a regular file or a folder: no FIFO,
// device, socket or terminal is ever opened.
//
// Each system call is made with the guest's user and group on its thread, and without
// root's capabilities over files. A guest whose links the host follows therefore gains
// nothing that it could not do itself, and new files belong to the guest. The host cannot
// read files that the guest has made unreadable for itself, except with
// [TarOptions].Owned, and cannot change the image. Callbacks, readers and writers of the
// caller never run with the guest's credentials.
//
// A mount point is never removed, renamed or replaced. From the host's mount namespace that
// would detach the mount, where a guest gets EBUSY.
//
// # Bounds
//
// Operations are bounded in bytes, entries and depth. An operation
// that reaches a bound fails with a [*LimitError]. A File from Open is not bounded: its
// reader must be.
//
// # Not protected against
//
// The guest controls the input: types, sizes, names, times and content may change at any
// moment, also between two calls. A listing of a changing tree may mix several states. The
// guest may change written data before the call returns.
//
// The process must be root. When a thread's user changes, the kernel makes the process
// undumpable (PR_SET_DUMPABLE), so that only root can read its files in /proc, and it
// clears PR_SET_PDEATHSIG for that thread, which may be the main one.
//
// The tree must not have automounts: paths through them would trigger a mount. A mounted
// file system with slow responses, such as a network file system, makes operations slow.
package hostfs
