// Package terminal controls the user's terminal and makes untrusted text safe
// to show on it.
//
//	Open ─> MakeRaw ─> Watch (resizes, second signal) ─> stop ─> restore
//
// With gaol run --tty, the guest's output reaches the terminal unchanged, escape
// sequences included: the user asked for that. Everything else a guest wrote goes
// through [Sanitize] before it is shown.
package terminal
