package seccomp

import (
	"fmt"
	"slices"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// OCI returns the tables as the seccomp section of an OCI container's configuration, for this
// machine's architecture. Callers share it and must not modify it.
//
// All processes of the container have this filter, and runs load their own, of [Compile],
// after it. The section has only rules that allow calls. All other calls get ENOSYS, because
// a runtime compiles the section for each process, in a time that grows faster than the
// number of rules. Guests still get the errno, or the success without effect, of the run's
// filter: if several filters return an errno, the kernel uses the newest one's.
//
// The section differs from Compile(nil, false) for these calls:
//
//   - Calls of another architecture or x32 kill only the thread, which is libseccomp's default
//     in all runtimes. The filter of a run kills the process.
//   - Allowed calls that the runtime's libseccomp does not know get ENOSYS.
//   - The arguments of the calls in unchecked, such as setsockopt and prctl, are left to the filter
//     of a run: their rules, a third of all, would take a sixth of the time in which runc starts a
//     process.
//   - The calls in narrowed, such as fcntl, get ENOSYS for values that have no meaning for
//     programs without privileges.
//   - The entry program of package enter may load the filter of a run.
//   - The calls that [AskCommand] and [LimitedNetlink] send to the listener are allowed,
//     because an errno takes precedence over a notification. Other restrictions need no
//     exception. If the tables and a restriction refuse a call, for example a raw socket,
//     guests get ENOSYS, and the listener is not notified.
//
// The configuration must set noNewPrivileges, with which runtimes load the filter last: the
// calls by which they change users are not all allowed. It must also set the limit of core
// files, which can't be set under the filter.
func OCI() (*specs.LinuxSeccomp, error) { return oci() }

var oci = sync.OnceValues(func() (*specs.LinuxSeccomp, error) {
	m, err := nativeMachine()
	if err != nil {
		return nil, err
	}
	return m.section(), nil
})

// entryCalls are calls that the entry program makes before it loads the run's filter. They are not in
// Allowed: the run's filter refuses them.
var entryCalls = []Row{
	{Calls: "seccomp", Reason: "loads the filter of a run, with its listener", Refuse: slices.Concat(
		refuse(unix.ENOSYS, isNot(0, unix.SECCOMP_SET_MODE_FILTER)),
		unused(1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV),
	)},
}

// unchecked are calls that the section allows with any arguments, see OCI.
var unchecked = []string{"setsockopt", "getsockopt", "prctl", "madvise", "timer_create", "clock_nanosleep"}

// narrowed refuses values that have no meaning for programs without privileges. A condition compares bits, so allowing all
// but a few values takes a rule for each bit in which a value can differ from them.
//
// libseccomp shares the code of equal last comparisons, even if one of them is of another
// argument (2.5.4, for example). The tests find such errors.
var narrowed = []Row{
	{Calls: "fcntl", Reason: "commands are below 2048", Refuse: unused(1, 0x7ff)},
	{Calls: "setrlimit", Reason: "resources are below 16", Refuse: unused(0, 0xf)},
	{Calls: "prlimit64", Reason: "resources are below 16", Refuse: unused(1, 0xf)},
}

// unused refuses an int with a bit that is not in use.
func unused(arg uint, inUse uint64) []Refusal {
	return refuse(unix.ENOSYS, anyBit(arg, int32Mask&^inUse))
}

func (m machine) section() *specs.LinuxSeccomp {
	first := byName(slices.Concat(AskCommand, LimitedNetlink, narrowed))
	s := &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno, DefaultErrnoRet: new(uint(unix.ENOSYS)), Architectures: []specs.Arch{m.oci},
	}
	always := specs.LinuxSyscall{Action: specs.ActAllow}
	for name, r := range calls(slices.Concat(Allowed, entryCalls)) {
		if _, exists := m.number(name); !exists {
			continue
		}
		list := slices.Concat(first[name], r.Refuse)
		if len(list) == 0 || slices.Contains(unchecked, name) {
			always.Names = append(always.Names, name)
			continue
		}
		for _, r := range permitted(list) {
			s.Syscalls = append(s.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow, Args: r.conditions()})
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
