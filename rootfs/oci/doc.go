// Package oci opens existing images and finds their layers: in a registry, in an OCI layout
// (a folder or an archive of one), in an archive of `docker save`, in a tar archive of a
// root file system, or in a plain folder.
//
//	Open ── source ── index ─ platform ─> manifest ── config ── Image
//	                                                              │
//	          Layer.Open ── Layer.Receive ── Layer.Archive ── tar
//
// Sources are not trusted. Every document is bounded before it is read, and its digest is
// checked before it is parsed. A manifest that could also be taken for an index is refused
// (CVE-2021-41190), as is a layer that refers to another address. [Options].Registry
// is the client of registries, which package registry implements.
//
// [Write] writes an image as an archive of an OCI layout.
//
// # Non-goals
//
// It keeps and unpacks nothing: packages rootfs and layer do. It does not check
// signatures.
//
// # Not protected against
//
//   - A registry that moves a tag to another image. Name a digest to always get the same.
//   - A registry whose name resolves to an address in the local network.
//   - A credential helper of the user, which is executed as docker would execute it.
package oci
