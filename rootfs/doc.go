// Package rootfs makes images, imports those that others made, and keeps them in a store.
//
// An image is a tree of files that guests see, read-only, as their root: Node,
// npm, the libraries they need, bash, git, curl and other Debian packages, busybox
// for small tools, time zones and CA certificates, and the two static programs that
// start a jail. A minimal image has no packages, and busybox as its shell. All of it
// belongs to root, which no guest can become; every folder
// can be traversed, no file changes the ids of who runs it, and all times are
// one and the same. The id of an image is a hash over its tree, its list of packages, and
// for an imported one over its config.
//
// # Where the content comes from
//
// Node and npm come from the configured npm registry: $npm_config_registry,
// the registry line of ~/.npmrc, or the public one, through the proxies that
// the environment names. For the default versions the sha512 is part of gaol,
// and the registry need not be trusted; for others it is the registry's word.
// Nothing of a download is parsed before its hash has been found right.
//
// Debian packages come from the sources that the host's apt is configured for. apt-get
// resolves and downloads them, with a state of its own below STORE/downloads/apt in which
// nothing is installed: it checks the signatures of the package lists, and the packages by
// the SHA-256 there. gaol checks the hash again and unpacks what dpkg-deb decompresses.
// Maintainer scripts are not run; of their work the builder does what matters, such as the
// bundle of CA certificates. There is no cache of ld.so, as all libraries are in its usual
// folders, and none of fontconfig, which scans the few fonts in 20 ms and keeps what it
// found in the guest's home. packages.go lists the packages, and what is left out of
// them. [Image.Packages] has their versions and hashes.
//
// The rest is copied from the host, or compiled there, and [CheckHost] reports what
// a host lacks for it. The libraries, time zones and CA certificates of a minimal image
// are copied, too.
//
// # Images of others
//
// [Store.Import] takes an image of a registry, an OCI layout, what docker save wrote, or
// a plain root file system. Package oci finds its layers and checks their digests, package
// layer lays them without leaving the tree. Then what starts a jail is put there, in a
// folder that is emptied before, because a process begins its way into a jail with the
// host's rights: nothing else of the image is ever executed outside of one, unless
// [ImportOptions].TrustNode says that its Node may be a zygote. Layers that came from a
// registry stay in STORE/blobs, by digest, for as long as an image in the store has them.
//
// # Life of an image
//
//	Build ─ prepare: host, options, versions ── wait for a build of the same
//	   │
//	   ├─ STORE/tmp/N/image       filled step by step, sealed, hashed, synced
//	   │        │ rename
//	   ├─ STORE/images/HEX/       image.json, lock, rootfs/
//	   └─ STORE/names/NAME        symbolic links to it
//	            │
//	 Lookup, Ensure ── Hold ══ in use ══ Lease.Close
//	            │
//	 Remove ─ STORE/tmp/N/image   renamed out of sight, then deleted
//
// Import goes the same way, without the wait. An image is whole as soon as it can be found,
// and until it can't be found any more. A build or removal that was killed leaves a folder
// in STORE/tmp, which the next build, import or removal deletes: it finds that nobody holds
// the folder's lock. A build that was killed between the rename and the links leaves the
// image without its names, which Prune removes; a removal that was, names without the
// image, which lead nowhere, and go before an image of that content comes again.
//
// STORE/downloads keeps the tarballs, by hash, and apt's lists and packages. Remove leaves
// them there; they can be deleted by hand at any time. A build without a network makes do
// with them.
//
// # What it is not
//
// It mounts nothing, starts no guest, and knows no layers: one image is one
// folder. It is no package manager either: an image never changes, and newer packages
// take another build.
//
// # What it does not protect against
//
//   - Whoever can write to the store, or is root on the host. The tree of a stored
//     image is not hashed again when it is used, only downloads are.
//   - The host's own busybox, catatonit, C library and compiler, which go into the
//     image as they are, and the sources and keys of its apt.
//   - An image that is imported with TrustNode, and is not what it should be.
//   - A registry that serves a bad release of a version that gaol has no pin for.
//   - A file system without flock or atomic rename, as some network ones are.
//   - Removal by other means than Remove while an image is in use.
package rootfs
