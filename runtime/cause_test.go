package runtime

import (
	"syscall"
	"testing"

	"gaol/jail"
	"gaol/jail/cgroup"
)

func TestCauseOf(t *testing.T) {
	oom, refused := cgroup.Usage{OOMKills: 1}, cgroup.Usage{PidsRefused: 9}
	heap := "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n"
	for _, tc := range []struct {
		name   string
		killed Cause
		exit   jail.Exit
		stderr string
		want   Cause
	}{
		{"exited with 0", "", jail.Exit{}, "", CauseNone},
		{"exit 3", "", jail.Exit{Code: 3}, "", CauseNone},
		{"timeout", CauseTimeout, jail.Exit{Signal: syscall.SIGKILL}, "", CauseTimeout},
		{"exited as the timeout expired", CauseTimeout, jail.Exit{Code: 0}, "", CauseNone},
		{"killed for memory", "", jail.Exit{Signal: syscall.SIGKILL, Usage: oom}, "", CauseMemory},
		{"child killed for memory", "", jail.Exit{Code: 1, Usage: oom}, "", CauseMemory},
		{"child killed for memory, program went on", "", jail.Exit{Usage: oom}, "", CauseMemory},
		{"child killed for memory, then out of time", CauseTimeout, jail.Exit{Signal: syscall.SIGKILL, Usage: oom}, "", CauseTimeout},
		{"no thread for libuv", "", jail.Exit{Signal: syscall.SIGABRT, Usage: refused}, "", CausePids},
		{"survived a refused allocation, killed by a signal", "", jail.Exit{Signal: syscall.SIGTERM, Usage: refused}, "", CauseSignal},
		{"heap full", "", jail.Exit{Signal: syscall.SIGABRT}, heap, CauseMemory},
		{"abort", "", jail.Exit{Signal: syscall.SIGABRT}, "", CauseSignal},
		{"says that the heap is full", "", jail.Exit{Code: 1}, heap, CauseNone},
		{"no more processes", "", jail.Exit{Code: 1, Usage: refused}, "", CausePids},
		{"no more processes, program coped", "", jail.Exit{Usage: refused}, "", CauseNone},
		{"fork bomb until the timeout", CauseTimeout, jail.Exit{Signal: syscall.SIGKILL, Usage: refused}, "", CauseTimeout},
		{"killed itself", "", jail.Exit{Signal: syscall.SIGKILL}, "", CauseSignal},
		{"crash", "", jail.Exit{Signal: syscall.SIGSEGV}, "", CauseSignal},
	} {
		if got := causeOf(tc.killed, tc.exit, []byte(tc.stderr)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
