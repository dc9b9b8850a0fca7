// Package kernel knows how the kernel of this machine differs from an ordinary Linux. [Probe] tries features that kernels
// on top of another one, such as gVisor's, lack. [Timeout] is for emulated machines, where programs start slowly.
//
// Callers use the features of an ordinary kernel, whose errors name missing features. They ask [Probe] where a jail may omit
// a feature, by Spec.AllowDegraded of package jail, and where a kernel accepts limits that it does not enforce.
package kernel
