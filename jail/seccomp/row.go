package seccomp

import (
	"math/bits"
	"syscall"

	"golang.org/x/sys/unix"
)

// Row is what a table says about one system call.
type Row struct {
	Name   string    // as in the kernel's tables
	Reason string    // who needs it, or why no guest may have it
	Refuse []Refusal // in Allowed only: arguments that the permission does not extend to
}

// Refusal fails a call whose arguments all match with an errno.
type Refusal struct {
	Match []Match
	Errno syscall.Errno
}

// Match holds for a call whose argument number Arg, from 0, equals Value in the
// bits of Mask. The mask is part of every comparison since the kernel takes most
// arguments as 32 bits: one that compared all 64 would be led past by setting a
// bit which the kernel then ignores (CVE-2017-5226's first cure fell to that).
type Match struct {
	Arg   uint
	Mask  uint64
	Value uint64
}

const int32Mask = 0xffff_ffff

// is matches an argument that the kernel takes as an int.
func is(arg uint, value uint64) Match { return Match{arg, int32Mask, value} }

// anyBit refuses each of the flags.
func anyBit(arg uint, errno syscall.Errno, flags ...uint64) []Refusal {
	var list []Refusal
	for _, f := range flags {
		list = append(list, Refusal{[]Match{{arg, f, f}}, errno})
	}
	return list
}

// values refuses each of the values of an int.
func values(arg uint, errno syscall.Errno, refused ...uint64) []Refusal {
	var list []Refusal
	for _, v := range refused {
		list = append(list, Refusal{[]Match{is(arg, v)}, errno})
	}
	return list
}

// allBut refuses, where the conditions of when hold, every value of an argument's
// mask bits but those allowed. So it denies what is not known yet, too.
func allBut(arg uint, mask uint64, errno syscall.Errno, allowed []uint64, when ...Match) []Refusal {
	var list []Refusal
	for _, rest := range complement(Match{Arg: arg}, mask, allowed) {
		list = append(list, Refusal{append([]Match{rest}, when...), errno})
	}
	return list
}

// complement covers all values of the bits in mask that are not in keep, with
// as few matches as there are places where a binary search for one of keep can
// go wrong. It is needed since libseccomp has no "is none of" under a mask. All of
// keep agree with fixed in fixed's bits.
func complement(fixed Match, mask uint64, keep []uint64) []Match {
	if len(keep) == 0 {
		return []Match{fixed}
	}
	if mask == 0 {
		return nil
	}
	bit := uint64(1) << (bits.Len64(mask) - 1)
	var list []Match
	for _, value := range []uint64{0, bit} {
		var same []uint64
		for _, v := range keep {
			if v&bit == value {
				same = append(same, v)
			}
		}
		list = append(list, complement(Match{fixed.Arg, fixed.Mask | bit, fixed.Value | value}, mask&^bit, same)...)
	}
	return list
}

func join(lists ...[]Refusal) []Refusal {
	var all []Refusal
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// newer are numbers of calls that came after some version of libseccomp still in
// use. All architectures number new calls alike since Linux 5.1.
var newer = map[string]int32{
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
