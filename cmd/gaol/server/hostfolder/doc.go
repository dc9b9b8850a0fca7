// Package hostfolder opens folders of the server's machine with the rights of a local user, so that
// the user can mount them in sandboxes.
//
//	Open ── a separate thread: groups, fsgid, fsuid, no capabilities ── openat2 below the base ──> folder
//
// The package checks the way to the folder, and the folder. It does not check the folder's content:
// there, the kernel checks the user again, because the folder is mounted with [runtime.MountUser].
package hostfolder
