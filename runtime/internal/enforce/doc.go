// Package enforce describes a runtime's file tree to package policy, and collects denials.
//
//	Tree ── World ──> policy.Lower ──> policy.Plan, which package sandbox enforces
//
//	the sandbox's reports, egress, last lines of stderr ──> Denials ──> list
//
// Package policy makes the decisions, and refuses rules that no kernel mechanism can enforce.
package enforce
