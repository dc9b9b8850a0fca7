// Package kernel knows how the kernel of this machine differs from an ordinary Linux. [Probe] tries features that kernels
// on top of another one, such as gVisor's, lack. [Timeout] is for emulated machines, where programs start slowly.
//
// Ordinary kernels are not probed for each jail: callers use its features, and its errors name the missing ones. They
// ask [Probe] only where a jail may do without, by Spec.AllowDegraded of package jail.
package kernel
