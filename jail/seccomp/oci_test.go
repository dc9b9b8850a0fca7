package seccomp

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"gaol/test/tier"
)

// container is the section, compiled as a runtime does it, and a guest's filter to compare
// it with.
type container struct {
	section    []unix.SockFilter
	guest      subject
	conditions map[uint32][]specs.LinuxSeccompArg
	unknown    map[uint32]bool // allowed calls that libseccomp does not know
}

// containers compiles the section with and without the binary tree of libseccomp: runc
// chooses it for sections of this length.
func containers(t testing.TB) []container {
	t.Helper()
	var list []container
	for _, m := range machines {
		for _, optimize := range []int{1, 2} {
			list = append(list, newContainer(t, m, optimize))
		}
	}
	return list
}

func newContainer(t testing.TB, m machine, optimize int) container {
	t.Helper()
	c := container{
		section:    compileSection(t, m, optimize),
		guest:      newSubject(t, m, tables{Allowed, Denied, slices.Concat(AskCommand, LimitedNetlink), true}),
		conditions: map[uint32][]specs.LinuxSeccompArg{},
		unknown:    map[uint32]bool{},
	}
	for name, list := range sectionArguments {
		nr, exists := m.number(name)
		if !exists || c.guest.allowed[nr].Calls == "" {
			t.Fatalf("%s is not allowed", name)
		}
		c.conditions[nr] = list
	}
	for name := range calls(Allowed) {
		if _, err := libseccomp.GetSyscallFromNameByArch(name, m.arch); err != nil {
			nr, _ := m.number(name)
			c.unknown[nr] = true
		}
	}
	return c
}

// compileSection compiles the section as runc does. runc also prepends instructions that
// return ENOSYS for numbers above those of the section, which is its default action.
func compileSection(t testing.TB, m machine, optimize int) []unix.SockFilter {
	t.Helper()
	s := reread(t, m.section())
	f, err := libseccomp.NewFilter(libseccomp.ActErrno.SetReturnCode(int16(*s.DefaultErrnoRet)))
	must(t, err)
	defer f.Release()
	if m != native(t) {
		must(t, f.AddArch(m.arch))
		must(t, f.RemoveArch(native(t).arch))
	}
	must(t, f.SetOptimize(optimize))
	for _, c := range s.Syscalls {
		for _, name := range c.Names {
			if nr, err := libseccomp.GetSyscallFromName(name); err == nil { // runc ignores other names
				addRule(t, f, nr, c)
			}
		}
	}
	return export(t, f)
}

// reread returns the section as a runtime reads it.
func reread(t testing.TB, s *specs.LinuxSeccomp) *specs.LinuxSeccomp {
	t.Helper()
	text, err := json.Marshal(s)
	must(t, err)
	var read specs.LinuxSeccomp
	must(t, json.Unmarshal(text, &read))
	return &read
}

func addRule(t testing.TB, f *libseccomp.ScmpFilter, nr libseccomp.ScmpSyscall, c specs.LinuxSyscall) {
	t.Helper()
	if c.Action != specs.ActAllow {
		t.Fatalf("%+v does not allow a call", c)
	}
	var conditions []libseccomp.ScmpCondition
	for _, a := range c.Args {
		// runc would make a rule of each condition.
		if slices.ContainsFunc(conditions, func(c libseccomp.ScmpCondition) bool { return c.Argument == a.Index }) {
			t.Fatalf("%+v has two conditions for an argument", c)
		}
		if a.Op != specs.OpMaskedEqual {
			t.Fatalf("%+v compares without a mask", c)
		}
		condition, err := libseccomp.MakeCondition(a.Index, libseccomp.CompareMaskedEqual, a.Value, a.ValueTwo)
		must(t, err)
		conditions = append(conditions, condition)
	}
	if conditions == nil {
		must(t, f.AddRule(nr, libseccomp.ActAllow))
	} else {
		must(t, f.AddRuleConditional(nr, libseccomp.ActAllow, conditions))
	}
}

func export(t testing.TB, f *libseccomp.ScmpFilter) []unix.SockFilter {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer file.Close()
	must(t, f.ExportBPF(file))
	b, err := os.ReadFile(file.Name())
	must(t, err)
	p := make([]unix.SockFilter, len(b)/unix.SizeofSockFilter)
	_, err = binary.Decode(b, binary.NativeEndian, p)
	must(t, err)
	return p
}

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// expected is the result of the section, by the tables.
func (c container) expected(call guestCall) uint32 {
	if c.guest.expected(call) == unix.SECCOMP_RET_KILL_PROCESS {
		return unix.SECCOMP_RET_KILL_THREAD
	}
	_, allowed := c.guest.allowed[call.nr]
	load, _ := c.guest.number(entryCall)
	list, some := c.conditions[call.nr]
	holds := func(a specs.LinuxSeccompArg) bool { return call.args[a.Index]&a.Value == a.ValueTwo }
	if allowed && !c.unknown[call.nr] && (!some || slices.ContainsFunc(list, holds)) || call.nr == load {
		return unix.SECCOMP_RET_ALLOW
	}
	return unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
}

// The section refuses nothing that the filter of a run allows or sends to its listener.
func (c container) checkGuest(t testing.TB, call guestCall) {
	switch c.guest.expected(call) {
	case unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_USER_NOTIF:
		if got := c.expected(call); got != unix.SECCOMP_RET_ALLOW && !c.unknown[call.nr] {
			t.Helper()
			t.Fatalf("call %#x(%#x): %#x, but a run may make it", call.nr, call.args, got)
		}
	}
}

func (c container) compare(t testing.TB, call guestCall) {
	c.checkGuest(t, call)
	if got, _ := run(t, c.section, call); got != c.expected(call) {
		t.Helper()
		t.Fatalf("arch %#x, call %#x(%#x): %#x, want %#x", call.arch, call.nr, call.args, got, c.expected(call))
	}
}

func TestOCICalls(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range containers(t) {
		for _, arch := range callArchs() {
			for _, nr := range callNumbers() {
				c.compare(t, guestCall{arch, nr, [6]uint64{}})
				c.compare(t, guestCall{arch, nr, anyArguments(random)})
			}
		}
	}
}

func TestOCIArguments(t *testing.T) {
	tier.Soak(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range containers(t) {
		for nr, r := range c.guest.allowed {
			for args := range similar(r, random) {
				c.compare(t, guestCall{c.guest.audit, nr, args})
			}
		}
	}
}

// TestOCIIsShort limits the number of rules, see OCI.
func TestOCIIsShort(t *testing.T) {
	for _, m := range machines {
		rules := 0
		for _, c := range m.section().Syscalls {
			rules += len(c.Names)
		}
		n := len(compileSection(t, m, 2))
		t.Logf("%s: %d rules, %d instructions", m.arch, rules, n)
		if rules > 300 || n > 600 {
			t.Error("more than 300 rules or 600 instructions")
		}
	}
}

// All sandboxes share one section.
func TestOCIIsCached(t *testing.T) {
	a, err := OCI()
	must(t, err)
	if b, _ := OCI(); a != b {
		t.Error("compiled twice")
	}
}

// TestOCIAllowsEntryProgram: without these calls there would be no runs.
func TestOCIAllowsEntryProgram(t *testing.T) {
	const listener = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	c := newContainer(t, native(t), 2)
	for _, flags := range []uint64{0, listener, listener | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV} {
		load := guestCall{c.guest.audit, uint32(nr(t, "seccomp")), [6]uint64{unix.SECCOMP_SET_MODE_FILTER, flags, math.MaxUint64}}
		if got, _ := run(t, c.section, load); got != unix.SECCOMP_RET_ALLOW {
			t.Errorf("flags %#x: %#x", flags, got)
		}
		if got, _ := run(t, c.guest.program, load); got == unix.SECCOMP_RET_ALLOW {
			t.Errorf("flags %#x: allowed for guests", flags)
		}
	}
}

// TestOCIUnderFilter makes calls in a container, in which a guest sees the errnos of its own
// filter.
func TestOCIUnderFilter(t *testing.T) {
	section, err := binary.Append(nil, binary.NativeEndian, compileSection(t, native(t), 2))
	must(t, err)
	of := func(name string, args ...uintptr) call {
		c := call{Nr: nr(t, name)}
		copy(c.Args[:], args)
		return c
	}
	const badFD = math.MaxUint
	tests := []struct {
		call
		guest, alone unix.Errno
	}{
		{of("mount"), unix.EPERM, unix.ENOSYS},
		{of("setxattr"), unix.EOPNOTSUPP, unix.ENOSYS},
		{of("setrlimit", unix.RLIMIT_CORE), 0, unix.EFAULT},
		{of("ioctl", badFD, unix.TIOCSTI|garbage), unix.EPERM, unix.EBADF},
		{of("ioctl", badFD, unix.TCGETS|garbage), unix.EBADF, unix.EBADF},
		{of("setsockopt", badFD, unix.SOL_TCP, unix.TCP_ULP), unix.EPERM, unix.EBADF},
		{of("setsockopt", badFD, unix.SOL_TCP, unix.TCP_NODELAY), unix.EBADF, unix.EBADF},
		{of("clone", unix.CLONE_NEWUSER), unix.EPERM, unix.ENOSYS},
		{of("socket", unix.AF_PACKET, unix.SOCK_RAW), unix.EAFNOSUPPORT, unix.ENOSYS},
		{of("socket", garbage|unix.AF_VSOCK, unix.SOCK_STREAM), unix.EAFNOSUPPORT, unix.ENOSYS},
		{of("prctl", unix.PR_GET_DUMPABLE), 0, 0},
		{of("seccomp", unix.SECCOMP_SET_MODE_FILTER, 0, 0), unix.ENOSYS, unix.EFAULT},
		{of("seccomp", unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, 0), unix.ENOSYS, unix.EFAULT},
		{of("clone3"), unix.ENOSYS, unix.ENOSYS},
	}
	var calls []call
	for _, test := range tests {
		calls = append(calls, test.call)
	}
	guest := runHelper(t, order{Container: section, Filter: filter(t), Calls: calls}).Errnos
	alone := runHelper(t, order{Container: section, Calls: calls}).Errnos
	for i, test := range tests {
		if guest[i] != test.guest || alone[i] != test.alone {
			t.Errorf("%+v: guest %v, want %v; alone %v, want %v", test.call, guest[i], test.guest, alone[i], test.alone)
		}
	}
}
