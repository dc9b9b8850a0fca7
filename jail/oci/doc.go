// Package oci makes containers by an OCI runtime, such as runc: another program makes the
// namespaces, the root directory, the user and the filter of pid 1 and of all processes that
// package jail starts in it. The package drives the runtime's command line.
//
//	Create ── bundle: config.json ── "runc run --detach" ── pid 1
//	Start ── process.json ── "runc exec --detach" ── the entry program (package enter)
//
// The bundle and the runtime's state of each container are in a separate folder. Killing the
// processes and removing the cgroups and this folder removes the container, without "runc delete". If
// the host process dies, the next host process that creates a jail removes them.
//
// Paths that runc masks or makes read-only by default are so here. config.go masks the rest of
// /proc.
package oci
