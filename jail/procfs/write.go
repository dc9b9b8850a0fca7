package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// Write makes these in addition to the entries of other sources than Kernel. Mounted over an
// entry they hide it.
const (
	EmptyFile   = "file"
	EmptyFolder = "folder"
)

// BootID is the path below /proc of the boot's id. Of all entries, only this one identifies the machine.
const BootID = "sys/kernel/random/boot_id"

// Config defines the contents of the files.
type Config struct {
	Hostname string
	Memory   int64   // bytes; 0: all of the machine's
	CPUs     float64 // processors, rounded up; 0: all of the machine's
}

// Write fills a folder with the files that are mounted over a jail's /proc: the entries of
// [RootEntries] and, below sys, of [Sysctls]. For the kernel's own entries it makes an empty
// file as the mount point. It omits sysctls that do not exist on the host.
//
// Preconditions: the umask is 0.
func Write(dir string, c Config) error {
	cpuinfo, err1 := readCPUInfo()
	processors, cpuinfo := limitProcessors(cpuinfo, c.CPUs)
	stat, err2 := makeStat(processors)
	meminfo, err3 := makeMeminfo(c.Memory)
	bootID, err4 := kernfile.ReadFile("/proc/sys/kernel/random/uuid") // the kernel makes a new one for each reader
	err := errors.Join(err1, err2, err3, err4, os.Mkdir(filepath.Join(dir, EmptyFolder), 0o555))
	if err != nil {
		return err
	}
	files := map[string]string{
		"cpuinfo": cpuinfo, "meminfo": meminfo, "stat": stat, EmptyFile: "",
		"sys/kernel/domainname":  "(none)\n",
		"sys/kernel/hostname":    c.Hostname + "\n",
		BootID:                   string(bootID),
		"sys/net/core/somaxconn": "4096\n", // of every new network namespace since Linux 5.4
	}
	if err := addSysctls(files); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o555), os.WriteFile(path, []byte(text), 0o444)); err != nil {
			return err
		}
	}
	return nil
}

// addSysctls adds copies of the host's sysctls, and mount points for the kernel's own entries.
func addSysctls(files map[string]string) error {
	for _, e := range Sysctls {
		var text []byte
		var err error
		switch e.Source {
		case Generated:
			continue
		case Copied:
			text, err = kernfile.ReadFile("/proc/sys/" + e.Name)
		}
		if err == nil {
			files["sys/"+e.Name] = string(text)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

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
