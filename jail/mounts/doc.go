// Package mounts builds the file tree of a jail from a [Tree]: the image, the writable
// layer, /dev, mounts of the host's folders, and the mounts that hide or restrict
// places. It knows nothing about processes: package jail starts them in the tree.
//
//	Prepare ── goroutines clone the mounts of the image and of the host's folders, with id maps
//	   │
//	 Mount ── the thread gets a mount namespace, and in it:
//	   │        tmpfs or disk ── layer, guest folders, image ── overlay
//	   │                 Root: links, empty folders, and mounts of the rest of the overlay
//	   │                 Root/dev, Proc
//	   │                 host folders ── missing files and folders ── hidden, read-only and other places
//	   │                 limits of the tmpfs or disk
//	   │
//	   ├─ OpenProgram ── a program of the image
//	   ├─ (jail clones pid 1, whose mount namespace is a copy, and makes Root its root directory)
//	   │
//	 Close ── closes the cloned mounts; the thread leaves the mount namespace, which ends with it
//
// Everything is mounted in a tmpfs, or in a file system on disk with [Tree.DiskDir], on one thread of the host, in a
// separate mount namespace. The mounts belong to the host's user namespace, so in the copy that the jail gets
// they are locked: the guest can't unmount them or change their flags.
//
// Guests see files of root as owned by root of their own user namespace, the first
// host id of the jail, because programs reject folders of an unknown owner. No guest can
// become that user: it has neither capabilities nor set-user-ID programs. Only pid 1 runs
// as that user: the reaper of the image, without capabilities.
//
// # Chroots
//
// In a chroot the kernel refuses to create a user namespace (EPERM). If the root is not a
// mount point, it also refuses to set propagation and to pivot_root(2) (EINVAL). A jail needs all
// three. [LeaveChroot] makes the content of the chroot the root of the thread's mount namespace, and unmounts
// everything that the chroot hides.
//
// # Not protected against
//
// A caller that asks for mounts of sensitive host folders: package runtime checks sources.
// The guest's /proc/self/mountinfo, which shows the host path of a mount's source: see
// [Mount]. Other processes that change a host folder while it is mounted can make Mount
// fail, but can't redirect it: paths below host folders are opened by descriptor, without
// following links.
package mounts
