// Package kvm checks whether KVM runs 64-bit guests. The existence of /dev/kvm does not prove it: on some kernels KVM emulates
// instructions, or hangs.
//
// [Probe] starts a virtual machine with one processor and four pages of memory. It executes popcnt in 64-bit mode, which KVM's
// emulator does not support.
package kvm
