// Package vfs says what the guest's file tree is made of, as data: which image,
// which folders are the guest's own, how much may be written.
//
//	Plan ── lowered by runtime ──> jail.Spec ── mounted by jail
//
// The tree is an image that is read-only, a small layer of gaol's own files over
// it, and a writable layer in memory, bounded in bytes and inodes, that lasts as
// long as the runtime. Folders of the host are part of it where the caller asks for them
// (runtime.Mount), and what a snapshot holds is laid under the guest's own folders.
//
// Files can be renamed and linked between the guest's own folders and /tmp. A guest's
// folder in which the image has files is the exception: there, and in /var/tmp, such
// a call from another folder fails with EXDEV, and many small files take longer.
//
// The package makes no mount and opens no file: package hostfs, below it, does what the
// host does with the files of a live tree. It does not protect what the
// host itself puts into the image.
package vfs
