package exhaust

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gaol/test/harness"
)

// kernelUse is how much memory the kernel uses, in bytes, except for pages of programs and
// files.
type kernelUse struct {
	all      int64 // on the machine
	slab     int64 // slabs, a part of all
	ours     int64 // charged to the cgroups of these tests
	others   int64 // charged to other cgroups, whose jails may run at the same time
	programs int64 // charged to the cgroups of these tests for pages of programs and files
}

// since returns the difference to an earlier use.
func (u kernelUse) since(before kernelUse) kernelUse {
	return kernelUse{u.all - before.all, u.slab - before.slab, u.ours - before.ours, u.others - before.others, u.programs - before.programs}
}

// uncharged is what no cgroup is charged for.
func (u kernelUse) uncharged() int64 { return u.all - u.ours - u.others }

// unbounded is what no cgroup is charged for, and what our cgroups are charged beyond the
// limit: some of a socket's memory is charged regardless of the limit. Version 1 allows the
// same amount again for TCP.
func (u kernelUse) unbounded(limit int64) int64 {
	return u.uncharged() + max(0, u.ours+u.programs-2*limit)
}

// takeKernelUse reads it. All memory that is neither free nor a page of a program or file
// is the kernel's: slabs, stacks, page tables, and the pages of sockets and pipes.
func takeKernelUse() kernelUse {
	m := intsIn("/proc/meminfo")
	var u kernelUse
	for name, sign := range map[string]int64{"MemTotal": 1, "MemFree": -1, "Buffers": -1, "Cached": -1, "SwapCached": -1, "AnonPages": -1} {
		u.all += sign * m[name] << 10
	}
	u.all -= freeByProcessor()
	u.slab = m["Slab"] << 10
	own := filepath.Base(harness.Parent)
	for _, file := range harness.Glob("/sys/fs/cgroup/memory/*/tasks", "/sys/fs/cgroup/*/memory.current") {
		dir := filepath.Dir(file)
		kernel, all := charged(dir)
		if filepath.Base(dir) == own {
			u.ours, u.programs = kernel, all-kernel
		} else {
			u.others += kernel
		}
	}
	return u
}

// freeByProcessor is what each processor keeps for its next allocations: up to some hundred
// MiB, which MemFree does not include.
func freeByProcessor() int64 {
	var pages, n int64
	for _, line := range harness.Lines("/proc/zoneinfo") {
		if count, found := strings.CutPrefix(strings.TrimSpace(line), "count:"); found {
			n, _ = strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			pages += n
		}
	}
	return pages * int64(os.Getpagesize())
}

// charged returns the charges of a cgroup and its children, for kernel memory and in
// all. Version 1 counts TCP buffers separately.
func charged(dir string) (kernel, all int64) {
	if _, err := os.Stat(dir + "/memory.kmem.usage_in_bytes"); err != nil {
		stat := intsIn(dir + "/memory.stat")
		return stat["kernel"] + stat["sock"], intIn(dir + "/memory.current")
	}
	tcp := intIn(dir + "/memory.kmem.tcp.usage_in_bytes")
	return intIn(dir+"/memory.kmem.usage_in_bytes") + tcp, intIn(dir+"/memory.usage_in_bytes") + tcp
}

// intsIn reads lines of a name and a number. The cgroup may have been removed.
func intsIn(path string) map[string]int64 {
	found := map[string]int64{}
	for _, line := range harness.Lines(path) {
		name, rest, _ := strings.Cut(line, " ")
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			found[strings.TrimSuffix(name, ":")] = n
		}
	}
	return found
}

func intIn(path string) int64 {
	n, _ := strconv.ParseInt(harness.Lines(path)[0], 10, 64)
	return n
}

// settled waits until the kernel has freed what earlier runs held, which it does late:
// until three readings in a row are alike, or too much time has passed.
func settled() kernelUse {
	const alike, tries, pause = 2 << 20, 50, 20 * time.Millisecond
	u := takeKernelUse()
	for i, same := 0, 0; same < 3 && i < tries; i++ {
		time.Sleep(pause)
		now := takeKernelUse()
		if same++; now.since(u).uncharged() < -alike {
			same = 0
		}
		u = now
	}
	return u
}
