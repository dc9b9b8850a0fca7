// Package tree writes the file tree of an image and computes its id.
//
//	Open ── Mkdir, WriteFile, CopyFile, Symlink, Link … ── Close ── Seal ── id
//
// Paths are absolute, as the guest sees them. All operations go through [os.Root], so that
// no symbolic link in the tree leads a write out of it, and no file is ever written twice.
//
// It does not protect against another process that changes the tree at the same time.
package tree
