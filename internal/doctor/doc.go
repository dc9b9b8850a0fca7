// Package doctor finds out what a machine offers for jails and what is missing.
// It is what `gaol doctor` prints.
//
//	Examine ── probes, in order ──> Check{name, status, detail, cure} ──> Report
//	              │
//	              └─ what must not touch the host (namespaces, mounts) is tried
//	                 in a child: this program, executed again under another name
//
// A probe looks by doing wherever that is possible: a mount is mounted, a
// namespace made. Settings are read only to explain a failure.
//
// It changes nothing that lasts: the store is not made, no image is built. It
// doesn't know package runtime, which stands above it: who calls Examine hands
// in the program that is run in a real jail.
//
// What it does not find: limits that bind only under load, and what another
// process changes a moment later.
package doctor
