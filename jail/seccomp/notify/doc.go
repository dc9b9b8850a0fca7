// Package notify is the host's side of system call filters that ask: it answers the
// calls that a restriction refuses, and so comes to know of them.
//
//	launcher: loads the filter ── its descriptor ──> New ──> Listener
//
//	execve  ──────────────────── asks ──> Admit: goes on ┐ while the launcher's
//	execve of the next in PATH ─ asks ──> Admit: goes on ┘ socket is open
//	the program runs: its socket is closed by the execve ──> Admit returns
//	chmod ────────────────────── asks ──> Serve: seen(Call), its errno
//	the last process with the filter ends ─────────────────> Serve returns; Close
//
// A guest waits in its call until it is answered. Its errno is that of the filter's
// refusal, the same as without a listener. Waiting for calls takes a goroutine, and
// no thread.
//
// Calls are answered one by one. After [Unhurried] of them each waits for a
// millisecond: a guest that does nothing but make calls that are refused is not to
// keep the host busy, or fill what hears of them at its own speed.
//
// A signal takes a guest out of its call, which it then makes again, and Serve may
// tell of it twice. SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, given when the filter is
// loaded, keeps signals away that don't kill, from when the call was received.
//
// # What it does not protect against
//
// Nothing here decides by what lies behind a pointer, for the guest can change that
// while the host looks (TOCTOU): a call's Text is for people to read, and may be a
// lie. For the same reason a call goes on, which the kernel then carries out as it
// finds it, only before guest code runs: Admit lets pass what the launcher asks.
// That a call is the launcher's shows in two ways that must agree: its socket is
// open, and its program is still the one that asked first. The second is there for
// copies of the launcher's end of the socket that a process inherits which the host
// happens to start just then. A launcher whose execve needs no asking asks for
// nothing at all: Admit has nothing to do, and all calls are the program's.
//
// A listener that is closed, or whose host has died, refuses with ENOSYS. While the
// host hangs, so do the guest's refused calls.
//
// A guest's own filter may give a call an errno before this one is asked: it is
// refused, and nobody told.
package notify
