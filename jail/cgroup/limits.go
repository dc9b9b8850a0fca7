package cgroup

import (
	"math"
	"os"
	"strconv"
)

// cpuPeriod, in microseconds, is the kernel's default.
const cpuPeriod = 100_000

// quota is the processor time, in microseconds, that l allows in a period.
func (l Limits) quota() int64 {
	const least = 1000 // the kernel refuses less
	return max(least, int64(l.CPUs*cpuPeriod))
}

// Files are the texts, by path, of the files that tell libuv the limits of a process's
// group if that is the root of its cgroup namespace. libuv chooses the version by the
// first line of /proc/self/cgroup, where any v1 hierarchy, even one without a
// controller, means v1. So the files of both versions are there.
func (l Limits) Files() map[string]string {
	page := int64(os.Getpagesize())
	memory, cpu := math.MaxInt64/page*page, "max" // v1's value without a limit
	memoryMax := "max"
	if l.Memory > 0 {
		memory = l.Memory / page * page
		memoryMax = strconv.FormatInt(memory, 10)
	}
	if l.CPUs > 0 {
		cpu = strconv.FormatInt(l.quota(), 10)
	}
	files := map[string]string{
		"cgroup.controllers":                "cpu memory", // without it, libuv reads no cpu.max
		"cpu.max":                           cpu + " " + strconv.Itoa(cpuPeriod),
		"memory.high":                       "max",
		"memory.max":                        memoryMax,
		"memory/memory.limit_in_bytes":      strconv.FormatInt(memory, 10),
		"memory/memory.soft_limit_in_bytes": strconv.FormatInt(memory, 10), // libuv takes the lower one, if it has both
	}
	texts := map[string]string{}
	for name, text := range files {
		texts[mountpoint+"/"+name] = text + "\n"
	}
	return texts
}
