// Package examplecheck runs the examples of a documentation and reports those that fail.
//
//	examples ──┬── fault, skip ───────────────────────────────┐
//	           ├── cached ────────────────────────────────────┤
//	           └── run: at most Workers at once, in one Runner ┴─> judge ─> compare or update ─> Report
//
// Outputs of examples that pass are cached by everything they depend on, so that an unchanged
// example starts nothing, not even a sandbox. A report has positions in the files that a person
// edits.
//
// What examples print is hostile: no text of theirs is a command of the terminal, or of GitHub's
// runner.
package examplecheck
