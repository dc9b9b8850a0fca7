// Package zygotes shares warm Node processes among the sandboxes of this process. Sandboxes
// whose zygotes would be alike use the same pool.
//
//	Acquire ──> Set ── Pool, for each heap size ──> jail.Command
//	             └── Release: the pools stay warm until CloseIdle
package zygotes
