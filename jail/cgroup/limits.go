package cgroup

import (
	"math"
	"os"
	"strconv"
)

// cpuPeriod, in microseconds, is the kernel's default.
const cpuPeriod = 100_000

// quota returns the processor time, in microseconds, that l allows in a period.
func (l Limits) quota() int64 {
	const least = 1000 // the kernel rejects less
	return max(least, int64(l.CPUs*cpuPeriod))
}

// Files returns, by path, the content of files from which libuv reads the limits of a
// process whose group is the root of its cgroup namespace. libuv chooses the version by the
// first line of /proc/self/cgroup, where any v1 hierarchy, even one without a controller,
// means v1. So the files of both versions are included.
func (l Limits) Files() map[string]string {
	page := int64(os.Getpagesize())
	memory, cpu := math.MaxInt64/page*page, "max" // v1's value for no limit
	memoryMax := "max"
	if l.Memory > 0 {
		memory = l.Memory / page * page
		memoryMax = strconv.FormatInt(memory, 10)
	}
	if l.CPUs > 0 {
		cpu = strconv.FormatInt(l.quota(), 10)
	}
	files := map[string]string{
		"cgroup.controllers":                "cpu memory", // without this file libuv does not read cpu.max
		"cpu.max":                           cpu + " " + strconv.Itoa(cpuPeriod),
		"memory.high":                       "max",
		"memory.max":                        memoryMax,
		"memory/memory.limit_in_bytes":      strconv.FormatInt(memory, 10),
		"memory/memory.soft_limit_in_bytes": strconv.FormatInt(memory, 10), // libuv takes the lower of both
	}
	texts := map[string]string{}
	for name, text := range files {
		texts[mountpoint+"/"+name] = text + "\n"
	}
	return texts
}
