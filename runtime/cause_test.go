package runtime

import (
	"syscall"
	"testing"

	"gaol/runtime/internal/sandbox"
)

func TestCauseOf(t *testing.T) {
	oom, refused := sandbox.Usage{OOMKills: 1}, sandbox.Usage{PidsRefused: 9}
	heap := "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n"
	for _, tc := range []struct {
		name   string
		killed Cause
		exit   sandbox.Exit
		stderr string
		want   Cause
	}{
		{"exited with 0", "", sandbox.Exit{}, "", CauseNone},
		{"exit 3", "", sandbox.Exit{Code: 3}, "", CauseNone},
		{"timeout", CauseTimeout, sandbox.Exit{Signal: syscall.SIGKILL}, "", CauseTimeout},
		{"exited as the timeout expired", CauseTimeout, sandbox.Exit{Code: 0}, "", CauseNone},
		{"killed for memory", "", sandbox.Exit{Signal: syscall.SIGKILL, Usage: oom}, "", CauseMemory},
		{"child killed for memory", "", sandbox.Exit{Code: 1, Usage: oom}, "", CauseMemory},
		{"child killed for memory, program went on", "", sandbox.Exit{Usage: oom}, "", CauseMemory},
		{"child killed for memory, then out of time", CauseTimeout, sandbox.Exit{Signal: syscall.SIGKILL, Usage: oom}, "", CauseTimeout},
		{"no thread for libuv", "", sandbox.Exit{Signal: syscall.SIGABRT, Usage: refused}, "", CausePids},
		{"survived a refused allocation, killed by a signal", "", sandbox.Exit{Signal: syscall.SIGTERM, Usage: refused}, "", CauseSignal},
		{"heap full", "", sandbox.Exit{Signal: syscall.SIGABRT}, heap, CauseMemory},
		{"abort", "", sandbox.Exit{Signal: syscall.SIGABRT}, "", CauseSignal},
		{"says that the heap is full", "", sandbox.Exit{Code: 1}, heap, CauseNone},
		{"no more processes", "", sandbox.Exit{Code: 1, Usage: refused}, "", CausePids},
		{"no more processes, program coped", "", sandbox.Exit{Usage: refused}, "", CauseNone},
		{"fork bomb until the timeout", CauseTimeout, sandbox.Exit{Signal: syscall.SIGKILL, Usage: refused}, "", CauseTimeout},
		{"killed itself", "", sandbox.Exit{Signal: syscall.SIGKILL}, "", CauseSignal},
		{"crash", "", sandbox.Exit{Signal: syscall.SIGSEGV}, "", CauseSignal},
	} {
		if got := causeOf(tc.killed, tc.exit, []byte(tc.stderr)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
