// Package enforce turns a plan of package policy into what the kernel enforces, and
// collects what the kernel denied.
//
//	policy.Plan ─┬─ ConfigureJail ──> jail.Spec     mounts: hidden, read-only, noexec
//	             └─ Compile ──> Rules ── Load ────> Landlock ruleset, in the jail
//	                              └──── Apply ────> jail.Command: seccomp filter, ruleset
//
//	seccomp listener, kernel audit, last lines of stderr ──> Denials ──> list
//
// Package policy makes the decisions, and refuses rules that no kernel mechanism can enforce.
package enforce
