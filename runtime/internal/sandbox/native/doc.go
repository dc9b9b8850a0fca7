// Package native makes sandboxes by package jail: the kernel of this machine confines the processes, in
// namespaces that gaol or an OCI runtime has made.
//
//	Spec ───────── New ────> jail.Spec with the mounts of its plan, and zygotes if runs are forked
//	policy.Plan ── load ───> system call filter, Landlock ruleset in the jail
//	Command ────── Start ──> jail.Command, with both
//
//	seccomp listener, kernel audit log ──> policy.Denial
package native
