package procfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// makeStat makes a /proc/stat in which all processors have been idle since the machine
// started: programs that compute shares must not divide by 0.
func makeStat(processors []int) (string, error) {
	var now, up unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &now), unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)); err != nil {
		return "", os.NewSyscallError("clock_gettime", err)
	}
	return formatStat(processors, up.Sec, now.Sec-up.Sec), nil
}

// formatStat formats a file as in proc_stat(5). Times are in seconds.
func formatStat(processors []int, idle, boot int64) string {
	const ticks = 100 // a second, USER_HZ
	var b strings.Builder
	line := func(name string, idle int64) { fmt.Fprintf(&b, "%s 0 0 0 %d 0 0 0 0 0 0\n", name, idle) }
	line("cpu ", idle*ticks*int64(len(processors)))
	for _, n := range processors {
		line("cpu"+strconv.Itoa(n), idle*ticks)
	}
	fmt.Fprintf(&b, "intr 0\nctxt 0\nbtime %d\nprocesses 0\nprocs_running 1\nprocs_blocked 0\nsoftirq%s\n", boot, strings.Repeat(" 0", 11))
	return b.String()
}

// makeMeminfo makes a /proc/meminfo with no more memory than the limit.
func makeMeminfo(limit int64) (string, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return "", os.NewSyscallError("sysinfo", err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	if limit > 0 {
		total = min(total, limit)
	}
	return formatMeminfo(total), nil
}

// formatMeminfo formats the fields of proc_meminfo(5) that free, top and libuv read. All
// memory is free: the file does not change as the runs use it.
func formatMeminfo(total int64) string {
	var b strings.Builder
	for _, name := range []string{
		"MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active", "Inactive",
		"SwapTotal", "SwapFree", "Dirty", "Writeback", "Shmem", "Slab", "SReclaimable", "SUnreclaim",
	} {
		kib := int64(0)
		if strings.HasPrefix(name, "Mem") {
			kib = total >> 10
		}
		fmt.Fprintf(&b, "%-15s %8d kB\n", name+":", kib)
	}
	return b.String()
}

// readCPUInfo caches the kernel's /proc/cpuinfo: the kernel measures the speed of each
// processor for every reader.
var readCPUInfo = kernfile.Once(func() (string, error) {
	text, err := os.ReadFile("/proc/cpuinfo")
	return string(text), err
})

// limitProcessors returns a /proc/cpuinfo with only the first processors, as many as the limit,
// rounded up, and their numbers. A limit of 0 is none.
func limitProcessors(cpuinfo string, limit float64) (numbers []int, text string) {
	var b strings.Builder
	for section := range strings.SplitAfterSeq(cpuinfo, "\n\n") {
		var number int
		_, err := fmt.Sscanf(section, "processor : %d", &number)
		isProcessor := err == nil
		if isProcessor && limit > 0 && float64(len(numbers)) >= limit {
			continue
		}
		if isProcessor {
			numbers = append(numbers, number)
		}
		b.WriteString(section)
	}
	return numbers, b.String()
}
