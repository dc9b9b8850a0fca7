package seccomp

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"syscall"
)

// Row is a table's entry for one or more system calls.
type Row struct {
	Calls  string    // their names as in the kernel's tables, separated by blanks
	Reason string    // why guests need the calls, or may not make them
	Refuse []Refusal // arguments that are refused; none in Denied

	// Errno replaces EPERM in Denied, if programs have a fallback for another errno. It
	// is 0 in other tables.
	Errno syscall.Errno
}

// Refusal makes a call fail with an errno if all arguments match. The first matching
// refusal of a row applies.
type Refusal struct {
	Errno syscall.Errno
	Match []Match // may be empty, to match every call, if there is a label or no effect

	// NoEffect makes the call return 0 without effect instead of an errno. It is only for
	// calls that do not write to the caller's memory.
	NoEffect bool

	// Label identifies the refusal to the listener. This package does not interpret it.
	// Rows of Allowed have none: their refusals are not reported.
	Label string
	// PathArg is the argument, counted from 1, that points to a path to report. 0: none.
	PathArg int
}

// calls iterates over the calls of all rows.
func calls(rows []Row) iter.Seq2[string, Row] {
	return func(yield func(string, Row) bool) {
		for _, r := range rows {
			for name := range strings.FieldsSeq(r.Calls) {
				if !yield(name, r) {
					return
				}
			}
		}
	}
}

// Match compares the bits of Mask of argument Arg, counted from 0, to Values. The mask is
// mandatory because the kernel reads only 32 bits of most arguments: a
// comparison of all 64 could be bypassed by setting a bit that the kernel ignores. The
// first fix of CVE-2017-5226 was bypassed that way.
type Match struct {
	Arg    uint
	Mask   uint64
	Values []uint64

	// None makes it match if the argument is none of the values. It is for arguments with
	// few permitted values: it also matches values that are not known yet.
	None bool
}

const (
	int32Mask   = 0xffff_ffff
	maxErrno    = 4095 // MAX_ERRNO of the kernel, which truncates larger values
	maxArgument = 5
)

// refuse returns a list of one refusal.
func refuse(errno syscall.Errno, match ...Match) []Refusal {
	return []Refusal{{Errno: errno, Match: match}}
}

// among matches an argument whose bits under a mask are one of the values.
func among(arg uint, mask uint64, values ...uint64) Match {
	return Match{Arg: arg, Mask: mask, Values: values}
}

// notAmong is the negation of among.
func notAmong(arg uint, mask uint64, values ...uint64) Match {
	return Match{Arg: arg, Mask: mask, Values: values, None: true}
}

// is matches an argument that the kernel reads as an int.
func is(arg uint, values ...uint64) Match { return among(arg, int32Mask, values...) }

// isNot is the negation of is.
func isNot(arg uint, values ...uint64) Match { return notAmong(arg, int32Mask, values...) }

// anyBit matches an argument with at least one of the flags.
func anyBit(arg uint, flags uint64) Match { return notAmong(arg, flags, 0) }

// matches reports whether the refusal applies. The compiled program decides the same.
func (r Refusal) matches(args [6]uint64) bool {
	return !slices.ContainsFunc(r.Match, func(m Match) bool {
		return slices.Contains(m.Values, args[m.Arg]&m.Mask) == m.None
	})
}

// check finds mistakes that would make a refusal match always or never.
func (r Refusal) check() error {
	switch {
	case r.NoEffect && (r.Errno != 0 || r.Label != ""):
		return errors.New("a call without effect cannot have an errno or a label")
	case !r.NoEffect && r.Errno == 0 || r.Errno > maxErrno:
		return fmt.Errorf("errno %d is not in 1 to %d", int(r.Errno), maxErrno)
	case len(r.Match) == 0 && r.Label == "" && !r.NoEffect:
		return fmt.Errorf("errno %d without a match", int(r.Errno))
	case r.PathArg < 0 || r.PathArg > maxArgument+1:
		return fmt.Errorf("path argument %d is not in 0 to %d", r.PathArg, maxArgument+1)
	}
	for _, m := range r.Match {
		outside := func(v uint64) bool { return v&^m.Mask != 0 }
		if m.Arg > maxArgument || m.Mask == 0 || len(m.Values) == 0 || slices.ContainsFunc(m.Values, outside) {
			return fmt.Errorf("%+v: the argument, bits and values must exist, and the values be within the mask", m)
		}
	}
	return nil
}
