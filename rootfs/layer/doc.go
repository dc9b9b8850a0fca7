// Package layer lays the layers of an image that somebody else made into a folder:
// tar archives, one over the other, with whiteouts, and plain folders of the host.
//
//	Open ── Apply ─ Apply ─ Copy … ── Folder, Find, Remove, Link ── Close
//
// Nothing is believed of what a layer says. Each entry's folder is opened below the
// root by the kernel (openat2 with RESOLVE_IN_ROOT), so that neither a path nor a
// link that an earlier entry made leads out; the entry itself is made by its last
// name, and never through what has that name already. Kept are folders, files,
// symbolic links and hard links. Dropped are owners, times, extended attributes
// (file capabilities with them), set-id bits, and the entries of devices, pipes and
// sockets. What is kept can be read by everyone, and executed by everyone if it could
// be by anyone: all of it belongs to root, and a guest is nobody's owner.
//
// [Limits] bound what is read as well as what is kept. An entry that is larger than what is
// left of them is refused by its header; its content is not read.
//
// # What it is not
//
// It fetches nothing, checks no digest and decompresses nothing. It makes no image:
// package rootfs does.
//
// # What it does not protect against
//
//   - Another process that writes to the folder at the same time.
//   - A layer whose programs are malicious: who runs them needs a jail.
//   - Somebody who changes a plain folder while it is copied: the copy is then of no
//     one moment, though of nothing outside that folder.
package layer
