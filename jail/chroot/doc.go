// Package chroot moves a thread out of a chroot and keeps its view of the file tree.
//
//	unshare(mount namespace) ── Leave ── root is that of the namespace, with the same content
//
// In a chroot the kernel makes no user namespace (EPERM), and where the root is no mount
// point it sets no propagation and no pivot_root(2) works (EINVAL). A jail needs all three.
//
// # What it is not
//
// It gives no access to what is outside of the chroot: from the namespace it unmounts all
// that the chroot hides.
package chroot
