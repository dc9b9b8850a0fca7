// Package kernel knows how the kernel of this machine differs from an ordinary Linux. [Probe] tries features that kernels
// on top of another one, such as gVisor's, lack. [Timeout] is for emulated machines, where programs start slowly.
//
// Callers use the features of an ordinary kernel, whose errors name the missing ones. They ask [Probe] where a jail may do
// without one, by Spec.AllowDegraded of package jail, and where a kernel accepts what it does not enforce.
package kernel
