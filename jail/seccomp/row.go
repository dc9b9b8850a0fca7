package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Row is a table's entry for a system call.
type Row struct {
	Name   string    // as in the kernel's tables
	Reason string    // what needs the call, or why no guest may make it
	Refuse []Refusal // arguments that are refused; none in Denied

	// Errno replaces EPERM in Denied, if programs have a fallback for another errno. It
	// is 0 in other tables.
	Errno syscall.Errno
}

// Refusal makes a call fail with an errno if all arguments match. The first matching
// refusal of a row applies.
type Refusal struct {
	Errno syscall.Errno
	Match []Match // may be empty, to match every call, if there is a label

	// NoEffect makes the call return 0 without effect instead of an errno. It is only for
	// calls that do not write to the caller's memory.
	NoEffect bool

	// Label identifies the refusal to the listener. This package does not interpret it.
	// Rows of Allowed have none: their refusals are not reported.
	Label string
	// PathArg is the argument, counted from 1, that points to a path to report. 0: none.
	PathArg int
}

// Match compares the bits of Mask of argument Arg, counted from 0, to Values. Every
// comparison has a mask because the kernel reads only 32 bits of most arguments: a
// comparison of all 64 could be bypassed by setting a bit that the kernel ignores. The
// first fix of CVE-2017-5226 was bypassed that way.
type Match struct {
	Arg    uint
	Mask   uint64
	Test   Test
	Values []uint64
}

// Test is the condition of a Match.
type Test uint8

// OneOf matches if the argument is one of the values, NoneOf if it is not. NoneOf is for
// arguments with few permitted values: it also matches values that are not known yet.
const (
	OneOf Test = iota
	NoneOf
)

const (
	int32Mask   = 0xffff_ffff
	maxErrno    = 4095 // MAX_ERRNO of the kernel, which truncates larger values
	maxArgument = 5
)

// refuse returns a list of one refusal.
func refuse(errno syscall.Errno, match ...Match) []Refusal {
	return []Refusal{{Errno: errno, Match: match}}
}

// is matches an argument that the kernel reads as an int.
func is(arg uint, values ...uint64) Match { return Match{arg, int32Mask, OneOf, values} }

// isNot is the negation of is.
func isNot(arg uint, values ...uint64) Match { return Match{arg, int32Mask, NoneOf, values} }

// anyBit matches an argument with at least one of the flags.
func anyBit(arg uint, flags ...uint64) Match {
	m := Match{Arg: arg, Test: NoneOf, Values: []uint64{0}}
	for _, f := range flags {
		m.Mask |= f
	}
	return m
}

// matches reports whether the refusal applies. The compiled program decides the same.
func (r Refusal) matches(args [6]uint64) bool {
	for _, m := range r.Match {
		if !m.holds(args[m.Arg]) {
			return false
		}
	}
	return true
}

func (m Match) holds(arg uint64) bool {
	return slices.Contains(m.Values, arg&m.Mask) == (m.Test == OneOf)
}

// check finds mistakes that would make a refusal match always or never.
func (r Refusal) check() error {
	if r.NoEffect && (r.Errno != 0 || r.Label != "") {
		return errors.New("a call without effect has no errno, and no label")
	}
	if !r.NoEffect && r.Errno == 0 || r.Errno > maxErrno {
		return fmt.Errorf("errno %d is not in 1 to %d", int(r.Errno), maxErrno)
	}
	if len(r.Match) == 0 && r.Label == "" {
		return fmt.Errorf("errno %d without a match", int(r.Errno))
	}
	if r.PathArg < 0 || r.PathArg > maxArgument+1 {
		return fmt.Errorf("path argument %d is not in 0 to %d", r.PathArg, maxArgument+1)
	}
	for _, m := range r.Match {
		if err := m.check(); err != nil {
			return fmt.Errorf("%+v: %w", m, err)
		}
	}
	return nil
}

func (m Match) check() error {
	switch {
	case m.Arg > maxArgument:
		return fmt.Errorf("argument %d is not in 0 to %d", m.Arg, maxArgument)
	case m.Mask == 0:
		return errors.New("no bit to compare")
	case m.Test > NoneOf:
		return fmt.Errorf("unknown test %d", m.Test)
	case len(m.Values) == 0:
		return errors.New("no value")
	}
	for _, v := range m.Values {
		if v&^m.Mask != 0 {
			return fmt.Errorf("value %#x has bits outside of the mask", v)
		}
	}
	return nil
}
