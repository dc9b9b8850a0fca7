// Package rootfs builds images, imports existing ones, and keeps them in a store.
//
// An image is a file tree that guests see, read-only, as their root: Node,
// npm, the libraries they need, bash, git, curl and other Debian packages, busybox
// for small tools, time zones and CA certificates, and the two static programs that
// start a jail. A minimal image is without packages; its shell is busybox. All files
// belong to root, which no guest can become. Every folder can be traversed, no file has
// a set-id bit, and all modification times are equal. The id of an image is a hash over
// its tree, its list of packages, and the config of an imported one. The text that is hashed
// for the tree is stored with it, so that [Image.Verify] can list the changed files.
//
// # Layout
//
//	store*.go, image*.go   the store: lookup, names, locks, commit, removal, snapshots
//	build*.go              building an image: inputs, plan, steps
//	import*.go, export.go  importing an image · writing one as an archive
//	derive.go              deriving an image from another by steps
//	tree                   writes an image's tree and computes its id
//	npm*.go                downloading and unpacking Node and npm
//	debian                 installs Debian packages
//	programs               the programs that start a jail, busybox, and the libraries of programs
//	download               HTTP transport, hash checks and progress of downloads
//	oci, layer, registry   reads and writes images · unpacks their layers · finds images in registries
//
// # Sources of a build
//
// Node and npm come from the configured npm registry, through the proxies that the
// environment names. gaol contains the SHA-512 of the default versions, so that the
// registry need not be trusted for them; for other versions it is. See package debian for Debian
// packages. [Image.Packages] lists their versions and hashes.
//
// The programs that start a jail or call commands, the zygote's shared object and busybox
// are embedded in the binary of `make build`. Others compile them or copy them from the host, with the same
// result. [CheckHost] reports missing dependencies on the host. A minimal image also gets its
// libraries, time zones and CA certificates from the host.
//
// # Imported images
//
// [Store.Import] accepts an image of a registry, an OCI layout, an archive of docker save,
// and a plain root file system. Package oci finds its layers and checks their digests.
// Package layer unpacks them without leaving the tree. Then gaol's programs that start a
// jail are added to a folder that is emptied before, because a process enters a jail with
// the host's rights. Nothing else of the image is ever executed outside of a jail, unless
// [ImportOptions].TrustNode allows its Node to be a zygote.
//
// # Life of an image
//
//	Build ─ prepare: host, options, versions ── wait for a build of the same image
//	   │
//	   ├─ STORE/tmp/N/image       filled step by step, sealed, hashed, synced
//	   │        │ rename
//	   ├─ STORE/images/HEX/       image.json, files, lock, rootfs/
//	   └─ STORE/names/NAME        symbolic links to it
//	            │
//	 Lookup, Ensure ── Hold ══ in use ══ Lease.Close
//	            │
//	 Remove ─ STORE/tmp/N/image   renamed first, then deleted
//
// Import and Derive work the same way, without the wait. An image is complete whenever it can be
// found. A killed build or removal leaves a folder in STORE/tmp. The next build, import or
// removal deletes it, as soon as it finds that no process holds the folder's lock. A build
// that is killed between the rename and the links leaves the image without its names: Prune
// removes it. A removal that is killed there leaves names without an image, which Lookup
// does not find; they are deleted before an image of that content is stored again.
//
// STORE/downloads keeps the tarballs, by hash, and apt's lists and packages. Remove does not
// delete them; users can at any time. A build without a network uses them.
//
// Node and npm are from the registry of npm's configuration ($npm_config_registry, ~/.npmrc and the .npmrc of all users),
// or the public one. It is not trusted for a pinned version, and is trusted for the hash of any other. No download
// is parsed before its hash has been checked.
//
// # Non-goals
//
// It mounts nothing and starts no guest: the [Runner] of a step does. An image is one folder, without layers; derived
// images share files by hard links. It is not a package manager: an image never changes, and newer packages need a new build.
//
// # Not protected against
//
//   - A user who can write to the store, or is root on the host. Only [Image.Verify]
//     hashes the tree of a stored image again. It finds mistakes, not attacks: a user who can
//     write to the tree can also replace the whole image.
//   - The busybox, catatonit, C library and compiler of the host, or of the machine that ran
//     `make build`, which are copied or used as they are; the sources and keys of the
//     host's apt.
//   - A malicious image that is imported with TrustNode.
//   - A registry that serves a malicious release of a version without a pin.
//   - A file system without flock or atomic rename, such as some network file systems.
//   - Removal of an image in use by other means than Remove.
package rootfs
