// Package tree computes the id of an image's file tree, and finds later changes.
//
//	Seal ── id, list
//	            list ── Compare ── differences
//
// The list of a tree contains a line for each file. The id is the hash of the list, so that a list
// can be trusted if its hash is the id, even if the tree was changed.
//
// Paths are absolute, as the guest sees them.
//
// It does not protect against another process that changes the tree at the same time.
package tree
