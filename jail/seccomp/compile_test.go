package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Unknown names are ignored. Wrong conditions are errors.
func TestCompileErrors(t *testing.T) {
	guard := Row{Calls: "ioctl", Reason: "test", Refuse: noInput}
	if _, err := compile(native(t), tables{allowed: []Row{guard, {Calls: "nonsense", Reason: "test"}}}); err != nil {
		t.Error(err)
	}
	if _, err := compile(native(t), tables{allowed: []Row{guard, guard}}); err == nil {
		t.Error("a duplicate call was accepted")
	}
	if _, err := compile(native(t), tables{allowed: []Row{guard}, denied: []Row{guard}}); err == nil {
		t.Error("a call in both tables was accepted")
	}
	if _, err := compile(native(t), tables{allowed: Allowed, restrictions: []Row{{Calls: "mount"}}}); err == nil {
		t.Error("a restriction of a call in no table was accepted")
	}
	if nr, exists := native(t).number("nonsense"); exists {
		t.Errorf("got %d", nr)
	}
	wrong := map[string][]Refusal{
		"seventh argument":        refuse(unix.EPERM, is(6, 1)),
		"no match":                refuse(unix.EPERM),
		"no errno":                refuse(0, is(0, 1)),
		"errno that is truncated": refuse(1<<16|unix.EPERM, is(0, 1)),
		"no value":                refuse(unix.EPERM, is(0)),
		"no bit":                  refuse(unix.EPERM, anyBit(0, 0)),
		"value outside the mask":  refuse(unix.EPERM, is(0, 1<<32)),
		"no effect but an errno":  {{NoEffect: true, Errno: unix.EPERM, Match: []Match{is(0, 1)}}},
		"no effect but a label":   {{NoEffect: true, Label: "test", Match: []Match{is(0, 1)}}},
		"seventh path argument":   {{Errno: unix.EPERM, Label: "test", PathArg: 7}},
		"negative path argument":  {{Errno: unix.EPERM, Label: "test", PathArg: -1}},
	}
	for name, refusals := range wrong {
		row := Row{Calls: "read", Reason: "test", Refuse: refusals}
		if _, err := compile(native(t), tables{allowed: []Row{guard, row}}); err == nil {
			t.Errorf("%s: accepted in a table", name)
		}
		if _, err := compile(native(t), tables{allowed: Allowed, restrictions: []Row{row}}); err == nil {
			t.Errorf("%s: accepted as a restriction", name)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := compile(native(b), tables{allowed: Allowed, denied: Denied}); err != nil {
			b.Fatal(err)
		}
	}
}
