// Package debian adds the files of Debian packages to the tree of an image.
//
//	Install ── apt-get update ── resolve ── download ── check hash ── dpkg-deb ── layer.Tree
//
// It uses the sources and keys that the host's apt is configured for. apt-get resolves and
// downloads the packages, with a private state in which nothing is installed. It checks the
// signatures of the package lists, and the packages by the SHA-256 there. This package
// checks the hash again before it unpacks a package.
//
// Maintainer scripts are never run. This package does the necessary part of their work: the bundle
// of CA certificates, and the links of update-alternatives whose paths consist of literals and of
// variables with literal values. Without the other parts, a package of [Options].With can lack users, services,
// compiled caches of GLib or Graphviz, and Python's bytecode. There is no cache of ld.so, because libraries
// are in its default folders, and none of fontconfig, which scans the few fonts in 20 ms and
// caches the result in the guest's home.
//
// Packages do not declare dependencies on essential packages, such as findutils and
// perl-base. Busybox replaces most of them; the others can be named in With.
//
// It is not a package manager: an image never changes, and newer packages need a new build.
//
// It does not protect against malicious sources or keys of the host's apt.
package debian
