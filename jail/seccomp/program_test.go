package seccomp

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// The kernel's answers.
const (
	retAllow       = 0x7fff_0000
	retErrno       = 0x0005_0000
	retKillProcess = 0x8000_0000
)

// data is the kernel's struct seccomp_data, as 32-bit words.
func data(arch, nr uint32, args [6]uint64) (words [16]uint32) {
	words[0], words[1] = nr, arch
	for i, a := range args {
		words[4+2*i], words[5+2*i] = uint32(a), uint32(a>>32) // little endian, as are all our machines
	}
	return words
}

// run interprets a filter.
func run(t testing.TB, p []instruction, words [16]uint32) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = words[in.K/4]
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(a > in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d: code %#x", pc, in.Code)
		}
	}
	t.Fatal("ran over the end")
	return 0
}

// nativeArch reads the architecture's number from the filter, whose first
// comparison it is.
func nativeArch(p []instruction) uint32 { return p[1].K }

func program(t testing.TB) []instruction {
	t.Helper()
	p, err := decode(filter(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProgram holds the compiled filter against a plain reading of the tables,
// with arguments near those that the tables name.
func TestProgram(t *testing.T) {
	p := program(t)
	t.Logf("%d instructions", len(p))
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range Allowed {
		nr, err := number(r.Name)
		if err != nil {
			continue
		}
		rounds := 1
		if r.Refuse != nil {
			rounds = 20_000
		}
		for range rounds {
			args := guess(random, r.Refuse)
			got := run(t, p, data(nativeArch(p), uint32(nr), args))
			if want := expected(r.Refuse, args); !slices.Contains(want, got) {
				t.Fatalf("%s(%#x): %#x, want one of %#x", r.Name, args, got, want)
			}
		}
	}
	for _, r := range Denied {
		if nr, err := number(r.Name); err == nil {
			if got := run(t, p, data(nativeArch(p), uint32(nr), [6]uint64{})); got != retErrno|uint32(unix.EPERM) {
				t.Errorf("%s: %#x", r.Name, got)
			}
		}
	}
}

// expected lists the answers that the refusals allow for; several may match.
func expected(refuse []Refusal, args [6]uint64) []uint32 {
	var want []uint32
	for _, r := range refuse {
		if !slices.ContainsFunc(r.Match, func(m Match) bool { return args[m.Arg]&m.Mask != m.Value }) {
			want = append(want, retErrno|uint32(r.Errno))
		}
	}
	if want == nil {
		return []uint32{retAllow}
	}
	return want
}

// guess makes arguments: a refusal's, with one bit changed at times, and garbage
// where no mask looks.
func guess(random *rand.Rand, refuse []Refusal) (args [6]uint64) {
	for i := range args {
		args[i] = random.Uint64() >> random.UintN(64)
	}
	if len(refuse) == 0 {
		return args
	}
	for _, m := range refuse[random.IntN(len(refuse))].Match {
		args[m.Arg] = args[m.Arg]&^m.Mask | m.Value
		if random.IntN(4) == 0 {
			args[m.Arg] ^= 1 << random.UintN(32)
		}
	}
	return args
}

func TestAllBut(t *testing.T) {
	const mask = 0xf0
	keep := []uint64{0x00, 0x30, 0xf0}
	refuse := allBut(2, mask, unix.EPERM, keep)
	for v := range uint64(0x200) {
		allowed := slices.Contains(keep, v&mask)
		if got := expected(refuse, [6]uint64{2: v})[0] == retAllow; got != allowed {
			t.Errorf("%#x: allowed %v", v, got)
		}
	}
}

func TestProgramOtherwise(t *testing.T) {
	p := program(t)
	tests := []struct {
		name string
		arch uint32
		nr   uint32
		want uint32
	}{
		{"unknown call", nativeArch(p), 9999, retErrno | uint32(unix.ENOSYS)},
		{"no call", nativeArch(p), 0xffff_ffff, retErrno | uint32(unix.ENOSYS)},
		{"i386", unix.AUDIT_ARCH_I386, 20, retKillProcess},
		{"arm", unix.AUDIT_ARCH_ARM, 20, retKillProcess},
		{"mips", unix.AUDIT_ARCH_MIPS, 20, retKillProcess},
	}
	for _, test := range tests {
		if got := run(t, p, data(test.arch, test.nr, [6]uint64{})); got != test.want {
			t.Errorf("%s: %#x, want %#x", test.name, got, test.want)
		}
	}
}

func TestLink(t *testing.T) {
	ret := func(k uint32) instruction { return instruction{Code: returnConstant, K: k} }
	test := func(list ...instruction) []byte {
		b, err := encode(list)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	got, err := link(test(ret(retTrace|1), ret(retAllow)), test(ret(retErrno)))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := decode(got)
	if !slices.Equal(p, []instruction{{Code: jumpAlways, K: 1}, ret(retAllow), ret(retErrno)}) {
		t.Errorf("got %v", p)
	}
	if _, err := link(test(ret(retAllow)), test(ret(retErrno))); err == nil {
		t.Error("linked with nothing to link")
	}
	if _, err := link(make([]byte, instructionSize*unix.BPF_MAXINSNS), test(ret(retErrno))); err == nil {
		t.Error("linked more than the kernel takes")
	}
}

// A misspelt or foreign name is left out; a wrong condition is an error.
func TestCompileErrors(t *testing.T) {
	guard := Row{Name: "ioctl", Reason: "test", Refuse: noInput}
	if _, err := compile([]Row{guard, {Name: "nonsense", Reason: "test"}}, nil); err != nil {
		t.Error(err)
	}
	bad := Row{Name: "read", Reason: "test", Refuse: []Refusal{{[]Match{{Arg: 6}}, syscall.EPERM}}}
	if _, err := compile([]Row{guard, bad}, nil); err == nil {
		t.Error("a seventh argument was taken")
	}
	if _, err := number("nonsense"); err != libseccomp.ErrSyscallDoesNotExist {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := compile(Allowed, Denied); err != nil {
			b.Fatal(err)
		}
	}
}
