// Package tree writes the file tree of an image, computes its id, and finds later changes.
//
//	Open ── Mkdir, WriteFile, CopyFile, Symlink, Link … ── Close ── Seal ── id, list
//	                                                        list ── Compare ── differences
//
// The list of a tree contains a line for each file. The id is the hash of the list, so that a list
// can be trusted if its hash is the id, even if the tree was changed.
//
// Paths are absolute, as the guest sees them. All operations go through [os.Root], so that
// no symbolic link in the tree leads a write out of it, and no file is ever written twice.
//
// It does not protect against another process that changes the tree at the same time.
package tree
