// Package hostfs lets the host work on the files of a live guest: it reads, writes,
// lists, removes, watches, packs and unpacks them while hostile code changes the same
// tree as fast as it can.
//
//	root fd of the tree ── New ──> FS ── ReadFile, WriteFile, Walk, Tar, … ──> *fs.PathError
//	                                │
//	                              Close: open files and watchers end, too
//
// # What holds an operation in the tree
//
// Paths are resolved by the kernel with openat2(2) and RESOLVE_IN_ROOT from the root's
// descriptor, so that a guest's symbolic link, absolute or not, leads where it leads
// the guest. Magic links are refused, and so are the kernel's own file systems, such as
// /proc. What is done to a last component is done by the descriptor of its folder.
//
// A file is first opened with O_PATH, which neither blocks nor has any effect, and then
// for good if it is a regular one: no FIFO, device, socket or terminal is ever opened.
//
// Each system call is made with the guest's user and group on its thread, and with none
// of root's capabilities over files. So a guest that has the host follow its links gets
// nothing done that it could not do itself, and what is made belongs to the guest. It
// also means that the host can't read what the guest took its own right to read from,
// but with [TarOptions].Owned, nor change the image. Callbacks, readers and writers of the caller are never run so.
//
// A place that something is mounted on is never removed, renamed or replaced: from the
// host's mount namespace that would take the mount away, where a guest gets EBUSY.
//
// # Bounds
//
// What is returned or visited is bounded in bytes, entries and depth: more than that is
// a [*LimitError]. A stream from Open is not bounded: its reader is to be.
//
// # What it does not protect against
//
// What it reads is the guest's word: types, sizes, names, times and content may change
// at any moment, also between two calls, and a listing of a tree that changes is of no
// single moment. What it writes may be changed by the guest before the call returns. The
// process must be root. Changes of the user on its threads have the kernel make it
// undumpable (PR_SET_DUMPABLE), so that /proc shows its files to root alone, and forget
// what PR_SET_PDEATHSIG set for such a thread, which may be the main one.
//
// Automounts below the root would be made by paths that lead through them: a tree is to
// have none. A mount whose file system answers slowly, as over a network, makes
// operations slow.
package hostfs
