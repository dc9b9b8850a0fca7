// Package oci finds the layers of an image that somebody else made: in a registry, in
// an OCI layout (a folder, or an archive of one), in what `docker save` wrote, in a
// tar archive of a root file system, or in a plain folder.
//
//	Open ── source ── index ─ platform ─> manifest ── config ── Image
//	                                                              │
//	          Layer.Fetch or Layer.Local ── checked ── Layer.Archive ── tar
//
// Whoever serves an image is not believed: what is parsed has been bounded before it
// is read, and has the digest that was asked for; a manifest that could be taken for
// an index too is refused (CVE-2021-41190), as is a layer that is said to be found at
// another address. Credentials come from where docker login puts them.
//
// Plain http is spoken with this host's own loopback interface alone, and a registry
// that is elsewhere can't send us there.
//
// # What it is not
//
// It writes nothing, keeps nothing, and unpacks nothing: packages rootfs and layer do.
// Signatures are not looked at.
//
// # What it does not protect against
//
//   - A tag that a registry changes: name a digest to get what you have seen.
//   - A registry whose name resolves to an address of the local network.
//   - A credential helper of the user's own, which is executed when docker would.
package oci
