package lifecycle

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// orphan is a process that a victim has left.
type orphan struct {
	pid, parent int
	name, state string
	exiting     bool
}

// waitOrphans waits until all descendants of this process are gone, and reaps those that it
// has adopted. It returns those that could have ended for goneTime and did not, and those
// that were blocked for longer than blockedTime.
//
// Precondition: the victim is this process's only child.
func waitOrphans(since time.Time) []orphan {
	blocked := map[int]time.Time{} // by pid: when it was last blocked
	for ; ; time.Sleep(5 * time.Millisecond) {
		all := orphans()
		if len(all) == 0 || time.Since(since) > blockedTime {
			return all
		}
		var late []orphan
		for _, p := range all {
			free := since
			if p.isBlocked() {
				blocked[p.pid] = time.Now()
			}
			if last, ok := blocked[p.pid]; ok {
				free = last
			}
			if time.Since(free) > goneTime {
				late = append(late, p)
			}
		}
		if len(late) > 0 {
			return late
		}
	}
}

// isBlocked reports whether the process cannot end now: it is exiting, or in a system call
// that no signal interrupts. One such call makes a network namespace, which waits for a
// lock that the whole machine shares. A frozen process looks alike, but never ends.
func (p orphan) isBlocked() bool {
	return p.exiting || p.state == "D" && !strings.Contains(p.waitsIn(), "refrigerator")
}

// waitsIn names the kernel function that the process sleeps in.
func (p orphan) waitsIn() string { return harness.Lines("/proc/" + strconv.Itoa(p.pid) + "/wchan")[0] }

// orphans lists the live descendants of this process.
func orphans() []orphan {
	all := map[int]orphan{}
	for _, path := range harness.Glob("/proc/[0-9]*/stat") {
		if p, ok := readProcess(path); ok {
			all[p.pid] = p
		}
	}
	self := os.Getpid()
	for pid, p := range all {
		if p.state == "Z" {
			if p.parent == self {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // unless its threads are still alive
			}
		}
	}
	descends := func(p orphan) bool {
		for range len(all) {
			if p.parent == self {
				return true
			}
			p = all[p.parent]
		}
		return false
	}
	maps.DeleteFunc(all, func(_ int, p orphan) bool { return p.isDead() || !descends(p) })
	return slices.Collect(maps.Values(all))
}

func readProcess(stat string) (p orphan, ok bool) {
	const exiting = 0x4 // PF_EXITING
	head, tail, ok := strings.Cut(harness.Lines(stat)[0], ") ")
	fields := strings.Fields(tail) // from the state field on
	if !ok || len(fields) < 7 {
		return p, false // it has ended
	}
	number, name, _ := strings.Cut(head, " (")
	p.name, p.state = name, fields[0]
	p.pid, _ = strconv.Atoi(number)
	p.parent, _ = strconv.Atoi(fields[1])
	flags, _ := strconv.Atoi(fields[6])
	p.exiting = flags&exiting != 0
	return p, true
}

// isDead reports whether the process is a zombie without live threads.
func (p orphan) isDead() bool {
	return p.state == "X" || p.state == "Z" && len(harness.Glob(fmt.Sprintf("/proc/%d/task/*", p.pid))) <= 1
}

// describe returns the states of the processes.
func describe(list []orphan) string {
	var text []string
	for _, p := range list {
		dir := "/proc/" + strconv.Itoa(p.pid)
		status := slices.DeleteFunc(harness.Lines(dir+"/status"), func(line string) bool {
			name, _, _ := strings.Cut(line, ":")
			return !slices.Contains([]string{"State", "PPid", "NSpid", "SigPnd", "ShdPnd", "Seccomp"}, name)
		})
		groups := slices.DeleteFunc(harness.Lines(dir+"/cgroup"), func(line string) bool { return !strings.Contains(line, harness.Parent) })
		text = append(text, fmt.Sprintf("%+v %q wchan %q %q", p, status, p.waitsIn(), groups))
	}
	return strings.Join(text, "\n  ")
}
