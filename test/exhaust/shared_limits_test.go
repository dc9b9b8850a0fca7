package exhaust

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// A sandbox that takes as much as it can get of a resource leaves enough for another. The
// kernel counts these resources by user, or by the creator of a user namespace.
func TestEscapeUserWideLimits(t *testing.T) {
	tier.Soak(t)
	a, b := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	hoard := harness.Install(t, a, "hoard")
	harness.Install(t, b, "hoard")
	for _, kind := range []string{"inotify", "pipe", "epoll", "locked", "pending", "timer", "terminal", "task"} {
		t.Run(kind, func(t *testing.T) {
			taken := harness.StartCommand(t, a, hoard, kind, "100000", "60")
			if count, reason, _ := strings.Cut(taken.First, " "); count == "0" || reason == "0" {
				t.Errorf("took %s: %s: the test proves nothing", count, reason)
			}
			if got := harness.Output(t, b, runtime.RunOptions{}, hoard, kind, "1", "0"); !strings.HasPrefix(got, "1 ") {
				t.Errorf("after one sandbox took %s, another gets %s", taken.First, got)
			}
			if res := harness.Run(t, b, `process.stdout.write('fine')`, runtime.RunOptions{}); string(res.Stdout) != "fine" {
				t.Errorf("the other sandbox can't run: %+v", res)
			}
			if kind == "inotify" && !hostHasInotify() {
				t.Error("root on the host can't watch files any more")
			}
		})
	}
}

// The buffers of sockets are kernel memory, and count against the run's limit.
func TestEscapeMemoryInSockets(t *testing.T) {
	tier.Alone(t)
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 64 << 20}})
	hoard := harness.Install(t, rt, "hoard")
	before := socketPages(t)
	taken := harness.StartCommand(t, rt, hoard, "connection", "60", "60")
	used := (socketPages(t) - before) * int64(os.Getpagesize())
	t.Logf("connections: %s, %d MiB", taken.First, used>>20)
	if used > 2*64<<20 {
		t.Errorf("a run of 64 MiB holds %d MiB in sockets", used>>20)
	}
}

// hostHasInotify reports whether this process, as root, gets an inotify instance.
func hostHasInotify() bool {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// socketPages is how many pages all TCP sockets of the machine hold.
func socketPages(t *testing.T) int64 {
	t.Helper()
	for _, line := range harness.Lines("/proc/net/sockstat") {
		_, text, found := strings.Cut(line, " mem ")
		var pages int64
		if _, err := fmt.Sscan(text, &pages); found && strings.HasPrefix(line, "TCP:") && err == nil {
			return pages
		}
	}
	t.Fatal("the kernel does not tell")
	return 0
}
