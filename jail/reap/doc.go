// Package reap waits for children of this process that it did not start itself, such as
// children cloned with CLONE_PARENT, without blocking a thread for each.
//
//	Adopt(pid) ── pidfd, watched by the runtime's poller ── Kill, any number of times
//	                └─ Wait: parks the goroutine ── reaps ── closes the pidfd
//
// [os.Process.Wait] blocks a thread for each process, and Go ends a program that
// has 10,000 of them.
//
// Each child is reaped once, by its pidfd. Its pid is not used after that, as the kernel
// may give it to another process.
//
// The package does not protect a child from other code in this process that waits for it
// by its pid, or for any child: see wait4(2).
package reap
