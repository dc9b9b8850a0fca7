package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Row is what a table says about one system call.
type Row struct {
	Name   string    // as in the kernel's tables
	Reason string    // who needs it, or why no guest may have it
	Refuse []Refusal // arguments that the permission does not extend to; none in Denied

	// Errno is what a call of Denied fails with, if not EPERM: one for which programs
	// that could do without the call do so. 0 in other tables.
	Errno syscall.Errno
}

// Refusal fails a call whose arguments all match with an errno. Of the refusals of
// a row the first that matches answers.
type Refusal struct {
	Errno syscall.Errno
	Match []Match // none: every call, if there is a label

	// NoEffect makes the call return 0 without doing anything, in place of an errno. Only
	// for calls that write nothing to the caller's memory.
	NoEffect bool

	// Label names the refusal for who hears of the call, and is nothing to this
	// package. Rows of Allowed have none: nobody asks why they refuse.
	Label string
	// Text is which argument, counted from 1, points to a path that is worth
	// telling. 0: none does.
	Text int
}

// Match holds for a call whose argument number Arg, from 0, is one of Values, or
// none of them, in the bits of Mask. The mask is part of every comparison since the
// kernel takes most arguments as 32 bits: one that compared all 64 would be led
// past by setting a bit which the kernel then ignores (CVE-2017-5226's first cure
// fell to that).
type Match struct {
	Arg    uint
	Mask   uint64
	Test   Test
	Values []uint64
}

// Test is what a Match asks about an argument.
type Test uint8

// Both tests stand for themselves in the program, whatever the mask. NoneOf is for
// arguments of which a few values are good: it matches what is not known yet, too.
const (
	OneOf Test = iota
	NoneOf
)

const (
	int32Mask    = 0xffff_ffff
	mostErrno    = 4095 // MAX_ERRNO of the kernel, which would cut off what is above
	mostArgument = 5
)

// refuse makes a list of one, for tables.
func refuse(errno syscall.Errno, match ...Match) []Refusal {
	return []Refusal{{Errno: errno, Match: match}}
}

// is matches an argument that the kernel takes as an int.
func is(arg uint, values ...uint64) Match { return Match{arg, int32Mask, OneOf, values} }

// isNot is the contrary of is.
func isNot(arg uint, values ...uint64) Match { return Match{arg, int32Mask, NoneOf, values} }

// anyBit matches an argument with one or more of the flags.
func anyBit(arg uint, flags ...uint64) Match {
	m := Match{Arg: arg, Test: NoneOf, Values: []uint64{0}}
	for _, f := range flags {
		m.Mask |= f
	}
	return m
}

// matches reads the refusal as the program does. A refusal without a match answers
// every call.
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

// check finds mistakes that would make a refusal match always, or never.
func (r Refusal) check() error {
	if r.NoEffect && (r.Errno != 0 || r.Label != "") {
		return errors.New("a call without effect has no errno, and no label")
	}
	if !r.NoEffect && r.Errno == 0 || r.Errno > mostErrno {
		return fmt.Errorf("errno %d of 1 to %d", int(r.Errno), mostErrno)
	}
	if len(r.Match) == 0 && r.Label == "" {
		return fmt.Errorf("errno %d without a match", int(r.Errno))
	}
	if r.Text < 0 || r.Text > mostArgument+1 {
		return fmt.Errorf("text %d of 0 to %d", r.Text, mostArgument+1)
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
	case m.Arg > mostArgument:
		return fmt.Errorf("argument %d of 0 to %d", m.Arg, mostArgument)
	case m.Mask == 0:
		return errors.New("no bit to look at")
	case m.Test > NoneOf:
		return fmt.Errorf("test %d", m.Test)
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
