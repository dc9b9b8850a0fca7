// Package repl is the interactive part of gaol repl: it reads lines, joins them to
// cells until brackets are closed, evaluates each cell in one context of a sandbox,
// and shows its output and value.
//
//	terminal ─> keyboard ─> lineEditor ─┐
//	                                    ├─> session ─> screen: a terminal, or standard output and error
//	standard input ─> readLines ────────┘  (Context)
//
// golang.org/x/term's Terminal edits the line: cursor keys, wrapping, pasting, and output
// above the line that is being typed. This package adds the missing features: a persistent
// history, entries of several lines, and Ctrl-C, which must cancel a running evaluation
// while the terminal is in raw mode. Other libraries were measured and not used:
//
//   - github.com/reeflective/readline reads os.Stdin only, also reads ~/.inputrc and
//     can start $EDITOR, and adds 1.9 MB to the binary.
//   - github.com/chzyer/readline adds 0.4 MB, creates its history with mode 0666 through
//     symbolic links, and lacks bracketed paste.
//   - github.com/peterh/liner cannot show output above the line that is being typed.
package repl
