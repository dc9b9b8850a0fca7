// Package native implements sandbox.Sandbox by package jail: the kernel of this machine confines
// the processes, in namespaces that gaol or an OCI runtime has made.
//
//	sandbox.Spec ───── New ────> jail.Spec with the mounts of its plan, and zygotes if runs are forked
//	policy.Plan ────── load ───> system call filter, Landlock ruleset in the jail
//	sandbox.Command ── Start ──> jail.Command, with both
//
//	seccomp listener, kernel audit log ──> sandbox.Denial
package native
