// Package reap waits for child processes of this one that others made, as by
// CLONE_PARENT, at no thread's cost.
//
//	Take(pid) ── pidfd, watched by the runtime's poller ── Kill, any number of times
//	                └─ Wait: parks the goroutine ── reaps ── the pidfd is closed
//
// [os.Process.Wait] blocks a thread for each process, and Go ends a program that
// has 10,000 of them.
//
// Each child is reaped once, by its pidfd: its pid, which the kernel may give to
// another process after that, is not used any more.
//
// It does not protect a child from somebody else in this process who waits for it by
// its pid, or for any child: see wait4(2).
package reap
