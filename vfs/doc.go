// Package vfs says what the guest's file tree is made of, as data: which image,
// which folders are the guest's own, how much may be written.
//
//	Plan ── lowered by runtime ──> jail.Spec ── mounted by jail
//
// The tree is an image that is read-only, a small layer of gaol's own files over
// it, and a writable layer in memory, bounded in bytes and inodes, that lasts as
// long as the runtime. No folder of the host is part of it.
//
// The package makes no mount and opens no file. It does not protect what the
// host itself puts into the image.
package vfs
