// Package hostcall performs the calls of host functions that a guest makes over its control
// channel, and encodes the host's values for guests.
//
//	reader ── Accept ─┬─ queue ──> workers, Limits.Concurrent at most ─┬─> Writer
//	                  └─ refused, or late: answered with an error ─────┘
//
// The control channel is always read, whatever the functions do: calls beyond the limits
// are answered with an error, so that a guest and its host cannot wait for each other.
package hostcall
