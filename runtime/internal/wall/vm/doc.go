// Package vm makes sandboxes in virtual machines with their own Linux kernel: an agent is the first process there, and package
// remote uses it.
//
//	this process                              QEMU in its own cgroup, user, root directory and namespaces
//	New ── disk, initramfs, socket pair ── QEMU ──> kernel ──> gaol agent boot, pid 1 ── native.New ── jail ── runs
//	remote ═════════ socket ═════ virtio-serial ═════════════════════╝
//
// [Boot] is the machine's half: it loads the kernel's modules, mounts the image, and makes a tmpfs the root, which a
// jail can replace. The image is a disk with a file system of EROFS, which all machines share and none can write. There is no network
// device: connections to external hosts are streams of the agent.
//
// # Limits
//
// The jail in the machine enforces the limits of runs, as without a machine. The machine's memory is that of one run, the size of the
// tree and an amount for the kernel, the agent and zygotes. The host's cgroup of QEMU is limited to this memory and an amount for
// QEMU itself.
//
// # Emulation
//
// Without KVM, QEMU emulates the processor, and programs take 10 to 20 times as long.
//
// # Not protected against
//
// A guest that has taken over the kernel of its machine may use the whole memory and all processors of that, whatever the limits of its
// run. If it then takes over QEMU, it sees the files of the host's /usr as another user, without a network.
package vm
