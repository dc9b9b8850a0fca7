package seccomp

import (
	"fmt"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// machine is what a filter depends on besides the tables.
type machine struct {
	arch  libseccomp.ScmpArch // whose numbers the calls have
	audit uint32              // the kernel's name for it
	x32   bool                // it has a second set of calls, from x32Bit on
}

// machines are those that a filter can be made for. All are little-endian.
var machines = []machine{
	{libseccomp.ArchAMD64, unix.AUDIT_ARCH_X86_64, true},
	{libseccomp.ArchARM64, unix.AUDIT_ARCH_AARCH64, false},
}

// x32Bit marks calls of x32, amd64's variant with short pointers, which shares its
// architecture's number.
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
	return machine{}, fmt.Errorf("no filter for %s", arch)
}

// number resolves a name. That libseccomp knows a call of other architectures
// shows in a negative number.
func (m machine) number(name string) (uint32, error) {
	nr, err := libseccomp.GetSyscallFromNameByArch(name, m.arch)
	if err == nil && nr >= 0 {
		return uint32(nr), nil
	}
	if nr, ok := newer[name]; ok {
		return nr, nil
	}
	if err == nil {
		err = libseccomp.ErrSyscallDoesNotExist
	}
	return 0, err
}

// newer are numbers of calls that came after some version of libseccomp still in
// use. All architectures number new calls alike since Linux 5.1.
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
