package seccomp

import (
	"fmt"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
)

// OCI returns the allowed calls as the seccomp section of an OCI container's configuration, for
// this machine's architecture. Callers share it and must not modify it.
//
// All processes of the container have this filter, and runs load their own, of [Compile],
// after it, before any guest code runs: the strictest result of the two applies. The section has
// only rules that allow calls, whatever their arguments except those in sectionArguments. All other
// calls get ENOSYS, because a runtime compiles the section for each process, in a time that grows
// faster than the number of rules. Guests still get the errno, or the success without effect, of
// the run's filter: if several filters return an errno, the kernel uses the newest one's.
//
// Calls of another architecture or x32 kill only the thread, which is libseccomp's default
// in all runtimes; the filter of a run kills the process. Allowed calls that the runtime's
// libseccomp does not know get ENOSYS.
//
// The configuration must set noNewPrivileges, with which runtimes load the filter last: the
// calls by which they change users are not all allowed.
var OCI = sync.OnceValues(func() (*specs.LinuxSeccomp, error) {
	m, err := nativeMachine()
	if err != nil {
		return nil, err
	}
	return m.section(), nil
})

// entryCall loads the filter of a run, which refuses it.
const entryCall = "seccomp"

// sectionArguments are the permitted arguments of calls that reach most of the kernel's attack surface:
// namespaces, and protocols of sockets. Each call needs one of its conditions.
var sectionArguments = map[string][]specs.LinuxSeccompArg{
	"clone":      {{Index: 0, Value: namespaceFlags, Op: specs.OpMaskedEqual}},
	"socket":     inFamilies(unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, hostcommand.Family),
	"socketpair": inFamilies(unix.AF_UNIX),
}

func inFamilies(families ...uint64) (list []specs.LinuxSeccompArg) {
	for _, f := range families {
		list = append(list, specs.LinuxSeccompArg{Index: 0, Value: int32Mask, ValueTwo: f, Op: specs.OpMaskedEqual})
	}
	return list
}

func (m machine) section() *specs.LinuxSeccomp {
	s := &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno, DefaultErrnoRet: new(uint(unix.ENOSYS)), Architectures: []specs.Arch{m.oci},
	}
	always := specs.LinuxSyscall{Names: []string{entryCall}, Action: specs.ActAllow}
	for name := range calls(Allowed) {
		if _, exists := m.number(name); !exists {
			continue
		}
		conditions, some := sectionArguments[name]
		if !some {
			always.Names = append(always.Names, name)
		}
		for _, c := range conditions {
			s.Syscalls = append(s.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{c}})
		}
	}
	s.Syscalls = append(s.Syscalls, always)
	return s
}

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
		return machine{}, fmt.Errorf("seccomp: %w", err)
	}
	for _, m := range machines {
		if m.arch == arch {
			return m, nil
		}
	}
	return machine{}, fmt.Errorf("seccomp: unsupported architecture %s", arch)
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
