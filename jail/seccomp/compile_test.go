package seccomp

import (
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// A misspelt or foreign name is left out; a wrong condition is an error.
func TestCompileErrors(t *testing.T) {
	guard := Row{Name: "ioctl", Reason: "test", Refuse: noInput}
	if _, err := compile(native(t), tables{allowed: []Row{guard, {Name: "nonsense", Reason: "test"}}}); err != nil {
		t.Error(err)
	}
	if _, err := compile(native(t), tables{allowed: []Row{guard, guard}}); err == nil {
		t.Error("a call was taken twice")
	}
	if _, err := compile(native(t), tables{allowed: []Row{guard}, denied: []Row{guard}}); err == nil {
		t.Error("a call was both allowed and denied")
	}
	if _, err := compile(native(t), tables{allowed: Allowed, over: []Row{{Name: "mount"}}}); err == nil {
		t.Error("a call that no table has was restricted")
	}
	if _, err := native(t).number("nonsense"); err != libseccomp.ErrSyscallDoesNotExist {
		t.Errorf("got %v", err)
	}
	wrong := map[string][]Refusal{
		"seventh argument":       refuse(unix.EPERM, is(6, 1)),
		"no match":               refuse(unix.EPERM),
		"no errno":               refuse(0, is(0, 1)),
		"errno that is cut off":  refuse(1<<16|unix.EPERM, is(0, 1)),
		"no value":               refuse(unix.EPERM, is(0)),
		"no bit":                 refuse(unix.EPERM, anyBit(0)),
		"value outside the mask": refuse(unix.EPERM, is(0, 1<<32)),
		"unknown test":           refuse(unix.EPERM, Match{0, 1, 2, []uint64{1}}),
		"no effect but an errno": {{NoEffect: true, Errno: unix.EPERM, Match: []Match{is(0, 1)}}},
		"no effect but a label":  {{NoEffect: true, Label: "test", Match: []Match{is(0, 1)}}},
		"no effect on any call":  {{NoEffect: true}},
		"seventh text":           {{Errno: unix.EPERM, Label: "test", Text: 7}},
		"text below none":        {{Errno: unix.EPERM, Label: "test", Text: -1}},
	}
	for name, refusals := range wrong {
		row := Row{Name: "read", Reason: "test", Refuse: refusals}
		if _, err := compile(native(t), tables{allowed: []Row{guard, row}}); err == nil {
			t.Errorf("%s was taken", name)
		}
		if _, err := compile(native(t), tables{allowed: Allowed, over: []Row{row}}); err == nil {
			t.Errorf("%s was laid over", name)
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
