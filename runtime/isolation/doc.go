// Package isolation is a table of what each isolation of a sandbox supports, and how: see
// runtime.Options.Isolation.
//
//	table ──> Groups ── docs/isolation.md, which a test keeps equal
//	   └────> Check, CheckPermissions ── runtime.Create refuses, *UnsupportedError
//	                                     tests expect that refusal
//
// A feature is named as in the SDK: an operation such as fs.read, a field such as
// Limits.Memory, a constant such as CauseTimeout, a method such as NodeRuntime.Dial. Other
// features have names in lower case. Tests compare the table with the packages policy and
// runtime, so that nothing is added there without a row here.
//
// # What it does not do
//
// It enforces nothing, and does not know what this machine lacks: `gaol doctor` does.
package isolation
