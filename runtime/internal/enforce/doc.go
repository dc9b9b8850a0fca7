// Package enforce turns a plan of package policy into the description of a sandbox, and
// collects denials.
//
//	policy.Plan ── Configure ──> sandbox.Spec: hidden, read-only and noexec places, the network
//	           (package sandbox enforces the rest of it in each process: see sandbox.Rules)
//
//	the sandbox's reports, egress, last lines of stderr ──> Denials ──> list
//
// Package policy makes the decisions, and refuses rules that no kernel mechanism can enforce.
package enforce
