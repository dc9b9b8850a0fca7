// Package files tests what guests and callers do with files: the tree of a runtime from
// the host, mounts, packages, snapshots and images.
package files
