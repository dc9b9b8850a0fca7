// Package daemon is the life of a server's process: it opens listeners, or gets them from systemd,
// reads the files of settings again on SIGHUP, and stops the server on SIGTERM.
//
//	Run ─ read files ─ check the machine ─ listen ─ READY=1 ── serve ──┬─ SIGHUP: read the files again
//	                                                                   ├─ watchdog, idle zygotes
//	      close all, errors ── STOPPING=1, drain <── SIGTERM, SIGINT ──┘
//
// Files that cannot be used change nothing: the server keeps all of its settings, and logs the error.
// A second SIGTERM ends the runs immediately, a third one the process.
//
// [ServiceUnit] and [SocketUnit] are the systemd units. Their comments explain each hardening option, and why
// some common options are omitted.
//
// A process that is killed leaves no process behind, because the kernel kills its jails. The next one
// replaces its socket and removes the rest.
package daemon
