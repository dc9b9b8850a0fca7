// Package examplecheck finds the examples of a documentation, runs them, and reports failures.
//
//	PATH... ── Find ──> files ──┬── x.ts                  one example
//	                            ├── DIR/src/main.ts       one example of several files
//	                            └── x.md: parse ─> fences ─> join by example=NAME
//
//	examples ──┬── fault, skip ───────────────────────────────┐
//	           └── run: at most Workers parallel, in one Runner ┴─> judge ─> compare or update ─> Report
//
// An [Example] maps positions in its code back to the file that a person edits.
//
// Files are hostile: their number and sizes are bounded, and no symbolic link below a PATH is
// followed. What examples print is hostile, too: no text of theirs is a command of the terminal, or of
// GitHub's runner.
package examplecheck
