package hostfs

import "golang.org/x/sys/unix"

// kernelFileSystems lists file systems without user data. Reading them, or even a stat, may
// have effects on the host, reveal facts about it, or block.
var kernelFileSystems = map[int64]string{
	unix.PROC_SUPER_MAGIC:     "processes and settings, including the host's",
	unix.SYSFS_MAGIC:          "devices of the host",
	unix.CGROUP_SUPER_MAGIC:   "limits of the jail",
	unix.CGROUP2_SUPER_MAGIC:  "limits of the jail",
	unix.DEVPTS_SUPER_MAGIC:   "terminals",
	unix.AUTOFS_SUPER_MAGIC:   "a lookup triggers a mount",
	unix.DEBUGFS_MAGIC:        "kernel internals",
	unix.TRACEFS_MAGIC:        "kernel internals",
	unix.SECURITYFS_MAGIC:     "kernel internals",
	unix.SELINUX_MAGIC:        "kernel internals",
	unix.BPF_FS_MAGIC:         "programs in the kernel",
	unix.NSFS_MAGIC:           "namespaces",
	unix.EFIVARFS_MAGIC:       "firmware",
	unix.PSTOREFS_MAGIC:       "records of crashes",
	unix.BINFMTFS_MAGIC:       "how the host executes files",
	unix.BINDERFS_SUPER_MAGIC: "devices",
	unix.RDTGROUP_SUPER_MAGIC: "shares of processors",
	unix.HUGETLBFS_MAGIC:      "memory of the host",
	unix.PIPEFS_MAGIC:         "pipes of processes",
	unix.SOCKFS_MAGIC:         "sockets of processes",
	unix.ANON_INODE_FS_MAGIC:  "descriptors of processes",
	unix.DEVMEM_MAGIC:         "memory of devices",
	unix.DMA_BUF_MAGIC:        "memory of devices",
}

// checkFileSystem closes and refuses a descriptor on one of the kernel's file systems.
func checkFileSystem(fd int) error {
	var st unix.Statfs_t
	err := unix.Fstatfs(fd, &st)
	if _, isKernels := kernelFileSystems[int64(uint32(st.Type))]; err == nil && isKernels {
		err = errKernel
	}
	if err != nil {
		closeFD(fd)
	}
	return err
}
