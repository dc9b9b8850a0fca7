// Package layer writes the file tree of an image. It unpacks the layers of an existing image, tar archives
// one over the other, with whiteouts, and also packages, and plain folders of the host.
//
//	Open ── Apply, ApplyPackage, Copy … ── WriteFile, Symlink, EnsureFolder, OpenFile … ── Close
//
// Paths are absolute, as the guest sees them. Layers are not trusted. The kernel opens the folder of each entry below the root (openat2
// with RESOLVE_IN_ROOT), so that neither a path nor a link of an earlier entry leads out.
// The entry itself is created by its last name, and never through an existing file of that
// name. Folders, files, symbolic links and hard links are kept. Owners, times, extended
// attributes (including file capabilities), set-id bits, devices, pipes and sockets are
// dropped. Everything is made readable by all, and executable by all if it was by anyone:
// all files belong to root, and a guest never owns them.
//
// [Limits] bound the bytes read and the bytes kept. An entry that exceeds the rest of a
// limit is refused by its header, before its content is read.
//
// # Non-goals
//
// It downloads nothing, checks no digest and decompresses nothing. It makes no image:
// package rootfs does.
//
// # Not protected against
//
//   - Another process that writes to the folder at the same time.
//   - Malicious programs in a layer: they must run in a jail.
//   - Changes to a plain folder while it is copied. The copy may mix old and new content,
//     but has nothing from outside that folder.
package layer
