package kernel

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Ordinary kernels have all features. Without root, a process cannot change modes.
func TestProbe(t *testing.T) {
	for _, f := range Probe() {
		if f != NetModes || os.Geteuid() == 0 {
			t.Errorf("this kernel lacks %s", f)
		}
	}
}

// A call that the kernel does not know, or refuses, is missing.
func TestAnswers(t *testing.T) {
	if answers(9999) || answers(unix.SYS_PRCTL, 12345) || canLimit(99) {
		t.Error("an unknown call works")
	}
	if p := (Profile{Listener}); !p.Lacks(Listener) || p.Lacks(Landlock) {
		t.Errorf("%q", p)
	}
}
