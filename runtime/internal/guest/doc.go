// Package guest has gaol's own JavaScript, which runs in the guest's Node before the
// program does, and the Go types of the messages that it reads. Nothing that confines the
// guest depends on it: a program can replace all of it.
//
//	host                                      guest
//	Program.Open ── head, code (memory file) ──> prelude.cjs, program.cjs
//	Cell, Completion ── frames (package wire) ─> context.cjs, complete.cjs
//	values, calls, logs <── frames ───────────── control.cjs
package guest
