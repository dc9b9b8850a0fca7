package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The files that Write makes besides the rows with other sources than Kernel. An
// entry is hidden by a mount of one of these.
const (
	EmptyFile   = "file"
	EmptyFolder = "folder"
)

// Write fills a folder with what is mounted over a jail's /proc: the rows of [Shown]
// and, below sys, those of [Settings]. For the kernel's own it makes an empty file to
// mount it on. Settings that the host does not have are left out.
//
// Preconditions: the umask is 0, and hostname is the jail's.
func Write(dir, hostname string) error {
	stat, err := makeStat()
	if err != nil {
		return err
	}
	made := map[string]string{
		"kernel/domainname":  "(none)\n",
		"kernel/hostname":    hostname + "\n",
		"net/core/somaxconn": "4096\n", // of every new network namespace since Linux 5.4
	}
	w := writer{dir: dir}
	w.file("stat", stat)
	w.file(EmptyFile, "")
	w.folder(EmptyFolder)
	for _, r := range Settings {
		text := made[r.Name]
		if r.From == Copied {
			var err error
			if text, err = readFile("/proc/sys/" + r.Name); errors.Is(err, os.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
		}
		w.folder(filepath.Dir("sys/" + r.Name))
		w.file("sys/"+r.Name, text)
	}
	return w.err
}

// writer makes files that nobody may change, until one fails.
type writer struct {
	dir  string
	made map[string]bool
	err  error
}

func (w *writer) folder(name string) {
	if name == "." || w.made[name] {
		return
	}
	w.folder(filepath.Dir(name))
	if w.made == nil {
		w.made = map[string]bool{}
	}
	w.made[name] = true
	if w.err == nil {
		w.err = os.Mkdir(filepath.Join(w.dir, name), 0o555)
	}
}

func (w *writer) file(name, text string) {
	if w.err == nil {
		w.err = writeFile(filepath.Join(w.dir, name), text)
	}
}

// makeStat makes a /proc/stat with the processors that are online. All were idle since
// the machine started, which a program that computes a share does not divide by 0 with.
func makeStat() (string, error) {
	online, err := readFile("/sys/devices/system/cpu/online")
	if err != nil {
		return "", err
	}
	numbers, err := parseList(strings.TrimSpace(online))
	if err != nil {
		return "", err
	}
	var now, up unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &now), unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)); err != nil {
		return "", os.NewSyscallError("clock_gettime", err)
	}
	return formatStat(numbers, up.Sec, now.Sec-up.Sec), nil
}

// formatStat writes what proc_stat(5) describes. Times are in seconds.
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

// parseList reads numbers as the kernel lists them, such as 0-3,8.
func parseList(text string) ([]int, error) {
	const most = 1 << 16 // processors
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil || first < 0 || last >= most || last < first {
			return nil, fmt.Errorf("%q is no list of processors", text)
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// writeFile makes a file. It does without os.File, which asks the poller in vain.
func writeFile(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	if text != "" {
		_, err = unix.Write(fd, []byte(text))
	}
	return os.NewSyscallError("write", errors.Join(err, unix.Close(fd)))
}

// readFile reads a short file, as writeFile writes one.
func readFile(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	text := make([]byte, 4096)
	n, err := unix.Read(fd, text)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return "", &os.PathError{Op: "read", Path: path, Err: err}
	}
	return string(text[:n]), nil
}
