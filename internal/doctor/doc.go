// Package doctor checks whether this machine can run jails, and reports missing features.
// `gaol doctor` prints its report.
//
//	Examine ── probes, in order ──> Check{name, status, detail, cure} ──> Report
//	              │
//	              └─ namespaces are made for processes that end, and file systems
//	                 are mounted in the mount namespace of a thread
//
// Where possible, a probe does what gaol would do: it mounts a file system or creates a namespace.
//
// It changes nothing permanently: it neither creates the store nor builds an image. It
// does not import package runtime, which is in a higher layer: callers of Examine pass the
// function that runs a program in a real jail.
//
// It does not detect limits that apply only under load, and what other processes change
// later.
package doctor
