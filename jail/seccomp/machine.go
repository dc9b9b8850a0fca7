package seccomp

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// machine is a processor architecture.
type machine struct {
	arch  libseccomp.ScmpArch
	audit uint32 // AUDIT_ARCH_* of the kernel
	x32   bool   // also supports a second set of calls, from x32Bit on
	oci   specs.Arch
}

// machines are the supported architectures. All are little-endian.
var machines = []machine{
	{libseccomp.ArchAMD64, unix.AUDIT_ARCH_X86_64, true, specs.ArchX86_64},
	{libseccomp.ArchARM64, unix.AUDIT_ARCH_AARCH64, false, specs.ArchAARCH64},
}

// x32Bit marks calls of x32, a variant of amd64 with 32-bit pointers and the same AUDIT_ARCH.
const x32Bit = 0x4000_0000

func nativeMachine() (machine, error) {
	arch, err := libseccomp.GetNativeArch()
	if err != nil {
		return machine{}, err
	}
	for _, m := range machines {
		if m.arch == arch {
			return m, nil
		}
	}
	return machine{}, fmt.Errorf("unsupported architecture %s", arch)
}

// number returns the number of a call, if it exists on this architecture. libseccomp
// returns a negative number for calls that exist only on other architectures.
func (m machine) number(name string) (nr uint32, exists bool) {
	if nr, err := libseccomp.GetSyscallFromNameByArch(name, m.arch); err == nil && nr >= 0 {
		return uint32(nr), true
	}
	nr, exists = newer[name]
	return nr, exists
}

// newer are the numbers of calls that are newer than some versions of libseccomp in use.
// Since Linux 5.1 new calls have the same number on all architectures.
var newer = map[string]uint32{
	"cachestat":         unix.SYS_CACHESTAT,
	"fchmodat2":         unix.SYS_FCHMODAT2,
	"map_shadow_stack":  unix.SYS_MAP_SHADOW_STACK,
	"futex_wake":        unix.SYS_FUTEX_WAKE,
	"futex_wait":        unix.SYS_FUTEX_WAIT,
	"futex_requeue":     unix.SYS_FUTEX_REQUEUE,
	"statmount":         unix.SYS_STATMOUNT,
	"listmount":         unix.SYS_LISTMOUNT,
	"lsm_set_self_attr": unix.SYS_LSM_SET_SELF_ATTR,
	"mseal":             unix.SYS_MSEAL,
	"setxattrat":        463,
	"getxattrat":        464,
	"listxattrat":       465,
	"removexattrat":     466,
	"open_tree_attr":    467,
	"listns":            470,
}
