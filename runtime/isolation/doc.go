// Package isolation lists the features that an isolation of a sandbox lacks: see
// runtime.Options.Isolation. docs/isolation.md compares the mechanisms.
//
//	missing ──> Check, CheckPermissions ── runtime.Create refuses, *UnsupportedError
//	                                       tests expect that refusal
//
// A feature is named as in the SDK: an operation such as fs.read, a field such as
// Options.OCI, a constant such as LauncherZygote.
//
// # What it does not do
//
// It enforces nothing, and does not know what this machine lacks: `gaol doctor` does.
package isolation
