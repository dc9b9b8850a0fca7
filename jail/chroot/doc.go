// Package chroot moves a thread out of a chroot without changing its view of the file
// tree.
//
//	unshare(mount namespace) ── Leave ── root is the namespace's root, with the same content
//
// In a chroot the kernel refuses to create a user namespace (EPERM). If the root is not a
// mount point, it also refuses to set propagation and to pivot_root(2) (EINVAL). A jail
// needs all three.
//
// The package gives no access to files outside of the chroot: everything that the chroot
// hides is unmounted in the thread's mount namespace.
package chroot
