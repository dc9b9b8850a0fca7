package seccomp

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/tier"
)

// subject is a compiled filter and the tables that it was compiled from.
type subject struct {
	machine
	program []unix.SockFilter
	allowed map[uint32]Row // restrictions first
	denied  map[uint32]Row
	notify  bool
}

func subjects(t testing.TB) []subject {
	t.Helper()
	var list []subject
	for _, m := range machines {
		for _, from := range tableSets() {
			list = append(list, newSubject(t, m, from))
		}
	}
	return list
}

// tableSets returns the tables without and with restrictions.
func tableSets() []tables {
	most := slices.Concat(NoSpawn, NoMemfd, NoNamedSockets, NoDatagrams, OnlyTCP, NoMetadata, NoRename, NoWatch)
	var all []tables
	for _, restrictions := range [][]Row{nil, most, slices.Concat(NoSpawn, NoInternet)} {
		for _, notify := range []bool{false, true} {
			all = append(all, tables{Allowed, Denied, restrictions, notify})
		}
	}
	return all
}

func newSubject(t testing.TB, m machine, from tables) subject {
	t.Helper()
	p, err := compile(m, from)
	if err != nil {
		t.Fatal(err)
	}
	return subject{m, p, numbered(m, from.allowed, from.restrictions), numbered(m, from.denied, from.restrictions), from.notify}
}

func numbered(m machine, rows, restrictions []Row) map[uint32]Row {
	all := map[uint32]Row{}
	for name, r := range calls(rows) {
		if nr, exists := m.number(name); exists {
			var first []Refusal
			for other, o := range calls(restrictions) {
				if other == name {
					first = append(first, o.Refuse...)
				}
			}
			r.Refuse = append(first, r.Refuse...)
			all[nr] = r
		}
	}
	return all
}

// expected evaluates the tables directly.
func (s subject) expected(c guestCall) uint32 {
	const errno = unix.SECCOMP_RET_ERRNO
	if c.arch != s.audit || s.x32 && c.nr >= x32Bit && c.nr != math.MaxUint32 {
		return unix.SECCOMP_RET_KILL_PROCESS
	}
	row, usual := s.allowed[c.nr], uint32(unix.SECCOMP_RET_ALLOW)
	if denied, ok := s.denied[c.nr]; ok {
		row, usual = denied, errno|uint32(cmp.Or(denied.Errno, unix.EPERM))
	} else if row.Calls == "" {
		return errno | uint32(unix.ENOSYS)
	}
	for _, r := range row.Refuse {
		switch {
		case !r.matches(c.args):
		case s.notify && r.Label != "":
			return unix.SECCOMP_RET_USER_NOTIF
		default:
			return errno | uint32(r.Errno)
		}
	}
	return usual
}

// guestCall holds the fields of the kernel's struct seccomp_data that filters use.
type guestCall struct {
	arch, nr uint32
	args     [6]uint64
}

func (c guestCall) words() (words [16]uint32) {
	words[0], words[1] = c.nr, c.arch
	for i, a := range c.args {
		words[4+2*i], words[5+2*i] = uint32(a), uint32(a>>32)
	}
	return words
}

// run interprets a program and reports whether it loaded an argument.
func run(t testing.TB, p []unix.SockFilter, c guestCall) (answer uint32, looked bool) {
	var a uint32
	words := c.words()
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
			looked = looked || in.K >= 16
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K: // of libseccomp, see oci_test.go
			jump(a > in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K, looked
		default:
			t.Fatalf("instruction %d: code %#x", pc, in.Code)
		}
	}
	t.Fatal("no return instruction")
	return 0, false
}

// compare fails the test if the program's result differs from the tables.
func (s subject) compare(t testing.TB, c guestCall) {
	if got, _ := run(t, s.program, c); got != s.expected(c) {
		t.Helper()
		t.Fatalf("arch %#x, call %#x(%#x): %#x, want %#x", c.arch, c.nr, c.args, got, s.expected(c))
	}
}

// TestProgramIsShort limits the size of the program, which each run loads.
func TestProgramIsShort(t *testing.T) {
	for _, m := range machines {
		for _, from := range tableSets() {
			n, most := len(newSubject(t, m, from).program), 500
			if from.restrictions != nil {
				most = 560
			}
			t.Logf("%s: %d restrictions, notify %v: %d instructions", m.arch, len(from.restrictions), from.notify, n)
			if n > most {
				t.Errorf("more than %d instructions", most)
			}
		}
	}
}

func callNumbers() []uint32 {
	numbers := []uint32{math.MaxInt32, math.MaxUint32, math.MaxUint32 - 1}
	for nr := range uint32(601) {
		numbers = append(numbers, nr, nr|x32Bit, nr|1<<31, nr|3<<30, nr|1<<16)
	}
	for bit := range 32 {
		numbers = append(numbers, 1<<bit, 1<<bit-1, 1<<bit+1)
	}
	return numbers
}

func callArchs() []uint32 {
	archs := []uint32{0, math.MaxUint32, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_MIPS, unix.AUDIT_ARCH_RISCV64}
	for _, m := range machines {
		archs = append(archs, m.audit)
		for bit := range 32 {
			archs = append(archs, m.audit^1<<bit)
		}
	}
	return archs
}

func TestProgramCalls(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range subjects(t) {
		for _, arch := range callArchs() {
			for _, nr := range callNumbers() {
				s.compare(t, guestCall{arch, nr, [6]uint64{}})
				s.compare(t, guestCall{arch, nr, anyArguments(random)})
			}
		}
	}
}

// Programs load arguments only for calls with refusals, see compile.
func TestProgramLoadsArgumentsOnlyIfNeeded(t *testing.T) {
	for _, s := range subjects(t) {
		for nr := range uint32(601) {
			_, looked := run(t, s.program, guestCall{arch: s.audit, nr: nr})
			list := s.allowed[nr].Refuse
			if needed := len(list) > 0 && len(list[0].Match) > 0; looked != needed {
				t.Errorf("%s: call %d: loads an argument %v, want %v", s.arch, nr, looked, needed)
			}
		}
	}
}

func TestProgramArguments(t *testing.T) {
	tier.Soak(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range subjects(t) {
		for nr, r := range s.allowed {
			for args := range similar(r, random) {
				s.compare(t, guestCall{s.audit, nr, args})
			}
		}
	}
}

// similar iterates over all combinations of the values in a row, and replaces single
// arguments by similar and random values.
func similar(r Row, random *rand.Rand) iter.Seq[[6]uint64] {
	return func(yield func([6]uint64) bool) {
		for _, args := range combinations(r) {
			list := [][6]uint64{args}
			for arg, values := range mentioned(r) {
				for _, v := range lookalikes(values) {
					other := args
					other[arg] = v
					list = append(list, other)
				}
			}
			for range 50 {
				other := anyArguments(random)
				other[random.IntN(6)] = args[random.IntN(6)]
				list = append(list, other)
			}
			for _, args := range list {
				if !yield(args) {
					return
				}
			}
		}
	}
}

// mentioned returns the values and masks in a row for each argument.
func mentioned(r Row) map[uint][]uint64 {
	all := map[uint][]uint64{}
	for _, refusal := range r.Refuse {
		for _, m := range refusal.Match {
			all[m.Arg] = append(append(all[m.Arg], m.Values...), m.Mask)
		}
	}
	for arg, values := range all {
		slices.Sort(values)
		all[arg] = slices.Compact(values)
	}
	return all
}

func combinations(r Row) [][6]uint64 {
	list := [][6]uint64{{}}
	for arg, values := range mentioned(r) {
		for _, args := range slices.Clone(list) {
			for _, v := range values {
				args[arg] = v
				list = append(list, args)
			}
		}
	}
	return list
}

func lookalikes(values []uint64) []uint64 {
	list := []uint64{0, math.MaxUint64}
	for _, v := range values {
		list = append(list, v-1, v+1, ^v, v|garbage, v<<32)
		for bit := range 64 {
			list = append(list, v^1<<bit, 1<<bit)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func anyArguments(random *rand.Rand) (args [6]uint64) {
	for i := range args {
		args[i] = random.Uint64() >> random.UintN(64)
	}
	return args
}

func FuzzProgram(f *testing.F) {
	list := subjects(f)
	for i, s := range list {
		for nr, r := range s.allowed {
			if all := combinations(r); len(r.Refuse) > 0 {
				args := all[len(all)-1]
				f.Add(i, s.audit, nr, args[0], args[1], args[2], args[3])
			}
		}
	}
	f.Fuzz(func(t *testing.T, which int, arch, nr uint32, a, b, c, d uint64) {
		s := list[uint(which)%uint(len(list))]
		s.compare(t, guestCall{arch, nr, [6]uint64{a, b, c, d}})
		s.compare(t, guestCall{s.audit, nr % 512, [6]uint64{a, b, c, d}})
	})
}

// Compile returns the program of compile for this machine.
func TestCompile(t *testing.T) {
	p := make([]unix.SockFilter, len(filter(t))/unix.SizeofSockFilter)
	if _, err := binary.Decode(filter(t), binary.NativeEndian, p); err != nil {
		t.Fatal(err)
	}
	want, err := compile(native(t), tables{allowed: Allowed, denied: Denied})
	if err != nil || !slices.Equal(p, want) {
		t.Errorf("differs from %d instructions, %v", len(want), err)
	}
}
