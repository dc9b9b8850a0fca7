// Package notify is the host's side of system call filters with a listener: it replies to
// the calls that a restriction refuses, and reports them.
//
//	launcher: loads the filter ── its descriptor ──> New ──> Admit ──> Serve
//
//	execve  ────────────────── notifies ──> Serve: permitted ┐ while the launcher's
//	execve of the next in PATH notifies ──> Serve: permitted ┘ socket is open
//	the program runs: its socket is closed by the execve
//	chmod ──────────────────── notifies ──> Serve: handle(Call), its errno
//	the last process with the filter ends ──────────────────> Serve returns; Close
//
// A guest's call blocks until it gets a reply. The reply is the errno of the filter's refusal,
// the same as without a listener. Waiting for calls takes a goroutine but no thread.
//
// Calls are handled one after the other. After [Burst] calls there is one each
// millisecond, so that a guest that makes refused calls in a loop neither keeps the host
// busy nor fills its reports at full speed.
//
// A signal interrupts a guest's call, which is then restarted, and Serve may report it
// twice. SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, set when the filter is loaded, blocks
// signals that do not kill from the time the call was received.
//
// # Not protected against
//
// Nothing here decides by memory behind a pointer, which the guest can change while the host
// reads it (TOCTOU): a call's Path is information for people and may be wrong. For the same
// reason the kernel executes a call, with arguments as it finds them, only before guest code
// runs: Serve permits the execve of the launcher, after Admit. It recognizes it by two conditions: the
// launcher's socket is open, and the caller still runs the program that made the first call.
// The second covers copies of the launcher's end of the socket in processes that the host
// starts at the same time and that inherit it. If the filter does not restrict execve, all
// calls are the program's. The other exception are connects, see
// [Listener.HandleConnects].
//
// If the listener is closed or the host dies, refused calls get ENOSYS. While the host
// hangs, they block.
//
// A guest's own filter may return an errno for a call before this one sends it to the
// listener: the call is refused and not reported.
package notify
