// Package rootfs makes images, imports those that others made, and keeps them in a store.
//
// An image is a tree of files that guests see, read-only, as their root: Node,
// npm, the libraries they need, busybox as shell and small tools, time zones
// and CA certificates, and the two static programs that start a jail. All of it
// belongs to root, who has no place in a guest's user namespace; every folder
// can be traversed, no file changes the ids of who runs it, and all times are
// one and the same. The id of an image is a hash over its tree, and for an imported one
// over its config too.
//
// # Where the content comes from
//
// Node and npm come from the configured npm registry: $npm_config_registry,
// the registry line of ~/.npmrc, or the public one, through the proxies that
// the environment names. For the default versions the sha512 is part of gaol,
// and the registry need not be trusted; for others it is the registry's word.
// Nothing of a download is parsed before its hash has been found right. The
// rest is copied from the host, or compiled there, and [CheckHost] tells what
// a host lacks for it.
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
// STORE/downloads keeps the tarballs, by hash, and Remove leaves them there; they can be
// deleted by hand at any time.
//
// # What it is not
//
// It mounts nothing, starts no guest, and knows no layers: one image is one
// folder. It is no package manager either: an image never changes.
//
// # What it does not protect against
//
//   - Whoever can write to the store, or is root on the host. The tree of a stored
//     image is not hashed again when it is used, only downloads are.
//   - The host's own busybox, catatonit, C library and compiler, which go into the
//     image as they are.
//   - An image that is imported with TrustNode, and is not what it should be.
//   - A registry that serves a bad release of a version that gaol has no pin for.
//   - A file system without flock or atomic rename, as some network ones are.
//   - Removal by other means than Remove while an image is in use.
package rootfs
