// Package kvm checks whether the kernel can run virtual machines. That /dev/kvm exists does not show it: some kernels have one that runs
// only guests of a certain kind, and others never return.
//
// [Probe] makes a machine of one processor and four pages, which executes an instruction in 64-bit mode that only processors
// know: kernels that emulate guests do not.
package kvm
