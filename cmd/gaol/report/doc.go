// Package report presents the results of a command: it passes output through
// while a program runs, prints results as JSON, turns results into exit statuses and
// errors into one line that ends with advice.
//
//	Result ─> Status            exit status
//	       ─> NewRun, JSON      the object of gaol run --json
//	error  ─> Print             "gaol: run: ...; advice"
//	output ─> Streams           standard output and error, or --interleave
//
// [Terminal] controls the user's terminal. With gaol run --tty, the guest's output reaches the terminal
// unchanged, escape sequences included: the user asked for that. Every other text of a guest passes
// through [Sanitize] before it is shown.
package report
