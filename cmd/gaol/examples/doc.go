// Package examples finds the examples of a documentation: code files, folders with src/main.ts,
// and fenced code blocks of Markdown and MDX.
//
//	PATH... ── Find ──> files ──┬── x.ts                  one example
//	                            ├── DIR/src/main.ts       one example of several files
//	                            └── x.md: parse ─> fences ─> join by example=NAME
//
// An [Example] maps positions in its code back to the file that a person edits.
//
// Files are hostile: their number and sizes are bounded, and no symbolic link below a PATH is
// followed. Nothing is executed here.
package examples
