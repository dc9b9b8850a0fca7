// Package hostcall performs the calls of host functions that a guest makes over its control
// channel, and encodes the host's values for guests.
//
//	reader ── Accept ─┬─ queue ──> goroutines, Limits.Concurrent at most ─┬─> Writer
//	                  └─ refused, or late: answered with an error ────────┘
//
// Mostly the reader's goroutine performs the call, and another one reads if it takes long. So the control channel is
// always read. Calls beyond the limits are answered with an error, and a guest and its host cannot wait for each other.
package hostcall
